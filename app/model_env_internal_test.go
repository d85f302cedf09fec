package app

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"throwbar.dev/throwbar/clients/cli"
)

func isInvalid(err error) bool {
	var exit *cli.Exit
	return errors.As(err, &exit) && exit.Code == cli.Invalid
}

// TestModelVariables are mistakes with the variables that name the model: each is told with the variable and before anything
// starts, and none of them tells a key, wherever somebody put it.
func TestModelVariables(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil { // whatever the mask says
			t.Fatal(err)
		}
		return path
	}
	const name, address, keyFile = "THROWBAR_MODEL", "THROWBAR_MODEL_BASE_URL", "THROWBAR_MODEL_KEY_FILE"
	for what, tt := range map[string]struct {
		env       []string
		err, warn string
		key       string
	}{
		"key in place of its file":       {env: []string{name, "m", keyFile, secretKey}, err: keyFile + ": open (what looks like a key): no such file"},
		"no file":                        {env: []string{name, "m", keyFile, "/nowhere/key"}, err: keyFile + ": open /nowhere/key: "},
		"folder":                         {env: []string{name, "m", keyFile, dir}, err: "is a folder"},
		"empty file":                     {env: []string{name, "m", keyFile, file("empty", " \n", 0o600), "OPENAI_API_KEY", secretKey}, err: "empty is empty"},
		"empty file for another":         {env: []string{name, "m", address, "https://x.example/v1", keyFile, file("none", "", 0o600)}, err: "none is empty"},
		"large file":                     {env: []string{name, "m", keyFile, file("large", strings.Repeat("x", maxKeyFile+1), 0o600)}, err: "is larger than"},
		"two lines":                      {env: []string{name, "m", keyFile, file("two", secretKey+"\n"+secretKey, 0o600)}, err: keyFile + ": read model key: "},
		"two lines in the variable":      {env: []string{name, "m", "OPENAI_API_KEY", secretKey + "\n" + secretKey}, err: "OPENAI_API_KEY: read model key: "},
		"no address":                     {env: []string{name, "m", address, "localhost:1"}, err: address + ": parse model base URL: must begin with http"},
		"key as the address":             {env: []string{name, "m", address, "https://" + secretKey + "@x.example/v1"}, err: address + ": parse model base URL: must not hold credentials"},
		"key in the address":             {env: []string{name, "m", address, "https://x.example/v1?key=" + secretKey}, err: address + ": parse model base URL: must not have a query"},
		"file that others read":          {env: []string{name, "m", keyFile, file("open", secretKey, 0o644)}, warn: "others on this machine can read the key", key: secretKey},
		"key on the open way":            {env: []string{name, "m", address, "http://x.example/v1", keyFile, file("key", secretKey, 0o600)}, warn: "everybody on the way", key: secretKey},
		"key of the default elsewhere":   {env: []string{name, "m", address, "http://x.example/v1", "OPENAI_API_KEY", secretKey}},
		"key that stays on this machine": {env: []string{name, "m", address, "http://127.0.0.1:1/v1", keyFile, file("here", secretKey+"\n", 0o600)}, key: secretKey},
		"key of the default":             {env: []string{name, "m", "OPENAI_API_KEY", secretKey + "\n"}, key: secretKey},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			var log bytes.Buffer
			settings, err := setModels("", environment(tt.env...), slog.New(slog.NewTextHandler(&log, nil)))
			switch {
			case tt.err == "" && err != nil, tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err) || !isInvalid(err)):
				t.Errorf("error %v", err)
			case settings.env.Key != tt.key:
				t.Error("another key")
			case (tt.warn != "") != (log.Len() > 0) || !strings.Contains(log.String(), tt.warn):
				t.Errorf("log %s", log.String())
			}
			if err != nil && strings.Contains(err.Error(), secretKey) || strings.Contains(log.String(), secretKey) {
				t.Errorf("the key is told: %v\n%s", err, log.String())
			}
		})
	}
}

// TestConfigProblemsOfAClient: what no client can be made of is told where it stands, all of it at once.
func TestConfigProblemsOfAClient(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "c.yaml")
	for name, text := range map[string]string{"key": secretKey + "\n" + secretKey, "c.yaml": `models:
- name: a
  base_url: localhost:1
  key_file: key
  switches:
    effort_field: messages.x
- name: b
  base_url: http://127.0.0.1:1/v1
  key_env: TWO_LINES
`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	_, err := readConfig(path, environment("TWO_LINES", secretKey+"\n"+secretKey), slog.New(slog.DiscardHandler))
	for _, want := range []string{
		"has 4 problems", ":3: the model a: parse model base URL: must begin", ":4: the model a: read model key: ",
		":5: the model a: the field for effort cannot be messages.x", ":9: the model b: read model key: ",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in %v", want, err)
		}
	}
}
