package cli

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/timestamppb"

	"throwbar.dev/throwbar/auditlog"
	"throwbar.dev/throwbar/clients/cli/term"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
)

// auditVerb exports and checks the audit record.
func (p *program) auditVerb() *cobra.Command {
	c := p.branch(&cobra.Command{
		Use:     "audit",
		Short:   "Export and check the record of what was asked, decided and done",
		GroupID: groupServer,
	})
	c.AddCommand(p.auditExportVerb(), p.auditVerifyVerb())
	return c
}

func (p *program) auditExportVerb() *cobra.Command {
	var after uint64
	var since, file string
	c := &cobra.Command{
		Use:   "export",
		Short: "Write the audit record as lines of JSON",
		Long: "Write the audit record as lines of JSON: one for each entry, with what can be read of it, the record itself and its " +
			"hashes.\n\n`throwbar audit verify FILE` checks such a file without a server.",
		Args: p.takes(),
		RunE: func(c *cobra.Command, _ []string) error {
			ask := &controlv1.ReadAuditRequest{After: after}
			if since != "" {
				t, err := p.sinceTime(since)
				if err != nil {
					return err
				}
				ask.Since = timestamppb.New(t)
			}
			return p.auditExport(c.Context(), ask, file)
		},
	}
	c.Flags().Uint64Var(&after, "after", 0, "only entries after this `number`")
	c.Flags().StringVar(&since, "since", "", "entries from the first one on that is not older than this `time`: 2026-11-28, "+
		"2026-11-28T12:00:00Z, or 24h for a day ago")
	c.Flags().StringVar(&file, "file", "", "write to this new `file` instead of the standard output")
	return c
}

// sinceTime reads a moment, or how long ago it was.
func (p *program) sinceTime(text string) (time.Time, error) {
	for _, layout := range []string{time.RFC3339Nano, time.DateOnly} {
		if t, err := time.ParseInLocation(layout, text, time.Local); err == nil {
			return t, nil
		}
	}
	if ago, err := time.ParseDuration(text); err == nil && ago >= 0 {
		return p.Now().Add(-ago), nil
	}
	return time.Time{}, Errorf(Invalid, "--since %q: give a day such as 2026-11-28, a time such as 2026-11-28T12:00:00Z, or how long "+
		"ago, such as 24h", text)
}

func (p *program) auditExport(ctx context.Context, ask *controlv1.ReadAuditRequest, file string) error {
	s, err := p.api()
	if err != nil {
		return err
	}
	stream, err := s.Audit.ReadAudit(ctx, ask)
	if err != nil {
		return fmt.Errorf("export the audit record: %w", err)
	}
	defer func() { _ = stream.Close() }() // the end of the stream is told by Receive
	var w *auditlog.Writer
	write := func(out io.Writer) error {
		w = auditlog.NewWriter(out, ask.GetAfter())
		return p.auditCopy(stream.Receive, w)
	}
	if file == "" {
		return write(p.out.W)
	}
	if err := toNewFile(file, write); err != nil {
		return err
	}
	p.err.Line(term.Dim, "%s: %d %s, the last with the hash %x", file, w.Entries(), entries(w.Entries()), w.Head())
	return nil
}

// auditCopy writes what comes to its end.
func (p *program) auditCopy(receive func() (*controlv1.ReadAuditResponse, error), w *auditlog.Writer) error {
	progress := p.progress()
	for {
		page, err := receive()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("export the audit record: %w", err)
		}
		for _, e := range page.GetEntries() {
			if err := w.Add(e); err != nil {
				return fmt.Errorf("export the audit record: %w; `throwbar audit verify` says what is wrong", err)
			}
		}
		progress(w.Entries())
	}
	if err := w.Close(); err != nil {
		return fmt.Errorf("export the audit record: %w", err)
	}
	return nil
}

// toNewFile writes a file that did not exist, for this user only, and leaves nothing of it after an error.
func toNewFile(path string, write func(io.Writer) error) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return Errorf(Invalid, "%s exists already: name another file", path)
	}
	if err != nil {
		return Errorf(Invalid, "%w", err)
	}
	if err := errors.Join(write(f), f.Close()); err != nil {
		_ = os.Remove(path)
		return err
	}
	return nil
}

