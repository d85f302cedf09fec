package term

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	xterm "golang.org/x/term"
)

const (
	enteredAhead = 64 // lines that may be entered before somebody takes them
	readSize     = 4 << 10
	pasteOn      = "\x1b[?2004h"
	pasteOff     = "\x1b[?2004l"
)

// Prompt stands before the line that is typed.
type Prompt struct {
	Text string
	// Question says what the line answers; empty if it is no answer. An answer that was begun is dropped where another
	// question comes.
	Question string
	// Held stands in place of Text before a line that was begun when the first question came, so that what somebody types
	// then answers nothing: entering that line puts it aside until the last question is answered.
	Held string
}

// Entered is a line that a person has entered. It has several lines if such were pasted.
type Entered struct {
	Text     string
	Question string // that stood before it
}

// Editor keeps the line that a person types in the last rows of a terminal, whole, while text is written above it. The
// keys, the history and what they do to the line are those of golang.org/x/term; where the line stands on the screen is
// decided here, because characters may be two columns wide and lines more than a screen long.
//
// All methods may be called at any time by anybody.
type Editor struct {
	in, out   *os.File
	line      *xterm.Terminal
	interrupt func()
	keys      decoder // of the goroutine that reads
	lines     chan Entered
	more      chan struct{} // there are keys, or another prompt; room for one
	done      chan struct{}
	work      sync.WaitGroup

	mu     sync.Mutex
	saved  *xterm.State // of the terminal; nil while it is as it was; guarded by mu
	gone   bool         // it is over; guarded by mu
	ended  bool         // no key comes any more; guarded by mu
	typed  []byte       // keys that are not dealt with; guarded by mu
	given  []byte       // keys of our own, before those; guarded by mu
	paste  bool         // within a paste; guarded by mu
	sheet  sheet        // guarded by mu
	row    row          // guarded by mu
	asked  Prompt       // what stands there; guarded by mu
	wanted Prompt       // what shall; guarded by mu
	held   bool         // the line was begun before what is asked; guarded by mu
	draft  string       // what was put aside for a question; guarded by mu
}

// Edit takes a terminal over until Close. interrupt is called for each Ctrl-C. It fails where there is no terminal that
// can be taken over; then nothing has changed.
func Edit(in, out *os.File, interrupt func()) (*Editor, error) {
	if !canEdit {
		return nil, errors.ErrUnsupported
	}
	e := &Editor{
		in: in, out: out, interrupt: interrupt, lines: make(chan Entered, enteredAhead), more: make(chan struct{}, 1), done: make(chan struct{}),
	}
	e.line = xterm.NewTerminal(below{e}, "")
	if err := e.line.SetSize(unbounded, 1); err != nil {
		return nil, fmt.Errorf("begin a line: %w", err)
	}
	e.line.History = &entries{editor: e}
	e.mu.Lock()
	err := e.takeOver()
	e.mu.Unlock()
	if err != nil {
		return nil, err
	}
	e.heed()
	go e.read() // a read cannot be called back everywhere: it ends with the next key or with the process
	e.work.Go(e.edit)
	return e, nil
}

// takeOver puts the terminal into raw mode. Whoever calls it has the lock.
func (e *Editor) takeOver() error {
	var state *xterm.State
	err := control(e.in, func(fd int) (err error) {
		state, err = xterm.MakeRaw(fd)
		return err
	})
	if err != nil {
		return fmt.Errorf("take the terminal over: %w", err)
	}
	if e.saved == nil { // it may have been changed while we were stopped
		e.saved = state
	}
	e.put(pasteOn)
	return nil
}

// giveBack puts the terminal back. Whoever calls it has the lock.
func (e *Editor) giveBack() {
	if e.saved == nil {
		return
	}
	e.put(e.sheet.erase() + e.sheet.close() + pasteOff)
	_ = control(e.in, func(fd int) error { return xterm.Restore(fd, e.saved) }) // a terminal that is gone has no state
	e.saved = nil
}

// Release puts the terminal back and reads nothing more from it. It does not wait.
func (e *Editor) Release() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.gone {
		return
	}
	e.gone = true
	e.giveBack()
	close(e.done)
	_ = unblock(e.in)
}

// Close is Release, and waits until nothing of the editor runs.
func (e *Editor) Close() {
	e.Release()
	e.work.Wait()
}

// Guard has to be deferred by whatever runs while the terminal is taken over: a panic puts it back before it goes on.
func (e *Editor) Guard() {
	if problem := recover(); problem != nil {
		e.Release()
		panic(problem)
	}
}

// Lines are the lines that are entered. It is closed at the end of the input, for which Ctrl-D stands, and by Close.
func (e *Editor) Lines() <-chan Entered { return e.lines }

// Ask puts a prompt before the line.
func (e *Editor) Ask(p Prompt) {
	e.mu.Lock()
	defer e.mu.Unlock()
	p.Text, p.Held = Visible(p.Text), Visible(p.Held)
	if p == e.wanted {
		return
	}
	e.wanted = p
	e.wake()
}

// Clear takes away what is typed. It says false if nothing is.
func (e *Editor) Clear() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.row.line()) == 0 || e.paste {
		return false
	}
	e.given = append(e.given, keysEmpty...)
	e.wake()
	return true
}

