package cli_test

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestTables compares what the verbs print with golden files.
func TestTables(t *testing.T) {
	t.Parallel()
	f := newFake(t, withConversations)
	for name, words := range map[string]string{
		"devices":        "devices",
		"devices_online": "devices --online",
		"devices_json":   "devices --output json",
		"tabs":           "tabs",
		"tabs_search":    "tabs --query youtube --device LAPTOP",
		"tabs_limit":     "tabs --limit 1",
		"tabs_json":      "tabs --query cats -o json",
		"windows":        "query listWindows",
		"windows_json":   "query listWindows -o json",
		"domains":        "query countByDomain --device laptop",
		"saved":          "query listSavedTabs",
		"commands":       "commands",
		"commands_json":  "commands -o json",
		"history":        "history",
		"history_device": "history --device work",
		"history_none":   "history --pending",
		"history_json":   "history -o json",
		"history_show":   "history show cmd-2",
		"tokens":         "token list",
		"token_create":   "token create --name ci --scope operator",
		"token_json":     "token create --name ci --scope operator -o json",
		"token_ttl":      "token create --name hooks --scope hook --ttl 720h",
		"workspaces":     "workspace list",
		"workspace":      "workspace create home",
		"rotate":         "devices rotate work",
		"conversations":  "chat --list",
		"pair_no_wait":   "pair --no-wait",
		"rename":         "devices rename work office",
		"cancel":         "cancel cmd-2",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := f.run(t, strings.Fields(words)...)
			e.check(t, 0)
			golden(t, name, e.out, f.url)
			if strings.Contains(words, "json") && !json.Valid([]byte(e.out)) {
				t.Errorf("no JSON: %s", e.out)
			}
		})
	}
}

// A device that a person has paused is connected, and does nothing.
func TestAPausedDeviceIsShown(t *testing.T) {
	t.Parallel()
	f := newFake(t, func(f *fake) { f.devices[0].Paused = true })
	e := f.run(t, "devices")
	e.check(t, 0)
	golden(t, "devices_paused", e.out, f.url)
}

func TestForeignTextIsHarmlessOnATerminal(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	e := do(t, run{server: f.url, args: []string{"tabs"}, terminal: true, env: map[string]string{"COLUMNS": "120", "NO_COLOR": "1"}})
	e.check(t, 0, `Cats \x1b[31mlive\u202e`)
	if strings.ContainsAny(e.out, "\x1b\u202e") {
		t.Errorf("escape sequences got through: %q", e.out)
	}
	golden(t, "tabs_terminal", e.out, f.url)
	colours := do(t, run{server: f.url, args: []string{"tabs"}, terminal: true})
	if !strings.Contains(colours.out, "\x1b[33m") || strings.Contains(colours.out, "\x1b[31mlive") {
		t.Errorf("colours: %q", colours.out)
	}
	asJSON := do(t, run{server: f.url, args: []string{"tabs", "-o", "json"}, terminal: true})
	if strings.ContainsAny(asJSON.out, "\x1b\u202e") || !strings.Contains(asJSON.out, `\u202e`) {
		t.Errorf("JSON: %q", asJSON.out)
	}
}

func TestHelp(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	for name, words := range map[string]string{
		"help":            "",
		"help_call":       "call",
		"help_close":      "call closeTabs --help",
		"help_open":       "help call openTab",
		"help_group":      "call groupTabs --help",
		"help_query":      "query searchTabs --help",
		"help_chat":       "chat --help",
		"help_devices":    "help devices",
		"help_completion": "completion bash --help",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := do(t, run{server: f.url, args: strings.Fields(words), env: map[string]string{"THROWBAR_TOKEN_FILE": tokenFile(t)}})
			e.check(t, 0)
			golden(t, name, hideFile(e.out), f.url)
		})
	}
}

func TestHelpWithoutServer(t *testing.T) {
	t.Parallel()
	e := do(t, run{server: "http://127.0.0.1:1", args: []string{"call", "closeTabs", "--help"}})
	e.check(t, 0, "--tab-ids", "Ids of the tabs to close")
	e = do(t, run{server: "http://127.0.0.1:1", args: []string{"commands"}})
	e.check(t, 0, "warning: this is not the server's own list: no server at http://127.0.0.1:1", "closeTabs")
}
