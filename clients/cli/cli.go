// Package cli is the command line of Throwbar.
//
// It speaks only the API. What it offers under call and query it reads from the server's catalogue when it runs: a
// command that was declared after this program was built has its verb, flags, help and result table all the same, and
// no command is known here by name. The rich verbs (devices, tabs, history, watch, chat, pair, token, audit, sim) are
// views of the API's own methods.
//
// Run is all that a main has to call. It gives an exit code: 0 ok, 1 failed, 2 invalid, 3 offline, 4 expired, 5 denied
// or refused, 6 unauthenticated, 7 partial, 130 cancelled.
package cli

import (
	"context"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"throwbar.dev/throwbar/clients/cli/term"
	throwbar "throwbar.dev/throwbar/clients/go"
	"throwbar.dev/throwbar/gen"
)

// Run runs the program with the given arguments (without its own name) and returns its exit code. The verbs of extra
// are offered beside its own; their context ends at the first interrupt, the second one ends the program at once.
func Run(
	ctx context.Context, args []string, env func(string) string,
	stdin io.Reader, stdout, stderr io.Writer, extra ...*cobra.Command,
) int {
	return Config{Args: args, Env: env, Stdin: stdin, Stdout: stdout, Stderr: stderr, Extra: extra}.Run(ctx)
}

// Config is one run of the program. Args, Env and the three streams have to be set.
type Config struct {
	Args           []string
	Env            func(string) string
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Extra          []*cobra.Command // further verbs

	// What follows has a default if it is left out.
	Version  string           // of the program; from how it was built
	Image    []byte           // descriptors for help without a server; the program's own
	Signals  <-chan os.Signal // interrupts; those of the process
	Now      func() time.Time // the clock of relative times; time.Now
	Terminal func(any) bool   // says whether a stream is a terminal; term.IsTerminal
}

// Run runs the program.
func (c Config) Run(ctx context.Context) int {
	if c.Signals == nil {
		signals := make(chan os.Signal, 2)
		signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
		defer signal.Stop(signals)
		c.Signals = signals
	}
	if c.Version == "" {
		c.Version = builtAs()
	}
	if c.Image == nil {
		c.Image = gen.Descriptors
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Terminal == nil {
		c.Terminal = term.IsTerminal
	}
	p := &program{
		Config: c,
		out:    term.Detect(c.Stdout, c.Env, c.Terminal),
		err:    term.Detect(c.Stderr, c.Env, c.Terminal),
	}
	p.written = &written{to: c.Stdout}
	p.out.W = p.written
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer p.editor.leave() // where the run does not end by itself
	done := make(chan int, 1)
	go func() { done <- p.execute(ctx) }()
	return p.wait(done, cancel)
}

// wait waits for the end of the run and acts on signals meanwhile: the verb may take an interrupt, the first signal that
// it does not take cancels it, and the next one leaves without waiting. Where a terminal is taken over an interrupt is a
// key, and a signal means that the program shall end.
func (p *program) wait(done <-chan int, cancel context.CancelCauseFunc) int {
	signals := p.Signals
	cancelled := false
	for {
		select {
		case code := <-done:
			return code
		case signal, ok := <-signals:
			switch {
			case !ok:
				signals = nil
			case !cancelled && (signal == os.Interrupt || p.editor.Load() == nil) && p.interrupts.take():
			case cancelled:
				return Cancelled
			default:
				cancelled = true
				cancel(errInterrupted)
			}
		}
	}
}

// program is one run.
type program struct {
	Config

	out, err *term.Screen
	written  *written // what became of the output
	flags    globals

	connection *throwbar.Client // the API, once it was needed
	known      *known           // the catalogue, once it was needed
	names      names            // of tokens, once they were needed
	lines      <-chan line      // the standard input, once it was read from
	editor     editor           // has the terminal where a verb has taken it over

	interrupts interrupts
}

// interrupts lets the verb that runs take an interrupt before it cancels everything.
type interrupts struct {
	mu     sync.Mutex
	handle func() bool // guarded by mu; nil where the verb takes none
}

// set makes handle take the interrupts until the returned function is called. handle says false to be cancelled.
func (i *interrupts) set(handle func() bool) (restore func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.handle = handle
	return func() { i.set(nil) }
}

func (i *interrupts) take() bool {
	i.mu.Lock()
	handle := i.handle
	i.mu.Unlock()
	return handle != nil && handle()
}
