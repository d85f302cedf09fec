//go:build unix

package term_test

import (
	"io"
	"math/rand/v2"
	"os"
	"regexp"
	"strings"
	"testing"

	"throwbar.dev/throwbar/clients/cli/term"
	"throwbar.dev/throwbar/clients/cli/term/termtest"
)

func pipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = r.Close(), w.Close() })
	return r, w
}

// plainly is what a terminal shows of a text that is written in one piece, with nothing below it.
func plainly(text string, width, height int) string {
	s := termtest.NewScreen(width, height)
	_, _ = io.WriteString(s, strings.ReplaceAll(text, "\n", "\r\n"))
	return s.Picture()
}

// Whatever pieces a text comes in, and whatever is typed meanwhile, in the end it stands there as if it had been written
// in one piece: no character is lost, comes twice, or breaks its line elsewhere.
func TestTextInPiecesIsTheTextInOne(t *testing.T) {
	t.Parallel()
	letters := []rune("abcdefgh   .,\n\n宽字한é🙂")
	styles := []string{"\x1b[1m", "\x1b[2m", "\x1b[31m", "\x1b[0m"}
	for seed := range uint64(60) {
		dice := rand.New(rand.NewPCG(seed, 7))
		width, height := 8+dice.IntN(30), 4+dice.IntN(8)
		d := edit(t, width, height)
		var whole strings.Builder
		for range 40 {
			var piece strings.Builder
			for range dice.IntN(12) {
				piece.WriteRune(letters[dice.IntN(len(letters))])
			}
			text := piece.String()
			if dice.IntN(4) == 0 {
				text = styles[dice.IntN(len(styles))] + text + "\x1b[0m"
			}
			d.write(text)
			whole.WriteString(text)
			switch dice.IntN(6) {
			case 0:
				d.Type(string(letters[dice.IntN(10)]))
			case 1:
				d.Type("宽" + left)
			case 2:
				d.Type(backspace)
			}
		}
		d.write("\nthe end\n")
		whole.WriteString("\nthe end\n")
		d.Type("\x05\x15~").Ends("> ~▏") // no key is left for whoever has the terminal next
		d.Close()
		want := plainly(whole.String(), width, height)
		if d.Ends("the end", "▏"); d.Picture() != want {
			t.Fatalf("seed %d, %d×%d\n%s\nwant:\n%s", seed, width, height, d.Picture(), want)
		}
	}
}

// sequence is all that a terminal may get beside text: colours, movements within the rows of the line, what erases those,
// and the brackets of pastes.
var sequence = regexp.MustCompile(`\x1b\[(?:[0-9;]*m|[0-9]+[AC]|J|\?2004[hl])`)

// No text, however it is cut, and no key makes the terminal do anything.
func FuzzNothingActsOnTheTerminal(f *testing.F) {
	f.Add("a\x1b[2Jb\x1b]0;title\x07\x9b31m\u009b2J\r\b\x1b", "k\x1b[2J\x1b[200~\x1b]0;x\x07\x1b[201~\xff\xc3", 3)
	f.Add("\x1b[31mred\x1b[0m\x1b[999999999999m\x1b[;m\x1b[1", "\x1b[1;5C\x1bO\x1b\x1b\x1b[", 1)
	f.Add("\u202eabc\u2028\x00\t\x7f\u200d🙂\ufe0f\u0301", "\t\x16\x12\x1a\x1b[?1;2c", 7)
	f.Fuzz(func(t *testing.T, text, keys string, cut int) {
		if strings.ContainsAny(keys, "\x1a\x04\x0c") { // they stop the program, end the line, and clear the screen
			t.Skip("keys of a person that are meant to do something")
		}
		d := edit(t, 20, 6)
		at := min(max(cut, 0), len(text))
		d.write(text[:at]).Type(keys)
		d.write(text[at:])
		d.Type("\x1b[201~\x1b[201~\r")
		_ = d.entered()
		d.Close()
		all := d.All()
		rest := sequence.ReplaceAllString(strings.ReplaceAll(strings.ReplaceAll(all, "\r\n", ""), "\r", ""), "")
		for _, r := range rest {
			if term.Escaped(r) {
				t.Fatalf("%q gets through: %q", r, all)
			}
		}
	})
}

// The keys mean the same, however the terminal sends them in pieces.
func TestKeysInPieces(t *testing.T) {
	t.Parallel()
	const keys = "ab\x1b[D\x1b[D宽\x1b[3~\x1b[1;5C🙂\x1b[200~x\r\ny\u00e9\x1b[201~!\x1bOHé\x1b[1~<\r"
	for at := range len(keys) {
		tty := termtest.New(t, 40, 6)
		e, err := term.Edit(tty.TTY, tty.TTY, func() {})
		if err != nil {
			t.Fatal(err)
		}
		e.Ask(term.Prompt{Text: "> "})
		tty.Is("> ▏").Type(keys[:at])
		_, _ = io.WriteString(e, "\n") // something else comes between
		tty.Type(keys[at:])
		if got, want := (<-e.Lines()).Text, "<é宽b🙂x\nyé!"; got != want {
			t.Errorf("cut at %d: %q, want %q", at, got, want)
		}
		e.Close()
	}
}
