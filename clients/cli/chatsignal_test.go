//go:build unix

package cli_test

import (
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"testing"

	"throwbar.dev/throwbar/clients/cli"
	"throwbar.dev/throwbar/clients/cli/term/termtest"
)

// TestProgramOfItsOwn is no test: it is the program that TestEveryWayOut starts.
func TestProgramOfItsOwn(t *testing.T) {
	t.Parallel()
	if os.Getenv("THROWBAR_TEST_PROGRAM") == "" {
		t.Skip("this is the program of another test")
	}
	asked := 0
	os.Exit(cli.Config{
		Args: []string{"chat", "--conversation", "3f2b"}, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Now: now,
		Env: func(k string) string {
			if asked++; k == "COLUMNS" && asked > 10 && os.Getenv("THROWBAR_TEST_PROGRAM") == "panics" {
				panic("a fault of the program")
			}
			return os.Getenv(k)
		},
	}.Run(t.Context()))
}

// However the program ends, the terminal is as it was.
func TestEveryWayOut(t *testing.T) {
	t.Parallel()
	f := newFake(t, withConversations)
	for name, row := range map[string]struct {
		signal syscall.Signal
		code   int
		killed bool
		shows  string
	}{
		"terminated": {signal: syscall.SIGTERM, code: 130},
		"hung up":    {signal: syscall.SIGHUP, killed: true},
		"dumped":     {signal: syscall.SIGQUIT, code: 2, shows: "SIGQUIT: quit"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tty, program := starts(t, f, "runs")
			tty.Shows("3f2b> ▏").Type("draft").Shows("3f2b> draft▏")
			if tty.Edits() {
				t.Error("nothing was taken over")
			}
			if err := program.Process.Signal(row.signal); err != nil {
				t.Fatal(err)
			}
			_ = program.Wait() // how it ended is in its state
			status := program.ProcessState.Sys().(syscall.WaitStatus)
			if status.Signaled() != row.killed || !row.killed && status.ExitStatus() != row.code {
				t.Errorf("it ended with %v", program.ProcessState)
			}
			tty.Shows(row.shows).GivenBack()
		})
	}
	t.Run("panic", func(t *testing.T) {
		t.Parallel()
		tty, program := starts(t, f, "panics")
		_ = program.Wait() // how it ended is in its state
		if tty.Shows("a fault of the program").GivenBack(); program.ProcessState.ExitCode() != 2 {
			t.Errorf("it ended with %v", program.ProcessState)
		}
	})
}

// The terminal tells when its window has another size, and a stopped program draws its line anew.
func TestWindowAndStop(t *testing.T) {
	t.Parallel()
	f := newFake(t, withConversations)
	tty, program := starts(t, f, "runs")
	tty.Shows("3f2b> ▏").Type("0123456789").Shows("3f2b> 0123456789▏")
	tty.Resize(80, 10)
	f.happens("3f2b", delta("wide"))
	tty.Shows("wide\n3f2b> 0123456789▏")
	tty.Resize(14, 10).Shows("3f2b> 01234567\n89▏")
	// Nobody lets a program go on that is its own session: it is not stopped, and goes on by itself.
	tty.Type("\x1a").Type("!").Shows("89!▏").Type("\x15/quit\r")
	if err := program.Wait(); err != nil {
		t.Errorf("%v\n%s", err, tty.Picture())
	}
	tty.GivenBack()
}

// starts starts the program with the terminal for its own.
func starts(t *testing.T, f *fake, how string) (*termtest.Terminal, *exec.Cmd) {
	t.Helper()
	tty := termtest.New(t, 60, 24)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	env := environment(t, f, nil)
	program := exec.CommandContext(t.Context(), self, "-test.run=^TestProgramOfItsOwn$")
	program.Env = []string{"THROWBAR_TEST_PROGRAM=" + how}
	for _, k := range []string{"HOME", "THROWBAR_DATA_DIR", "XDG_CACHE_HOME", "THROWBAR_SERVER", "TERM"} {
		program.Env = append(program.Env, k+"="+env(k))
	}
	program.Stdin, program.Stdout, program.Stderr = tty.TTY, tty.TTY, tty.TTY
	program.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0}
	// A signal that is ignored here, as by nohup, would be in the program too. One that is caught is not handed on.
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM)
	defer signal.Stop(caught)
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	return tty, program
}
