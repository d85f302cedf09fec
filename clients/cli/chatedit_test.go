//go:build unix

package cli_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"throwbar.dev/throwbar/clients/cli"
	"throwbar.dev/throwbar/clients/cli/term"
	"throwbar.dev/throwbar/clients/cli/term/termtest"
	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
)

// seat is a person at a terminal who chats.
type seat struct {
	*termtest.Terminal

	t    *testing.T
	code chan int
}

// sits begins a chat at a terminal.
func sits(t *testing.T, f *fake, env map[string]string, words ...string) *seat {
	t.Helper()
	s := &seat{Terminal: termtest.New(t, 60, 24), t: t, code: make(chan int, 1)}
	config := cli.Config{
		Args: append([]string{"chat"}, words...), Env: environment(t, f, env), Stdin: s.TTY, Stdout: s.TTY, Stderr: s.TTY,
		Signals: make(chan os.Signal), Now: now,
	}
	go func() { s.code <- config.Run(t.Context()) }()
	return s
}

// environment is that of a terminal with colours, and a home of its own.
func environment(t *testing.T, f *fake, more map[string]string) func(string) string {
	t.Helper()
	home := t.TempDir()
	if err := os.WriteFile(filepath.Join(home, "owner.token"), []byte(secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{
		"HOME": home, "THROWBAR_DATA_DIR": home, "XDG_CACHE_HOME": filepath.Join(home, "cache"), "THROWBAR_SERVER": f.url, "TERM": "xterm",
	}
	for k, v := range more {
		env[k] = v
	}
	return func(k string) string { return env[k] }
}

// leaves waits for the end of the program, which gives the terminal back as it was.
func (s *seat) leaves(code int) {
	s.t.Helper()
	select {
	case got := <-s.code:
		if got != code {
			s.t.Errorf("exit code %d, want %d\n%s", got, code, s.Picture())
		}
	case <-time.After(time.Minute):
		s.t.Fatalf("it does not end\n%s", s.Picture())
	}
	s.GivenBack()
}

// What is typed while a turn streams stands below it, whole, until it is entered.
func TestTheLineOfAChatStaysWhole(t *testing.T) {
	t.Parallel()
	f := newFake(t, withConversations)
	s := sits(t, f, nil, "--conversation", "3f2b")
	head := []string{
		"3f2b  Trip", "/history shows what was said, /help what can be typed; Ctrl-", "C stops the agent, twice leaves.",
	}
	is := func(rows ...string) { t.Helper(); s.Is(append(head[:len(head):len(head)], rows...)...) }
	is("3f2b> ▏")
	s.Type("and th")
	is("3f2b> and th▏")
	f.happens("3f2b", delta("The first tab is about"))
	is("The first tab is about", "3f2b> and th▏")
	s.Type("e")
	is("The first tab is about", "3f2b> and the▏")
	f.happens("3f2b", delta(" the weather, and the second one is an article of 宽 characters.\nThe"))
	is("The first tab is about the weather, and the second one is an", " article of 宽 characters.", "The", "3f2b> and the▏")
	s.Type("n?\x1b[D\x1b[D\x1b[Ds")
	is("The first tab is about the weather, and the second one is an", " article of 宽 characters.", "The", "3f2b> and ths▏en?")
	f.happens("3f2b", &agentv1.Event{Kind: &agentv1.Event_ToolCall{ToolCall: &agentv1.ToolCall{CallId: "c9", Name: "readAll", Arguments: `{"x":1}`}}})
	f.happens("3f2b", delta("Third\x1b[2J\x1b]0;x\x07."))
	is("The first tab is about the weather, and the second one is an", " article of 宽 characters.", "The", "· [1] readAll x=1",
		`Third\x1b[2J\x1b]0;x\x07.`, "3f2b> and ths▏en?")
	s.Type("\x7f\r").Shows("3f2b> and then?\n", "3f2b> ▏")
	f.happens("3f2b", delta(" Fourth."))
	s.Shows("3f2b> and then?\n", " Fourth.\n3f2b> ▏")
	s.Type("\x1b[A").Shows(" Fourth.\n3f2b> and then?▏").Type("\x15").Shows(" Fourth.\n3f2b> ▏").Type("/quit\r")
	s.leaves(0)
	if sent := f.sent(); len(sent) != 1 || sent[0].GetMessage() != "and then?" {
		t.Errorf("sent %v", sent)
	}
	if all := s.All(); strings.Contains(all, "\x1b[2J") || strings.Contains(all, "\x1b]") {
		t.Errorf("escapes got through: %q", all)
	}
}

// A paste of several lines is one message, and is sent when the person says so.
func TestAPasteIsOneMessage(t *testing.T) {
	t.Parallel()
	f := newFake(t, withConversations, func(f *fake) { f.onChat = plays(turn) })
	s := sits(t, f, nil, "--conversation", "3f2b")
	s.Shows("3f2b> ▏").Type("read: ").Paste("/stop\ny\n/quit\n").Shows("3f2b> read: /stop\n  y\n  /quit▏")
	s.Type("\r").Shows("3f2b> read: /stop\n  y\n  /quit\n", "Two tabs stay open.\n3f2b> ▏").Type("\x04")
	s.leaves(0)
	if sent := f.sent(); len(sent) != 1 || sent[0].GetMessage() != "read: /stop\ny\n/quit" {
		t.Errorf("sent %v", sent)
	}
}

// An approval is asked in place of the line: what was typed by then decides nothing, and is there again when it is decided.
// What was typed for a question that nobody asks any more decides nothing either, and is no message.
func TestALineThatIsTypedWhenAnApprovalComes(t *testing.T) {
	t.Parallel()
	f := newFake(t, withConversations)
	s := sits(t, f, nil, "--conversation", "3f2a")
	s.Shows("a turn runs", "3f2a> ▏").Type("y").Shows("3f2a> y▏")
	a := closing(bigID, laptop, 3)
	a.ConversationId, a.Principal = conversationIDs()[0], conversationIDs()[1]
	f.desk.put(a, false)
	const asks = "Approve 3f2a9c1d? y yes, n no, d show it again, s decide lat\ner: "
	const held = "\nEnter puts this aside for the approval: "
	s.Shows("Approval 3f2a9c1d", "asked by  reader (9ab1), at work for this conversation", held+"y▏").Type("es\r").Shows("\n" + asks + "▏")
	s.Type("\r").Shows(strings.TrimSpace(asks) + "\n" + asks + "▏")
	f.happens("3f2a", delta("Meanwhile"))
	s.Shows("Meanwhile\n" + asks + "▏").Type("n\r").Shows("Why not? Whoever asked is told; empty for no reason: ▏")
	s.Type("not").Shows("reason: not▏")
	f.desk.end(bigID, approved, "tok-9", "")
	s.Shows("Approval 3f2a9c1d was given", "\n3f2a> yes▏")
	if n := len(f.desk.decisions()); n != 0 {
		t.Errorf("%d decisions", n)
	}
	other := closing(smallID, laptop, 2)
	other.ConversationId, other.Principal = conversationIDs()[0], conversationIDs()[1]
	f.desk.put(other, false)
	s.Shows("Approval 3f7b0000", held+"yes▏").Type("\r").Shows("Approve 3f7b0000? y yes", "\ner: ▏")
	s.Type("y\r").Shows("3f7b0000  approved", "\n3f2a> yes▏")
	s.Type("\x15/quit\r")
	s.leaves(0)
	if n := len(f.desk.decisions()); n != 1 || len(f.sent()) != 0 {
		t.Errorf("%d decisions, sent %v", n, f.sent())
	}
}

// Ctrl-C stops the turn and leaves what is typed; where no turn runs it takes that away, then warns, then leaves.
func TestCtrlC(t *testing.T) {
	t.Parallel()
	f := newFake(t, func(f *fake) {
		f.onChat = func(ctx context.Context, _ *agentv1.SendRequest, send sendChat) error {
			if err := send(delta("A long story")); err != nil {
				return err
			}
			<-ctx.Done()
			return nil
		}
	})
	s := sits(t, f, nil)
	s.Shows("\n> ▏").Type("tell me\r").Shows("A long story\n3f2a> ▏").Type("and").Shows("3f2a> and▏")
	s.Type("\x03").Shows("A long story\nStopped.\n3f2a> and▏").Type("!\r").Shows("3f2a> and!\nA long story\n3f2a> ▏")
	s.Type("\x03").Shows("3f2a> and!\nA long story\nStopped.\n3f2a> ▏").Type("\r").Shows("Stopped.\n3f2a>\n3f2a> ▏")
	s.Type("x").Shows("3f2a> x▏").Type("\x03").Shows("\n3f2a> ▏").Type("\x03").Shows("Press Ctrl-C again to leave.\n3f2a> ▏")
	// The next one leaves, unless that would lose what is typed, or another turn runs by then: it is for that.
	s.Type("y").Shows("3f2a> y▏").Type("\x03").Shows("leave.\n3f2a> ▏")
	f.happens("3f2a", &agentv1.Event{TurnId: "t", Kind: &agentv1.Event_TurnStarted{TurnStarted: &agentv1.TurnStarted{}}})
	f.happens("3f2a", delta("Woken"))
	s.Shows("Woken\n3f2a> ▏").Type("\x03")
	f.stopsInVain(t)
	s.Type("/stop\r").Shows("No turn runs.")
	f.happens("3f2a", over(agentv1.TurnEnd_TURN_END_ANSWERED))
	f.happens("3f2a", &agentv1.Event{Kind: &agentv1.Event_Notice{Notice: &agentv1.Notice{Code: "x", Text: "It has ended."}}})
	s.Shows("It has ended.\n3f2a> ▏")
	s.Type("\x03").Shows("Press Ctrl-C again to leave.\n3f2a> ▏").Type("\x03")
	s.leaves(130)
	s.Ends("Press Ctrl-C again to leave.", "To go on: throwbar chat --conversation 3f2a", "▏")
}

// Where a terminal may get nothing but text, and where a stream is no terminal, nothing is taken over.
func TestWhereNothingIsTakenOver(t *testing.T) {
	t.Parallel()
	f := newFake(t, withConversations)
	for name, env := range map[string]map[string]string{
		"no colour": {"NO_COLOR": "1"}, "dumb": {"TERM": "dumb"}, "unknown": {"TERM": "", "NO_COLOR": "1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := sits(t, f, env, "--conversation", "3f2b")
			s.Shows("3f2b> ▏")
			if !s.untouched() {
				t.Error("the terminal was taken over")
			}
			s.Type("/quit\r")
			s.leaves(0)
			if all := s.All(); strings.Contains(all, "\x1b") {
				t.Errorf("escapes: %q", all)
			}
		})
	}
	t.Run("output to a file", func(t *testing.T) {
		t.Parallel()
		tty := termtest.New(t, 60, 24)
		out, err := os.Create(filepath.Join(t.TempDir(), "out"))
		if err != nil {
			t.Fatal(err)
		}
		s := &seat{Terminal: tty, t: t, code: make(chan int, 1)}
		config := cli.Config{
			Args: []string{"chat", "--conversation", "3f2b"}, Env: environment(t, f, nil), Stdin: tty.TTY, Stdout: out, Stderr: tty.TTY,
			Signals: make(chan os.Signal), Now: now, Terminal: term.IsTerminal,
		}
		go func() { s.code <- config.Run(t.Context()) }()
		if s.Shows("3f2b> ▏"); !s.untouched() {
			t.Error("the terminal was taken over")
		}
		s.Type("/quit\r")
		s.leaves(0)
	})
}

// untouched says whether the terminal has its own editing still.
func (s *seat) untouched() bool { return !strings.Contains(s.Raw(), "\x1b[?2004h") && s.Edits() }

// A line belongs to what stood before it when it was entered, also when the program gets to it later: a message decides
// nothing, and an answer is never a message.
func TestALineIsReadLate(t *testing.T) {
	t.Parallel()
	sending, send := make(chan struct{}, 8), make(chan struct{})
	f := newFake(t, withConversations, func(f *fake) {
		f.down = func(string) error {
			sending <- struct{}{}
			<-send
			return nil
		}
	})
	s := sits(t, f, nil, "--conversation", "3f2a")
	s.Shows("a turn runs", "3f2a> ▏").Type("hello\r").Shows("3f2a> hello\n")
	<-sending
	a := closing(bigID, laptop, 3)
	a.ConversationId, a.Principal = conversationIDs()[0], conversationIDs()[1]
	f.desk.put(a, false)
	s.Type("y\r").Shows("3f2a> y\n")
	send <- struct{}{} // the message
	<-sending          // "y" is one too, whether the approval is there already or not
	send <- struct{}{}
	s.Shows("Approve 3f2a9c1d? y yes").Type("/steer on\r").Shows("er: /steer on\n")
	<-sending
	s.Type("y\r").Shows("er: y\n")
	f.desk.end(bigID, denied, "tok-9", "")
	close(send)
	s.Shows("Approval 3f2a9c1d was denied", "3f2a> ▏").Type("/quit\r")
	s.leaves(0)
	var sent []string
	for _, m := range f.sent() {
		sent = append(sent, m.GetMessage())
	}
	if strings.Join(sent, ", ") != "hello, y, on" {
		t.Errorf("sent %q", sent)
	}
	for _, d := range f.desk.decisions() {
		if len(d.GetDecisions()) != 1 || d.GetDecisions()[0].GetApprovalId() != bigID {
			t.Errorf("decided %v", d)
		}
	}
}
