package app_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"throwbar.dev/throwbar/app"
	"throwbar.dev/throwbar/app/apptest"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	"throwbar.dev/throwbar/gen/go/throwbar/control/v1/controlv1connect"
	optionv1 "throwbar.dev/throwbar/gen/go/throwbar/option/v1"
	"throwbar.dev/throwbar/server/rpc"
	"throwbar.dev/throwbar/store"
	"throwbar.dev/throwbar/store/storetest"
)

// postgres is the server of this test binary.
var postgres storetest.Cluster

func TestMain(m *testing.M) {
	defer postgres.Stop()
	m.Run()
}

// onEach runs a test on both engines: the configuration names a new, empty database.
func onEach(t *testing.T, test func(*testing.T, app.Config)) {
	t.Helper()
	for _, engine := range postgres.Engines() {
		t.Run(engine.Name, func(t *testing.T) {
			t.Parallel()
			test(t, app.Config{Store: store.Config{URL: engine.URL(t)}})
		})
	}
}

// throwbar runs the program in this process. It must not be given the folder of a server in this process, except to be
// told that it is locked.
func throwbar(t *testing.T, env map[string]string, args ...string) (int, string, string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code := app.Run(t.Context(), args, func(k string) string { return env[k] }, strings.NewReader(""), &stdout, &stderr)
	return code, stdout.String(), stderr.String()
}

func tokens(t *testing.T, s *apptest.Server) controlv1connect.TokenServiceClient {
	t.Helper()
	return controlv1connect.NewTokenServiceClient(s.Client(t, s.Owner, nil))
}

// used gives a data folder and a database in which a server has worked, and the names of its tokens.
func used(t *testing.T, cfg app.Config) (dir string) {
	t.Helper()
	s := apptest.Start(t, cfg)
	for _, name := range []string{"laptop", "desk"} {
		if _, err := tokens(t, s).CreateToken(t.Context(), &controlv1.CreateTokenRequest{Name: name, Scope: optionv1.Scope_SCOPE_VIEWER}); err != nil {
			t.Fatal(err)
		}
	}
	s.Stop()
	return s.Dir
}

// TestMovingBetweenTheEngines takes a server's data from SQLite to PostgreSQL and back with the verbs, and starts a
// server on each: the owner's token goes on.
func TestMovingBetweenTheEngines(t *testing.T) {
	t.Parallel()
	first := used(t, app.Config{})
	url, last, files := postgres.URL(t), t.TempDir(), t.TempDir()
	file := func(n string) string { return filepath.Join(files, n) }
	run := func(args ...string) string {
		t.Helper()
		code, out, errs := throwbar(t, nil, args...)
		if code != 0 {
			t.Fatalf("%v: %d\n%s%s", args, code, out, errs)
		}
		return out
	}
	out := run("export", file("1"), "--data-dir", first)
	if !strings.Contains(out, "srv_token") || !strings.Contains(out, "3 rows") {
		t.Errorf("export says\n%s", out)
	}
	run("import", file("1"), "--database", url)
	run("export", file("2"), "--database", url)
	run("import", file("2"), "--data-dir", last)
	run("export", file("3"), "--data-dir", last)
	one, err1 := os.ReadFile(file("1"))
	three, err3 := os.ReadFile(file("3"))
	if !bytes.Equal(one, three) || errors.Join(err1, err3) != nil {
		t.Errorf("the file is another after two moves, %v, %v", err1, err3)
	}
	owner, err := os.ReadFile(filepath.Join(first, "owner.token"))
	if err != nil {
		t.Fatal(err)
	}
	for _, cfg := range []app.Config{{DataDir: t.TempDir(), Store: store.Config{URL: url}}, {DataDir: last}} {
		if err := os.WriteFile(filepath.Join(cfg.DataDir, "owner.token"), owner, 0o600); err != nil {
			t.Fatal(err)
		}
		s := apptest.Start(t, cfg)
		list, err := tokens(t, s).ListTokens(t.Context(), &controlv1.ListTokensRequest{})
		if err != nil || len(list.GetTokens()) != 3 {
			t.Errorf("%v has %v, %v", cfg.Store.URL, list, err)
		}
		s.Stop()
	}
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"over a file":          {[]string{"export", file("1"), "--data-dir", last}, "is there already"},
		"into a full database": {[]string{"import", file("1"), "--data-dir", last}, "not empty"},
		"from nothing":         {[]string{"export", file("4"), "--data-dir", t.TempDir()}, "there is no database"},
		"no such file":         {[]string{"import", file("none"), "--data-dir", t.TempDir()}, "no such file"},
		"no export":            {[]string{"import", filepath.Join(first, "owner.token"), "--data-dir", t.TempDir()}, "damaged"},
	} {
		code, out, errs := throwbar(t, nil, c.args...)
		if code == 0 || !strings.Contains(errs, c.want) || strings.Count(errs, "\n") != 1 {
			t.Errorf("%s: %d\n%s%s", name, code, out, errs)
		}
	}
}

// TestVerbsBesideAServer: what would need the database to itself says in one line who has it.
func TestVerbsBesideAServer(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, cfg app.Config) {
		s := apptest.Start(t, cfg)
		file := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(file+".in", nil, 0o600); err != nil {
			t.Fatal(err)
		}
		env := map[string]string{"THROWBAR_DATABASE": cfg.Store.URL, "THROWBAR_DATA_DIR": s.Dir}
		for _, args := range [][]string{{"export", file}, {"import", file + ".in"}, {"serve", "--listen", "127.0.0.1:0"}} {
			code, out, errs := throwbar(t, env, args...)
			if code != 1 || !strings.Contains(errs, "another throwbar server (pid ") || strings.Count(errs, "\n") != 1 {
				t.Errorf("%v: %d\n%s%s", args, code, out, errs)
			}
		}
	})
}

