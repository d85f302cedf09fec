package cli

import (
	"context"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"throwbar.dev/throwbar/clients/cli/term"
)

const leaveWait = time.Second

// editor is the terminal where a verb has taken it over, nil elsewhere.
type editor struct{ atomic.Pointer[term.Editor] }

func (e *editor) lines() <-chan term.Entered {
	if has := e.Load(); has != nil {
		return has.Lines()
	}
	return nil
}

func (e *editor) clear() bool {
	has := e.Load()
	return has != nil && has.Clear()
}

func (e *editor) release() {
	if has := e.Load(); has != nil {
		has.Release()
	}
}

// leave is release for a program that ends: a terminal that takes nothing does not hold it back.
func (e *editor) leave() {
	has := e.Load()
	if has == nil {
		return
	}
	released := make(chan struct{})
	go func() {
		defer close(released)
		has.Release()
	}()
	select {
	case <-released:
	case <-time.After(leaveWait):
	}
}

// terminal is the terminal that a person sits at, if the program can draw there: all three streams are that one, and it
// may be sent more than text.
func (p *program) terminal() (in, out *os.File) {
	in, isIn := p.Stdin.(*os.File)
	out, isOut := p.Stdout.(*os.File)
	aside, isErr := p.Stderr.(*os.File)
	if !isIn || !isOut || !isErr || !p.person() || !p.out.Colour || !p.err.Colour || p.Env("TERM") == "" {
		return nil, nil
	}
	one, errOut := out.Stat()
	other, errAside := aside.Stat()
	if errOut != nil || errAside != nil || !os.SameFile(one, other) {
		return nil, nil
	}
	return in, out
}

// takeOver keeps the line that a person types in the last rows of the terminal, where that is possible: all that is
// written goes above it. interrupt ends the chat. What comes back puts the terminal back.
func (c *chat) takeOver(interrupt context.CancelCauseFunc) (giveBack func()) {
	p := c.program
	in, out := p.terminal()
	if !c.person || in == nil {
		return func() {}
	}
	e, err := term.Edit(in, out, func() {
		if c.twice.Load() && p.editor.clear() {
			return // nothing that was typed is lost by leaving: the next one leaves
		}
		if !c.interrupt() {
			interrupt(errInterrupted)
			p.editor.release() // whoever cannot wait any longer has a terminal that interrupts
		}
	})
	if err != nil {
		return func() {} // the terminal's own editing has to do
	}
	plain := []io.Writer{p.out.W, p.err.W}
	p.editor.Store(e)
	p.out.W, p.err.W = e, e
	return func() {
		p.editor.Store(nil)
		e.Close()
		p.out.W, p.err.W = plain[0], plain[1]
	}
}

// goes runs something beside the chat, until the end of the chat.
func (c *chat) goes(run func()) {
	e := c.program.editor.Load()
	c.work.Go(func() {
		if e != nil {
			defer e.Guard()
		}
		run()
	})
}

// before has the right words before the line, and lines as wide as the terminal is now.
func (c *chat) before(e *term.Editor) {
	if c.program.Env("COLUMNS") == "" {
		c.program.out.Resize(e.Width())
		c.program.err.Resize(e.Width())
	}
	if c.desk.wants() {
		question := c.desk.question()
		question.Held = "Enter puts this aside for the approval: "
		e.Ask(question)
		return
	}
	c.desk.typed = false // a line says itself what it was typed for
	e.Ask(term.Prompt{Text: c.at.GetHandle() + "> "})
}

// entered takes a line with what stood before it. One that answers something is no message, also when nobody asks that
// any more, and one that was begun as a message answers nothing.
func (c *chat) entered(ctx context.Context, line term.Entered) (bool, error) {
	asked := ""
	if c.desk.wants() {
		asked = c.desk.question().Question
	}
	switch {
	case line.Question == "":
		return c.typedToAgent(ctx, line.Text)
	case line.Question != asked && !strings.HasPrefix(strings.TrimSpace(line.Text), "/"):
		c.twice.Store(false)
		c.note("Nobody asks that any more: it decided nothing, and was sent to nobody.")
		return false, nil
	default:
		return c.typed(ctx, line.Text)
	}
}
