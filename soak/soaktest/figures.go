package soaktest

import (
	"fmt"
	"os"
	"strings"
	"sync"
)

// figuresVariable names a file to which figures are added.
const figuresVariable = "THROWBAR_FIGURES"

// Figures is a table of what was measured and what it is held against.
type Figures struct {
	Title string

	mu     sync.Mutex
	lines  []string // guarded by mu
	missed []string // guarded by mu
}

// Note adds a figure that nothing is asked of.
func (f *Figures) Note(name, format string, args ...any) {
	f.add(name, fmt.Sprintf(format, args...), "", "")
}

// Judge adds a figure and what is asked of it.
func (f *Figures) Judge(good bool, name, bar, format string, args ...any) {
	verdict := "ok"
	if !good {
		verdict = "MISSED"
	}
	f.add(name, fmt.Sprintf(format, args...), bar, verdict)
}

func (f *Figures) add(name, measured, bar, verdict string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lines = append(f.lines, strings.TrimRight(fmt.Sprintf("  %-52s %-34s %-12s %s", name, measured, bar, verdict), " "))
	if verdict == "MISSED" {
		f.missed = append(f.missed, name)
	}
}

// Missed are the names of the figures that are not as asked.
func (f *Figures) Missed() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.missed
}

// String is the table.
func (f *Figures) String() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.Title + "\n" + strings.Join(f.lines, "\n") + "\n"
}

// Keep adds the table to the file of figures, if one is named.
func (f *Figures) Keep() error {
	path := os.Getenv(figuresVariable)
	if path == "" {
		return nil
	}
	out, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("keep figures: %w", err)
	}
	if _, err := fmt.Fprintln(out, f.String()); err != nil {
		return fmt.Errorf("keep figures: %w", err)
	}
	return out.Close()
}
