package cli_test

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/cobra"

	"throwbar.dev/throwbar/clients/cli"
)

// TestExamples reads the help of every verb, as a person does: each verb that does something has an example, and each
// example is of that verb, with flags that there are.
func TestExamples(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	verbs := verbsUnder(t, f, nil)
	if len(verbs) < 40 {
		t.Fatalf("only %d verbs are listed: %q", len(verbs), verbs)
	}
	for _, verb := range verbs {
		path := strings.Join(verb, " ")
		help := f.run(t, append(slices.Clone(verb), "--help")...)
		help.check(t, 0, "Usage\n  throwbar "+path)
		lines := examplesOf(help.out)
		generated := slices.Contains([]string{"call", "query"}, verb[0]) || strings.HasPrefix(path, "policy explain") || verb[0] == "completion"
		group := strings.Contains(help.out, "Usage\n  throwbar "+path+" <verb>")
		if len(lines) == 0 && !generated && !group {
			t.Errorf("throwbar %s has no example", path)
		}
		for _, line := range lines {
			words := shellWords(line)
			if !strings.HasPrefix(line, "throwbar "+path) {
				t.Errorf("an example of throwbar %s is %s", path, line)
			}
			e := f.run(t, append(words[1:], "--help")...) // the flags before it are read first
			e.check(t, 0, "Usage\n  throwbar "+path)
			if e.err != "" {
				t.Errorf("%s: %s", line, e.err)
			}
		}
	}
}

// verbsUnder lists the verbs that a help text lists, and those below them, but for those that the catalogue brings.
func verbsUnder(t *testing.T, f *fake, above []string) [][]string {
	t.Helper()
	help := f.run(t, append(slices.Clone(above), "--help")...).out
	var found [][]string
	title := ""
	for line := range strings.Lines(help) {
		switch row := regexp.MustCompile(`^  ([a-zA-Z][a-zA-Z-]*)  +\S`).FindStringSubmatch(line); {
		case row == nil && !strings.HasPrefix(line, " "):
			title = strings.TrimSpace(line)
		case row != nil && !slices.Contains([]string{"", "Flags", "Global flags", "Exit codes", "Usage", "Examples"}, title):
			verb := append(slices.Clone(above), row[1])
			found = append(found, verb)
			if !slices.Contains([]string{"call", "query", "explain"}, row[1]) {
				found = append(found, verbsUnder(t, f, verb)...)
			}
		}
	}
	return found
}

func examplesOf(help string) []string {
	_, after, _ := strings.Cut(help, "\nExamples\n")
	after, _, _ = strings.Cut(after, "\n\n")
	var lines []string
	for line := range strings.Lines(after) {
		lines = append(lines, strings.TrimSpace(line))
	}
	return lines
}

// shellWords splits a line as a shell does, with quotes of both kinds around whole words.
func shellWords(line string) []string {
	var words []string
	for _, word := range regexp.MustCompile(`"[^"]*"|'[^']*'|[^ ]+`).FindAllString(line, -1) {
		words = append(words, strings.Trim(word, `"'`))
	}
	return words
}

// TestHelpInANarrowWindow writes no line that the window would break, but for examples, which are there to be copied.
func TestHelpInANarrowWindow(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	for _, words := range []string{"--help", "chat --help", "conversations settings --help", "approvals approve --help", "token create --help"} {
		e := do(t, run{server: f.url, args: strings.Fields(words), terminal: true, env: map[string]string{"COLUMNS": "40", "NO_COLOR": "1"}})
		e.check(t, 0, "Usage")
		for line := range strings.Lines(e.out) {
			line = strings.TrimRight(line, "\n")
			if len([]rune(line)) > 40 && !strings.HasPrefix(line, "  throwbar ") && strings.Contains(strings.TrimSpace(line), " ") {
				t.Errorf("%s: a line of %d columns: %q", words, len([]rune(line)), line)
			}
		}
	}
}

// TestRootHelpHasTheExitCodes holds the table of them to what programs meet.
func TestRootHelpHasTheExitCodes(t *testing.T) {
	t.Parallel()
	e := newFake(t).run(t, "--help")
	for _, code := range []int{0, 1, 2, 3, 4, 5, 6, 7, 130} {
		e.check(t, 0, fmt.Sprintf("\n  %-5d", code))
	}
}

// TestFlagsWithoutAValue says which flag lacks what, and what a length of time looks like.
func TestFlagsWithoutAValue(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	for words, says := range map[string]string{
		"chat --conversation":                     "throwbar: --conversation needs a value (id): `throwbar chat --help` says which",
		"tabs --limit":                            "throwbar: --limit needs a value (rows): `throwbar tabs --help` says which",
		"devices -o":                              "throwbar: --output needs a value (format): `throwbar devices --help` says which",
		"token create --name x --ttl 5":           `throwbar: --ttl "5" is no duration such as 90s, 15m or 720h`,
		"token create --name x --ttl 7 --scope x": `throwbar: --ttl "7" is no duration`,
	} {
		f.run(t, strings.Fields(words)...).check(t, 2, says)
	}
}

// TestExtraVerbsGetTheirExamples stands for the verbs of the server, which another package brings.
func TestExtraVerbsGetTheirExamples(t *testing.T) {
	t.Parallel()
	extra := &cobra.Command{Use: "backup FILE", Short: "Copy", RunE: func(*cobra.Command, []string) error { return nil }}
	do(t, run{args: []string{"backup", "--help"}, extra: []*cobra.Command{extra}}).check(t, 0, "Examples\n  throwbar backup ")
}

// TestServersThatAreNotTrusted says what to do about a certificate that nobody vouches for, and what a key looks like.
func TestServersThatAreNotTrusted(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // it logs the handshake that fails
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte(secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	words := []string{"devices", "--server", server.URL, "--token-file", token}
	do(t, run{args: words}).check(t, 3, "is not trusted on this machine (x509: ", "give its key with --server-key, which `throwbar serve` prints")
	do(t, run{args: append(words, "--server-key", "sha256:00")}).check(t, 2,
		`--server-key "sha256:00" is no server key: a server key is sha256: and 64 hexadecimal digits`)
	do(t, run{args: words, env: map[string]string{"THROWBAR_SERVER_KEY": "x"}}).check(t, 2, `THROWBAR_SERVER_KEY "x" is no server key: `)
}

// full is a disk without room.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

// TestOutputThatIsLost ends with an error where the standard output does not take what was written to it.
func TestOutputThatIsLost(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte(secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, words := range []string{"version", "--help", "devices", "devices -o json", "tabs", "history -o json"} {
		env := map[string]string{"THROWBAR_SERVER": f.url, "THROWBAR_TOKEN_FILE": token}
		var aside buffer
		code := cli.Run(t.Context(), strings.Fields(words), func(name string) string { return env[name] }, strings.NewReader(""), full{}, &aside)
		if code != 1 || aside.String() != "throwbar: some of the output is lost: no space left on device\n" {
			t.Errorf("%s: exit code %d, %q", words, code, aside.String())
		}
	}
	e := f.run(t, "devices", "--output", "yaml") // what went wrong before is said, not this
	e.check(t, 2, `--output "yaml"`)
}

// TestALineThatIsNoMessage says so of a line that no message can be.
func TestALineThatIsNoMessage(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	do(t, run{server: f.url, args: []string{"chat"}, stdin: strings.NewReader(strings.Repeat("x", 2<<20))}).check(t, 2,
		"throwbar: each line of the input is a message, and one is longer than 1.0 MiB")
}