// TestBackupVerb copies a SQLite database that no server has open here, and says of PostgreSQL what to use.
func TestBackupVerb(t *testing.T) {
	t.Parallel()
	dir := used(t, app.Config{})
	restored := t.TempDir()
	file := filepath.Join(restored, "throwbar.db")
	code, out, errs := throwbar(t, nil, "backup", file, "--data-dir", dir)
	if code != 0 || !strings.Contains(out, "verified") || !strings.Contains(out, "srv_token") {
		t.Errorf("backup: %d\n%s%s", code, out, errs)
	}
	if code, _, errs := throwbar(t, nil, "backup", file, "--data-dir", dir); code != 2 || !strings.Contains(errs, "is there already") {
		t.Errorf("backup over a file: %d\n%s", code, errs)
	}
	code, _, errs = throwbar(t, nil, "backup", file+"2", "--database", "postgres://u:s3cret@localhost/x")
	if code != 2 || !strings.Contains(errs, "pg_dump") || strings.Contains(errs, "s3cret") || strings.Count(errs, "\n") != 1 {
		t.Errorf("backup of PostgreSQL: %d\n%s", code, errs)
	}
	raw, err := os.ReadFile(filepath.Join(dir, "owner.token"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(restored, "owner.token"), raw, 0o600); err != nil {
		t.Fatal(err)
	}
	s := apptest.Start(t, app.Config{DataDir: restored})
	if list, err := tokens(t, s).ListTokens(t.Context(), &controlv1.ListTokensRequest{}); err != nil || len(list.GetTokens()) != 3 {
		t.Errorf("restored: %v, %v", list, err)
	}
}

// TestDoctorLooksAtTheDatabase with a server that is not running: the walk ends there, or at what is behind it.
func TestDoctorLooksAtTheDatabase(t *testing.T) {
	t.Parallel()
	dir, url := used(t, app.Config{}), postgres.URL(t)
	pgDir := used(t, app.Config{Store: store.Config{URL: url}})
	secret := filepath.Join(t.TempDir(), "url")
	if err := os.WriteFile(secret, []byte(url+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		env  map[string]string
		want string
	}{
		"SQLite":            {map[string]string{"THROWBAR_DATA_DIR": dir}, "ok       database    SQLite 3."},
		"none yet":          {map[string]string{"THROWBAR_DATA_DIR": t.TempDir()}, "warning  database    SQLite, none yet"},
		"PostgreSQL":        {map[string]string{"THROWBAR_DATA_DIR": pgDir, "THROWBAR_DATABASE": url}, "ok       database    PostgreSQL "},
		"a file":            {map[string]string{"THROWBAR_DATA_DIR": pgDir, "THROWBAR_DATABASE_FILE": secret}, "ok       database    PostgreSQL "},
		"no answer":         {map[string]string{"THROWBAR_DATABASE": "postgres://u:s3cret@127.0.0.1:1/x"}, "failed   database    PostgreSQL at postgres://u@127.0.0.1:1/x: "},
		"no URL":            {map[string]string{"THROWBAR_DATABASE": "s3cret"}, "THROWBAR_DATABASE is no URL"},
		"two":               {map[string]string{"THROWBAR_DATABASE": "s3cret", "THROWBAR_DATABASE_FILE": secret}, "are both set"},
		"a file that is no": {map[string]string{"THROWBAR_DATABASE_FILE": filepath.Join(dir, "none")}, "THROWBAR_DATABASE_FILE: "},
	} {
		c.env["THROWBAR_SERVER"] = "127.0.0.1:1"
		_, out, errs := throwbar(t, c.env, "doctor")
		if !strings.Contains(out+errs, c.want) || strings.Contains(out+errs, "s3cret") {
			t.Errorf("%s:\n%s%s", name, out, errs)
		}
		if _, out, errs := throwbar(t, c.env, "serve", "--help"); strings.Contains(out+errs, "s3cret") {
			t.Errorf("%s: the help shows the environment's URL:\n%s", name, out)
		}
	}
}

// TestAServerThatLostItsDatabaseToAnotherStops: it does not go on with what it remembers.
func TestAServerThatLostItsDatabaseToAnotherStops(t *testing.T) {
	t.Parallel()
	url := postgres.URL(t)
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	dir := t.TempDir()
	server, err := app.NewServer(t.Context(), app.Config{
		DataDir: dir, Store: store.Config{URL: url}, Listener: rpc.Listener{Hosts: rpc.LoopbackHosts(address)},
	})
	if err != nil {
		t.Fatal(err)
	}
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- server.Serve(context.WithoutCancel(t.Context()), listener, func() { close(ready) }) }()
	<-ready
	storetest.Exec(t, url, `select pg_terminate_backend(pid) from pg_locks where locktype = 'advisory'
		and database = (select oid from pg_database where datname = current_database())`)
	other, err := store.Open(t.Context(), store.Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Close() }()
	env := map[string]string{"THROWBAR_SERVER": "http://" + address, "THROWBAR_TOKEN_FILE": filepath.Join(dir, "owner.token")}
	code, out, errs := throwbar(t, env, "token", "create", "--name", "late", "--scope", "viewer")
	// The server ends at once, perhaps before its answer is through.
	if code == 0 || (!strings.Contains(errs, "nothing was done") && !strings.Contains(errs, "cannot be reached")) {
		t.Errorf("token create: %d\n%s%s", code, out, errs)
	}
	if err := <-ended; !errors.Is(err, store.ErrLocked) {
		t.Errorf("the server ended with %v, want ErrLocked", err)
	}
}
