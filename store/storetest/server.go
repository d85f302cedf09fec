package storetest

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
)

const (
	superuser = "throwbar"
	// binaries is the variable that names the folder of initdb and postgres.
	binaries = "THROWBAR_POSTGRES_BIN"
	// startWithin is how long a server may take to answer, on a machine that does much else.
	startWithin = 60 * time.Second

	missing = "PostgreSQL is not installed, which these tests need: run scripts/ensure-postgres.sh (Debian: apt-get install " +
		"postgresql), or set " + binaries + " to the folder of its initdb"
)

// Options says what a server is like.
type Options struct {
	// Fsync makes it write to the disk as a real one does; without, it is quicker.
	Fsync bool
}

// Server is a PostgreSQL server of a test.
type Server struct {
	dir     string
	lock    *os.File
	process *exec.Cmd
	orders  io.WriteCloser
	answers *bufio.Scanner
	admin   *sql.DB

	stopping sync.Once
	mu       sync.Mutex // of orders and answers
}

// Start starts a server for one test, for those that do it harm.
func Start(t testing.TB, options Options) *Server {
	t.Helper()
	s, err := start(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.stop)
	return s
}

// warden runs the server and does what it is told. When its input ends, because the test binary has ended in whatever
// way, it ends the server and removes the folder.
const warden = `bin=$1 dir=$2 fsync=$3
trap '' INT TERM HUP
run() {
	"$bin/postgres" -D "$dir/data" -k "$dir" -c listen_addresses= -c fsync="$fsync" -c full_page_writes="$fsync" \
		-c max_connections=200 -c shared_buffers=32MB -c log_min_messages=fatal >>"$dir/log" 2>&1 </dev/null &
	pid=$!
}
run
while read -r order; do
	case $order in
	start) kill -0 $pid 2>/dev/null || run ;;
	kill)
		kill -KILL $pid $(cat "/proc/$pid/task/$pid/children" 2>/dev/null) 2>/dev/null
		wait $pid 2>/dev/null
		;;
	stop) kill -INT $pid 2>/dev/null; wait $pid 2>/dev/null ;;
	esac
	echo done
done
kill -QUIT $pid 2>/dev/null
wait $pid 2>/dev/null
cd /
rm -rf "$dir"`

func start(options Options) (*Server, error) {
	bin, err := findBinaries()
	if err != nil {
		return nil, err
	}
	removeStale()
	dir, err := os.MkdirTemp("", prefix)
	if err != nil {
		return nil, err
	}
	s := &Server{dir: dir}
	if err := s.begin(bin, options); err != nil {
		s.stop()
		return nil, fmt.Errorf("start PostgreSQL in %s: %w", dir, err)
	}
	return s, nil
}

func (s *Server) begin(bin string, options Options) error {
	user, err := unprivileged(s.dir)
	if err != nil {
		return err
	}
	if s.lock, err = lockFolder(s.dir); err != nil {
		return err
	}
	common := []string{"-D", filepath.Join(s.dir, "data"), "-U", superuser, "-A", "trust", "-E", "UTF8", "--no-sync"}
	// A locale that sorts as people do shows where a query relies on the order of bytes without saying so.
	for _, locale := range [][]string{{"--locale=C", "--locale-provider=icu", "--icu-locale=en"}, {"--locale=C"}} {
		initdb := exec.Command(filepath.Join(bin, "initdb"), slices.Concat(common, locale)...)
		initdb.Dir, initdb.SysProcAttr = s.dir, user
		var out []byte
		if out, err = initdb.CombinedOutput(); err == nil {
			break
		}
		err = fmt.Errorf("initdb: %w\n%s", err, out)
	}
	if err != nil {
		return err
	}
	fsync := "off"
	if options.Fsync {
		fsync = "on"
	}
	s.process = exec.Command("/bin/sh", "-c", warden, "sh", bin, s.dir, fsync)
	s.process.Dir, s.process.SysProcAttr = s.dir, user
	if s.orders, err = s.process.StdinPipe(); err != nil {
		return err
	}
	answers, err := s.process.StdoutPipe()
	if err != nil {
		return err
	}
	s.answers = bufio.NewScanner(answers)
	if err := s.process.Start(); err != nil {
		return err
	}
	config, err := pgx.ParseConfig(s.URL("postgres"))
	if err != nil {
		return err
	}
	s.admin = stdlib.OpenDB(*config)
	s.admin.SetMaxIdleConns(1)
	return s.answering()
}

// answering waits until the server answers, and starts it again if it has ended: it does so while processes of one that
// was killed are still there.
func (s *Server) answering() error {
	deadline := time.After(startWithin)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := s.admin.PingContext(context.Background())
		if err == nil {
			return nil
		}
		if err := s.order("start"); err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-deadline:
			log, _ := os.ReadFile(filepath.Join(s.dir, "log"))
			return fmt.Errorf("%w\n%s", err, log)
		}
	}
}

func (s *Server) order(what string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := io.WriteString(s.orders, what+"\n"); err != nil {
		return err
	}
	if !s.answers.Scan() {
		return errors.Join(errors.New("the warden of the server has ended"), s.answers.Err())
	}
	return nil
}

// Kill ends the server and, on Linux, its processes for clients as kill -9 does; elsewhere they end by themselves a little
// later.
func (s *Server) Kill(t testing.TB) { s.tell(t, "kill") }

// Down ends the server in an orderly way; its clients are cut off.
func (s *Server) Down(t testing.TB) { s.tell(t, "stop") }

func (s *Server) tell(t testing.TB, what string) {
	t.Helper()
	if err := s.order(what); err != nil {
		t.Fatal(err)
	}
}

// Up starts the server again and returns when it answers.
func (s *Server) Up(t testing.TB) {
	t.Helper()
	if err := s.answering(); err != nil {
		t.Fatal(err)
	}
}

func (s *Server) exec(ctx context.Context, statement string) error {
	_, err := s.admin.ExecContext(ctx, statement)
	return err
}

func (s *Server) stop() {
	s.stopping.Do(func() {
		if s.admin != nil {
			_ = s.admin.Close()
		}
		if s.process != nil && s.process.Process != nil {
			_ = s.orders.Close()
			_ = s.process.Wait() // its exit code says nothing
		}
		if s.lock != nil {
			_ = s.lock.Close()
		}
		_ = os.RemoveAll(s.dir) // the warden has done so, unless it never ran
	})
}

// findBinaries gives the folder of initdb and postgres.
func findBinaries() (string, error) {
	if dir := os.Getenv(binaries); dir != "" {
		if !hasBinaries(dir) {
			return "", fmt.Errorf("%s is %s, which has no initdb and postgres", binaries, dir)
		}
		return dir, nil
	}
	if path, err := exec.LookPath("initdb"); err == nil {
		if path, err = filepath.EvalSymlinks(path); err == nil && hasBinaries(filepath.Dir(path)) {
			return filepath.Dir(path), nil
		}
	}
	for _, pattern := range []string{"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/opt/homebrew/opt/postgresql*/bin"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			return "", err
		}
		slices.Reverse(found) // the newest first, as long as versions have two digits
		for _, dir := range found {
			if hasBinaries(dir) {
				return dir, nil
			}
		}
	}
	return "", errors.New(missing)
}

func hasBinaries(dir string) bool {
	for _, name := range []string{"initdb", "postgres"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.IsDir() {
			return false
		}
	}
	return true
}
