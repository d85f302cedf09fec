package app_test

import (
	"bytes"
	"context"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"throwbar.dev/throwbar/agent/model/modeltest"
	"throwbar.dev/throwbar/app"
	"throwbar.dev/throwbar/app/apptest"
)

// printed is what a program prints while it runs.
type printed struct {
	mu   sync.Mutex
	text bytes.Buffer // guarded by mu
}

func (o *printed) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *printed) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// program runs the program to its end and returns the exit code and what it printed.
func program(t *testing.T, env map[string]string, args ...string) (int, string) {
	t.Helper()
	var out printed
	code := app.Run(t.Context(), args, func(k string) string { return env[k] }, strings.NewReader(""), &out, &out)
	return code, out.String()
}

// writeFile writes a file for the test and returns its path.
func writeFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestServeWithAConfigurationFile runs the program with a file of three models: the first does not take the key, the second
// cannot be reached, the third cannot call tools and answers. What doctor says of them is the same.
func TestServeWithAConfigurationFile(t *testing.T) {
	t.Parallel()
	scripted := modeltest.NewServerWith(t, modeltest.Config{Models: []string{"big", "small"}})
	scripted.AddFor("big", modeltest.Fail(http.StatusUnauthorized, "the key "+modeltest.Key+" is no good"))
	scripted.AddFor("small", modeltest.Text("Here I am."))
	key := writeFile(t, "key", modeltest.Key)
	file := writeFile(t, "throwbar.yaml", `
models:
- {name: first, model: big, base_url: "`+scripted.URL+`", key_file: `+key+`}
- {name: nobody, base_url: "http://127.0.0.1:1/v1", key_file: `+key+`}
- {name: last, model: small, base_url: "`+scripted.URL+`", key_file: `+key+`, prompted: true}
agents:
- {name: helper, description: Helps., tools: [listTabs], models: [last]}
`)
	dir := t.TempDir()
	env := map[string]string{
		"THROWBAR_DATA_DIR": dir, "THROWBAR_CONFIG": file, "XDG_CACHE_HOME": t.TempDir(),
		"THROWBAR_MODEL": "old", "THROWBAR_MODEL_BASE_URL": "http://127.0.0.1:2/v1",
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	var log printed
	ended := make(chan int, 1)
	go func() {
		ended <- app.Run(ctx, []string{"serve", "--listen", "127.0.0.1:0"}, func(k string) string { return env[k] }, strings.NewReader(""), &log, &log)
	}()
	t.Cleanup(func() {
		stop()
		<-ended
		if strings.Contains(log.String(), modeltest.Key) {
			t.Errorf("the key is in %s", log.String())
		}
	})
	var address string
	apptest.Eventually(t, "the server listens", func() bool {
		if found := regexp.MustCompile(`listens on (\S+)`).FindStringSubmatch(log.String()); found != nil {
			address = found[1]
		}
		return address != ""
	})
	if !strings.Contains(log.String(), "THROWBAR_MODEL_BASE_URL") || strings.Contains(log.String(), "model  none") {
		t.Errorf("it says %s", log.String())
	}
	env["THROWBAR_SERVER"], env["THROWBAR_TOKEN_FILE"] = address, filepath.Join(dir, "owner.token")
	code, out := program(t, env, "chat", "where are you?")
	if code != 0 || !strings.Contains(out, "Here I am.") || strings.Contains(out, modeltest.Key) {
		t.Errorf("chat: %d\n%s", code, out)
	}
	if asked := scripted.Requests(); len(asked) != 2 || asked[0].Model != "big" || asked[1].Model != "small" || len(asked[1].Tools) > 0 {
		t.Errorf("asked %d times", len(asked))
	}
	code, out = program(t, env, "doctor")
	for _, want := range []string{"providers", "first: 127.0.0.1", "has it", "nobody: 127.0.0.1:1 cannot be reached", "warning"} {
		if !strings.Contains(out, want) {
			t.Errorf("doctor: %d, no %q in\n%s", code, want, out)
		}
	}
	if code != 0 || strings.Contains(out, modeltest.Key) {
		t.Errorf("doctor: %d\n%s", code, out)
	}
}

// TestServeRefusesABadConfiguration sees every problem at once and the exit code, before anything is made.
func TestServeRefusesABadConfiguration(t *testing.T) {
	t.Parallel()
	file := writeFile(t, "throwbar.yaml", "models:\n- name: a\n  base: http://127.0.0.1:1/v1\n- name: '?'\n  key: sk-0123456789abcdef\n")
	dir := filepath.Join(t.TempDir(), "data")
	code, out := program(t, map[string]string{"THROWBAR_DATA_DIR": dir}, "serve", "--config", file, "--listen", "127.0.0.1:0")
	for _, want := range []string{"3 problems", file + ":3: unknown field \"base\"", file + ":4: models[1].name", file + ":5: unknown field \"key\""} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in %s", want, out)
		}
	}
	if code != 2 || strings.Count(out, "\n  "+file+":") != 3 || strings.Contains(out, "sk-0123456789abcdef") {
		t.Errorf("code %d, %s", code, out)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("the data folder was made")
	}
}
