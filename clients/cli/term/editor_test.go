//go:build unix

package term_test

import (
	"io"
	"strings"
	"testing"
	"time"

	"throwbar.dev/throwbar/clients/cli/term"
	"throwbar.dev/throwbar/clients/cli/term/termtest"
)

const (
	up, down, right, left = "\x1b[A", "\x1b[B", "\x1b[C", "\x1b[D"
	home, end, del        = "\x1b[H", "\x1b[F", "\x1b[3~"
	backspace             = "\x7f"
)

// desk is an editor on a terminal.
type desk struct {
	*term.Editor
	*termtest.Terminal

	t       *testing.T
	pressed chan struct{}
}

func edit(t *testing.T, width, height int) *desk {
	t.Helper()
	d := &desk{Terminal: termtest.New(t, width, height), t: t, pressed: make(chan struct{}, 8)}
	e, err := term.Edit(d.TTY, d.TTY, func() {
		select {
		case d.pressed <- struct{}{}:
		default:
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	d.Editor = e
	t.Cleanup(e.Close)
	e.Ask(term.Prompt{Text: "> "})
	d.Is("> ▏")
	return d
}

func (d *desk) write(text string) *desk {
	d.t.Helper()
	if _, err := io.WriteString(d.Editor, text); err != nil {
		d.t.Fatal(err)
	}
	return d
}

func (d *desk) Type(keys string) *desk    { d.t.Helper(); d.Terminal.Type(keys); return d }
func (d *desk) Paste(text string) *desk   { d.t.Helper(); d.Terminal.Paste(text); return d }
func (d *desk) Is(rows ...string) *desk   { d.t.Helper(); d.Terminal.Is(rows...); return d }
func (d *desk) Ends(rows ...string) *desk { d.t.Helper(); d.Terminal.Ends(rows...); return d }

// entered is the next line that somebody enters.
func (d *desk) entered() term.Entered {
	d.t.Helper()
	select {
	case line, ok := <-d.Lines():
		if !ok {
			d.t.Fatal("the lines are at their end")
		}
		return line
	case <-time.After(time.Minute):
		d.t.Fatalf("no line is entered\n%s", d.Picture())
		return term.Entered{}
	}
}

func (d *desk) enters(want string) *desk {
	d.t.Helper()
	if got := d.entered(); got.Text != want || got.Question != "" {
		d.t.Errorf("entered %q under %q, want %q", got.Text, got.Question, want)
	}
	d.Shows("> ▏") // what is looked for next is not what stood there before
	return d
}

func TestTheLineStaysWholeWhileTextStreams(t *testing.T) {
	t.Parallel()
	d := edit(t, 20, 8)
	d.write("Once").Is("Once", "> ▏")
	d.Type("and").Is("Once", "> and▏")
	d.write(" upon a time").Is("Once upon a time", "> and▏")
	d.Type(left+left+"l").Is("Once upon a time", "> al▏nd")
	d.write(" there was a king").Is("Once upon a time the", "re was a king", "> al▏nd")
	d.write(".\n\x1b[2mHe\x1b[0m").Is("Once upon a time the", "re was a king.", "He", "> al▏nd")
	d.Type("\r").enters("alnd").Is("Once upon a time the", "re was a king.", "He", "> alnd", "> ▏")
	// The row that the line has ended is not ended again, and what follows stands below.
	d.write("\n").write("reigned").Is("Once upon a time the", "re was a king.", "He", "> alnd", "reigned", "> ▏")
	d.write(" and\nso on\nand on\n\n").Is("Once upon a time the", "re was a king.", "He", "> alnd", "reigned and", "so on", "and on", "", "> ▏")
}

func TestARowThatIsJustFull(t *testing.T) {
	t.Parallel()
	d := edit(t, 10, 6)
	d.write("0123456789").Is("0123456789", "> ▏")
	d.write("\n").Is("0123456789", "> ▏").write("x\n").Is("0123456789", "x", "> ▏")
	d.write("01234567宽").Is("0123456789", "x", "01234567宽", "> ▏")
	d.write("宽宽宽宽宽").Is("0123456789", "x", "01234567宽", "宽宽宽宽宽", "> ▏")
	d.write("a宽宽宽宽宽").Is("0123456789", "x", "01234567宽", "宽宽宽宽宽", "a宽宽宽宽", "宽", "> ▏")
	d.Type("12345678").Is("0123456789", "x", "01234567宽", "宽宽宽宽宽", "a宽宽宽宽", "宽", "> 12345678", "▏")
	d.Type("9"+home).Ends("宽", "> ▏12345678", "9")
}

func TestEditingWideCharacters(t *testing.T) {
	t.Parallel()
	d := edit(t, 20, 6)
	d.Type("aé宽e\u0301🙂z").Is("> aé宽e\u0301🙂z▏")
	d.Type(left + left).Is("> aé宽e\u0301▏🙂z")
	d.Type(backspace + backspace).Is("> aé宽▏🙂z")
	d.Type(backspace).Is("> aé▏🙂z")
	d.Type("한국").Is("> aé한국▏🙂z")
	d.Type(home + del).Is("> ▏é한국🙂z").Type(end + "!").Is("> é한국🙂z!▏")
	d.Type("\x1bOH" + right + "\x0b").Is("> é▏").Type(" two three").Is("> é two three▏")
	d.Type("\x17").Is("> é two ▏").Type("\x1bb").Is("> é ▏two").Type("\x1b[1;5D").Is("> ▏é two")
	d.Type("\x1b[1;5C").Is("> é ▏two").Type("\x15").Is("> ▏two").Type("\x1b[4~\r").enters("two ")
	d.Type(strings.Repeat("宽", 10)).Ends("> "+strings.Repeat("宽", 9), "宽▏")
	d.Type(strings.Repeat(left, 2)).Ends("> "+strings.Repeat("宽", 8)+"▏宽", "宽")
	d.Type(right).Ends("> "+strings.Repeat("宽", 9), "▏宽").Type(left+del+end).Ends("> "+strings.Repeat("宽", 9), "▏")
}

func TestHistoryOfTheLine(t *testing.T) {
	t.Parallel()
	d := edit(t, 20, 10)
	d.Type("one\r").enters("one").Type("  \r").enters("  ").Type("two\r").enters("two").Type("two\r").enters("two")
	d.Ask(term.Prompt{Text: "Yes? ", Question: "q"})
	d.Ends("Yes? ▏").Type("y\r")
	if got := d.entered(); got.Text != "y" || got.Question != "q" {
		t.Errorf("%+v", got)
	}
	d.Ask(term.Prompt{Text: "> "})
	d.Ends("> ▏").Type("thr").Type(up).Ends("> two▏").Type(up).Ends("> one▏").Type(up).Type(down).Ends("> two▏").Type(down).Ends("> thr▏")
	d.Type(up + up + "!\r").enters("one!")
}

func TestPastes(t *testing.T) {
	t.Parallel()
	d := edit(t, 30, 8)
	d.Type("see: ").Paste("one\n\ttwo \x07\x1b[2J\u202e\x9b\nthree\n\n").Ends("> see: one", "   two [2J", "  three▏")
	d.Type(up) // there is no history: nothing is lost
	d.Type(left+backspace+home+"I ").Ends("> I ▏see: one", "   two [2J", "  thre")
	d.Type(end+"\r").enters("I see: one\n\ttwo [2J\nthre").Ends("> I see: one", "        two [2J", "  thre", "> ▏")
	d.Type("a\x1b\rb").Ends("> a", "  b▏").Type("\r").enters("a\nb")
	d.Type(up).Ends("> a", "  b▏").Type("\x03")
	<-d.pressed
	if !d.Clear() {
		t.Error("there was nothing to clear")
	}
	d.Ends("> ▏")
	if d.Clear() {
		t.Error("there was something to clear")
	}
	// One that is longer than the screen is shown around the cursor, and is whole.
	long := strings.Repeat("line\n", 3000) + "last"
	d.Paste(long).Ends("  line", "  line", "  line", "  line", "  line", "  line", "  line", "  last▏")
	d.write("half").Ends("half", "  line", "  line", "  line", "  line", "  line", "  line", "  last▏")
	d.Type(home).Ends("half", "> ▏line", "  line", "  line", "  line", "  line", "  line", "  line")
	d.Type("\r").enters(long)
	// A paste whose end never comes is ended by an interrupt.
	d.Type("\x1b[200~never").Ends("> never▏").Type("\x03")
	<-d.pressed
	d.Type("!\r").enters("never!")
}

// What is typed when a question comes answers nothing, however much of it was there by then, and is there again afterwards.
func TestAQuestionPutsTheLineAside(t *testing.T) {
	t.Parallel()
	d := edit(t, 40, 12)
	d.Paste("oka\nand").Ends("> oka", "  and▏")
	d.Ask(term.Prompt{Text: "Approve 1? ", Question: "one", Held: "First: "})
	d.Is("First: oka", "  and▏").Type(" y").Is("First: oka", "  and y▏").Type("\r").Is("Approve 1? ▏")
	d.Type("n").Is("Approve 1? n▏")
	d.Ask(term.Prompt{Text: "Approve 2? ", Question: "two", Held: "First: "})
	d.Is("Approve 2? ▏").Type("y\r")
	if got := d.entered(); got.Text != "y" || got.Question != "two" {
		t.Errorf("%+v", got)
	}
	d.Ask(term.Prompt{Text: "9ab1> "})
	d.Is("Approve 2? y", "9ab1> oka", "  and y▏")
	// A question that goes away before it was reached leaves the line as it is.
	d.Ask(term.Prompt{Text: "Approve 3? ", Question: "three", Held: "First: "})
	d.Ends("First: oka", "  and y▏").Ask(term.Prompt{Text: "Approve 4? ", Question: "four", Held: "First: "})
	d.Type("e").Ends("First: oka", "  and ye▏").Ask(term.Prompt{Text: "> "})
	d.Ends("> oka", "  and ye▏").Type("s\r").enters("oka\nand yes")
	// Only the words change: the line stays.
	d.Type("x").Ends("> x▏").Ask(term.Prompt{Text: "3f2\x1b[2Ja> "})
	d.Ends(`3f2\x1b[2Ja> x▏`)
}

func TestKeysThatAreNotOfTheLine(t *testing.T) {
	t.Parallel()
	d := edit(t, 20, 6)
	d.Type("a\x03").Is("> a▏")
	<-d.pressed
	d.Type("b\x1b[15~\x1b[1;2P\x1b\x1b[D\t\x00").Is("> a▏b")
	d.Type("\x04").Is("> a▏").Type("\x0c").Is("> a▏").Type("\x15").Is("> ▏")
	d.write("half").Is("half", "> ▏").Type("\x0c").Ends("half", "> ▏").Type("\x04")
	if _, ok := <-d.Lines(); ok {
		t.Error("Ctrl-D enters a line")
	}
	d.Close()
	d.Ends("half", "▏").GivenBack()
}

func TestAnotherSize(t *testing.T) {
	t.Parallel()
	d := edit(t, 40, 8)
	d.write("twenty columns and s").Type("typed").Is("twenty columns and s", "> typed▏")
	d.Resize(20, 8)
	if d.Width() != 20 {
		t.Errorf("%d columns", d.Width())
	}
	d.Type(".").Is("twenty columns and s", "> typed.▏")
	d.write("ome more").Is("twenty columns and s", "ome more", "> typed.▏")
	d.Resize(60, 3)
	d.write(", and more\n").Is("twenty columns and s", "ome more", ", and more", "> typed.▏")
	d.Type(strings.Repeat("0123456789", 6)).Ends("> typed."+strings.Repeat("0123456789", 5)+"01", "23456789▏")
}

// However a terminal is left, it is as before, and what is written then is written as it is.
func TestTheTerminalIsGivenBack(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]func(*desk){
		"closed":   func(d *desk) { d.Close(); d.Close() },
		"released": func(d *desk) { d.Release() },
		"panic": func(d *desk) {
			defer func() {
				if recover() != "oh" {
					d.t.Error("the panic is lost")
				}
			}()
			defer d.Guard()
			panic("oh")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := edit(t, 20, 6)
			d.write("half").Type("draft").Is("half", "> draft▏")
			if d.Edits() {
				t.Error("nothing was taken over")
			}
			leave(d)
			d.Is("half", "▏").GivenBack()
			for range d.Lines() {
				t.Error("a line that nobody has entered")
			}
			d.write("after\n").Is("half", "after", "▏")
			d.Ask(term.Prompt{Text: "no "})
			d.Clear()
		})
	}
}

func TestATerminalThatGoesAway(t *testing.T) {
	t.Parallel()
	d := edit(t, 20, 6)
	d.Type("draft").Is("> draft▏").Hangup()
	if line, ok := <-d.Lines(); ok {
		t.Errorf("entered %q", line.Text)
	}
	d.write("nobody reads it") // and nothing fails
}

func TestNoTerminalIsTakenOver(t *testing.T) {
	t.Parallel()
	tty := termtest.New(t, 20, 6)
	r, w := pipe(t)
	if _, err := term.Edit(r, w, nil); err == nil {
		t.Error("a pipe was taken over")
	}
	tty.GivenBack()
}