// Width is how many columns the terminal has.
func (e *Editor) Width() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.measure()
	return e.sheet.width
}

// Write writes text above the line. Colours are the only sequences that a terminal gets from it.
func (e *Editor) Write(text []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.gone {
		return e.out.Write(text)
	}
	e.measure()
	e.draw(e.sheet.add(string(text)))
	return len(text), nil
}

func (e *Editor) measure() {
	width, height := 0, 0
	_ = control(e.out, func(fd int) (err error) {
		width, height, err = xterm.GetSize(fd)
		return err
	}) // a terminal that does not tell has the usual size
	e.sheet.resize(width, height)
}

// draw writes what is finished and the line below it. Whoever calls it has the lock.
func (e *Editor) draw(finished string) {
	if e.saved == nil {
		e.put(finished)
		return
	}
	e.measure()
	if e.row.cleared {
		e.row.cleared = false
		_ = e.sheet.erase()
		finished += "\x1b[H\x1b[2J"
	}
	prompt := e.asked.Text
	if e.held {
		prompt = e.asked.Held
	}
	e.put(e.sheet.draw(finished, prompt, e.row.line(), e.row.at))
}

// put writes to the terminal. One that is gone is no matter: reading says so.
func (e *Editor) put(text string) { _, _ = io.WriteString(e.out, text) }

func (e *Editor) wake() {
	select {
	case e.more <- struct{}{}:
	default:
	}
}

// read reads keys until the end.
func (e *Editor) read() {
	defer e.Guard()
	chunk := make([]byte, readSize)
	for {
		n, err := e.in.Read(chunk)
		keys, pressed := e.keys.decode(chunk[:n])
		e.mu.Lock()
		e.typed, e.paste = append(e.typed, keys...), e.keys.pasting
		e.ended = err != nil
		gone := e.gone
		e.wake()
		e.mu.Unlock()
		if gone {
			return
		}
		for _, key := range pressed {
			if key == keyInterrupt {
				e.interrupt()
			} else {
				e.suspend()
			}
		}
		if err != nil {
			return
		}
	}
}

// edit gives keys to the line, and lines to whoever takes them.
func (e *Editor) edit() {
	defer e.Guard()
	defer close(e.lines)
	for {
		text, err := e.line.ReadLine()
		if err != nil && !errors.Is(err, xterm.ErrPasteIndicator) {
			return
		}
		e.mu.Lock()
		if e.held {
			e.draft, e.held = text, false
			e.mu.Unlock()
			continue
		}
		asked := e.asked
		text = strings.ReplaceAll(text, string(keyNewline), "\n")
		e.measure()
		e.draw(e.sheet.between(boldBegins + asked.Text + plainAgain + strings.ReplaceAll(text, "\n", "\n"+indented) + "\n"))
		e.mu.Unlock()
		select {
		case e.lines <- Entered{Text: text, Question: asked.Question}:
		case <-e.done:
			return
		}
	}
}

// below is the terminal that the line editor has: keys as it knows them, and a row without an end.
type below struct{ *Editor }

// Write takes what the line editor shows.
func (b below) Write(text []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.row.apply(text)
	return len(text), nil
}

// Read gives the next keys. By then the line editor has dealt with all before: the screen shows the line.
func (b below) Read(keys []byte) (int, error) {
	for {
		b.mu.Lock()
		from := &b.given
		if len(*from) == 0 {
			from = &b.typed
		}
		if len(*from) == 0 {
			b.turn()
			from = &b.given
		}
		n := copy(keys, *from)
		*from = (*from)[n:]
		over := b.gone || n == 0 && b.ended
		if n == 0 && !over {
			b.draw("")
		}
		b.mu.Unlock()
		switch {
		case over:
			return 0, io.EOF
		case n > 0:
			return n, nil
		}
		select {
		case <-b.more:
		case <-b.done:
		}
	}
}

// turn puts the wanted prompt there. Keys that were pressed before belong to the one before.
func (e *Editor) turn() {
	before := e.asked
	if before == e.wanted || e.paste {
		return
	}
	e.asked = e.wanted
	switch {
	case before.Question == e.asked.Question:
		return
	case e.held:
		e.held = e.asked.Question != ""
		return
	case before.Question == "":
		e.held = len(e.row.line()) > 0
		return
	}
	e.given = append(e.given, keysEmpty...)
	if e.asked.Question == "" && e.draft != "" {
		e.given = append(e.given, pasteBegins+e.draft+pasteEnds...)
		e.draft = ""
	}
}

const mostEntries = 500

// entries are the messages that a person has entered: no answers, and none twice in a row.
type entries struct {
	editor *Editor
	texts  []string
}

// Add takes a line that was entered.
func (h *entries) Add(text string) {
	h.editor.mu.Lock()
	answer := h.editor.asked.Question != ""
	h.editor.mu.Unlock()
	if answer || strings.TrimSpace(text) == "" || len(h.texts) > 0 && h.texts[len(h.texts)-1] == text {
		return
	}
	h.texts = append(h.texts[max(0, len(h.texts)-mostEntries):], text)
}

// Len is how many there are.
func (h *entries) Len() int { return len(h.texts) }

// At is one of them, the newest first.
func (h *entries) At(index int) string { return h.texts[len(h.texts)-1-index] }
