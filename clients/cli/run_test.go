package cli_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"throwbar.dev/throwbar/clients/cli"
)

var update = flag.Bool("update", false, "write the golden files anew")

// run is one run of the program against a fake server.
type run struct {
	args     []string
	server   string
	env      map[string]string
	stdin    io.Reader
	signals  chan os.Signal
	terminal bool
	image    []byte
	extra    []*cobra.Command
}

// ended is what came of a run.
type ended struct {
	code     int
	out, err string
}

// do runs the program with its own home.
func do(t *testing.T, r run) ended {
	t.Helper()
	out, errOut := &buffer{}, &buffer{}
	code := start(t, r, out, errOut)
	return ended{code: code, out: out.String(), err: errOut.String()}
}

func start(t *testing.T, r run, out, errOut *buffer) int {
	t.Helper()
	home := t.TempDir()
	token := filepath.Join(home, "owner.token")
	if err := os.WriteFile(token, []byte(secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{
		"HOME": home, "THROWBAR_DATA_DIR": home, "XDG_CACHE_HOME": filepath.Join(home, "cache"), "THROWBAR_SERVER": r.server,
	}
	for k, v := range r.env {
		env[k] = v
	}
	if r.stdin == nil {
		r.stdin = strings.NewReader("")
	}
	if r.signals == nil {
		r.signals = make(chan os.Signal)
	}
	return cli.Config{
		Args: r.args, Env: func(k string) string { return env[k] }, Stdin: r.stdin, Stdout: out, Stderr: errOut,
		Signals: r.signals, Now: now, Terminal: func(any) bool { return r.terminal }, Image: r.image, Extra: r.extra,
	}.Run(t.Context())
}

// against runs the program with words for arguments.
func (f *fake) run(t *testing.T, words ...string) ended {
	t.Helper()
	return do(t, run{server: f.url, args: words})
}

// buffer is what a stream took; when it holds a text, those who wait for it go on.
type buffer struct {
	mu    sync.Mutex
	text  bytes.Buffer // guarded by mu
	waits []wait       // guarded by mu
}

type wait struct {
	text  string
	times int
	done  chan struct{}
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n, err := b.text.Write(p)
	b.wake()
	return n, err
}

func (b *buffer) wake() {
	b.waits = slices.DeleteFunc(b.waits, func(w wait) bool {
		if strings.Count(b.text.String(), w.text) < w.times {
			return false
		}
		close(w.done)
		return true
	})
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// holds is closed when the buffer holds the text so many times.
func (b *buffer) holds(text string, times int) <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	w := wait{text: text, times: times, done: make(chan struct{})}
	b.waits = append(b.waits, w)
	b.wake()
	return w.done
}

// golden compares a text with a file of testdata; the address of the server is made the default one before.
func golden(t *testing.T, name, got, server string) {
	t.Helper()
	// A digest of the contract is another one after every change of it.
	got = regexp.MustCompile(`\b[0-9a-f]{64}\b`).ReplaceAllString(got, "DIGEST")
	if server != "" {
		got = strings.ReplaceAll(got, server, "http://127.0.0.1:3913")
	}
	path := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs (-update writes it anew):\n%s\nwant:\n%s", path, got, want)
	}
}

// check fails the test unless the run ended with a code and said what it should.
func (e ended) check(t *testing.T, code int, says ...string) {
	t.Helper()
	if e.code != code {
		t.Errorf("exit code %d, want %d\nstdout:\n%s\nstderr:\n%s", e.code, code, e.out, e.err)
	}
	for _, text := range says {
		if !strings.Contains(e.out+e.err, text) {
			t.Errorf("%q is missing\nstdout:\n%s\nstderr:\n%s", text, e.out, e.err)
		}
	}
}

// compactJSON is a message as JSON on one line.
func compactJSON(t *testing.T, m proto.Message) string {
	t.Helper()
	raw, err := protojson.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := json.Compact(&out, raw); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// tokenFile writes a token file whose path hideFile knows.
func tokenFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "token-of-this-test")
	if err := os.WriteFile(path, []byte(secret), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// hideFile takes the folders of tokenFile's path away. Help is wrapped by width, so the whole default goes.
func hideFile(text string) string {
	return regexp.MustCompile(`\(default\s+\S*token-of-this-test\)`).ReplaceAllString(text, "(default FILE)")
}