// progress says now and then, to a person who waits, how far it is.
func (p *program) progress() func(entries uint64) {
	const every = 2 * time.Second
	said := p.Now()
	return func(entries uint64) {
		if now := p.Now(); p.err.Terminal && now.Sub(said) >= every {
			said = now
			p.err.Line(term.Dim, "%d entries so far", entries)
		}
	}
}

func (p *program) auditVerifyVerb() *cobra.Command {
	var anchor string
	c := &cobra.Command{
		Use:   "verify [FILE]",
		Short: "Check that the audit record is what was written, on the server or in an exported file",
		Long: "Check that the audit record is what was written: that no entry was changed, removed, added or moved. It names the " +
			"first entry that is wrong or missing, and ends with exit code 1 then.\n\nWithout FILE the server checks its record. A FILE " +
			"that `throwbar audit export` wrote is checked here, without a server; - is the standard input.\n\nNote down the hash that it " +
			"prints, elsewhere: with --anchor it finds out later whether the record was cut off or written anew, which the " +
			"record by itself cannot show.",
		Args: func(c *cobra.Command, words []string) error {
			if len(words) <= 1 {
				return nil
			}
			return p.takes("a file")(c, words)
		},
		RunE: func(c *cobra.Command, words []string) error {
			hash, err := hex.DecodeString(anchor)
			if err != nil || anchor != "" && len(hash) != auditlog.HashSize {
				return Errorf(Invalid, "--anchor %q is no hash: it has %d hexadecimal digits", anchor, 2*auditlog.HashSize)
			}
			if len(words) == 1 {
				return p.verifyFile(words[0], hash)
			}
			s, err := p.api()
			if err != nil {
				return err
			}
			answer, err := s.Audit.VerifyAudit(c.Context(), &controlv1.VerifyAuditRequest{Anchor: hash})
			if err != nil {
				return fmt.Errorf("verify the audit record: %w", err)
			}
			return p.showVerified("the record", answer)
		},
	}
	c.Flags().StringVar(&anchor, "anchor", "", "a `hash` that was noted down before: it has to be that of an entry")
	return c
}

func (p *program) verifyFile(name string, anchor []byte) error {
	in := p.Stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return Errorf(Invalid, "%w", err)
		}
		defer func() { _ = f.Close() }() // it was only read
		in = f
	}
	report, problem, err := auditlog.Verify(in, anchor, p.progress())
	if err != nil {
		return fmt.Errorf("verify %s: %w", name, err)
	}
	answer := &controlv1.VerifyAuditResponse{Intact: problem == nil, Checked: report.Checked}
	if report.Checked > 0 {
		answer.Head = report.Head
	}
	if problem != nil {
		answer.FirstBad, answer.Problem = problem.Sequence, problem.Error()
	}
	if report.Newer > 0 {
		p.warn("%d entries are of a newer throwbar: what can be read of them was not compared with their records", report.Newer)
	}
	if problem == nil && report.First > 1 {
		p.warn("the file begins with entry %d: what came before is not checked", report.First)
	}
	return p.showVerified(name, answer)
}

// showVerified says what was found. Its error carries the exit code.
func (p *program) showVerified(what string, answer *controlv1.VerifyAuditResponse) error {
	var failed error
	if !answer.GetIntact() {
		failed = &Exit{Code: Failed}
	}
	if p.flags.json() {
		if err := p.printJSON(answer, true); err != nil {
			return err
		}
		return failed
	}
	switch {
	case answer.GetIntact() && answer.GetChecked() == 0:
		p.out.Line(term.Plain, "%s has no entries.", what)
	case answer.GetIntact():
		p.out.Line(term.Green, "%s is intact: %d %s.", what, answer.GetChecked(), entries(answer.GetChecked()))
		p.out.Line(term.Plain, "hash of the last: %x", answer.GetHead())
	case answer.GetFirstBad() == 0:
		p.out.Line(term.Red, "%s is not intact, though all %d %s follow each other: %s", what, answer.GetChecked(), entries(answer.GetChecked()), answer.GetProblem())
	default:
		p.out.Line(term.Red, "%s is not intact: the first bad entry is %d: %s", what, answer.GetFirstBad(), answer.GetProblem())
		p.out.Line(term.Plain, "Entries before it that are in order: %d.", answer.GetChecked())
	}
	return failed
}

func entries(n uint64) string {
	if n == 1 {
		return "entry"
	}
	return "entries"
}
