package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"throwbar.dev/throwbar/clients/cli/term"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
)

func (p *program) approvalsWatchVerb() *cobra.Command {
	var cursor uint64
	c := &cobra.Command{
		Use:   "watch",
		Short: "Follow the approvals until interrupted, and decide where a person is there",
		Long: "Follow the approvals until interrupted: those that are pending, new ones, warnings before their deadlines, and " +
			"decisions, also those that are taken elsewhere. On a terminal it shows one after the other and takes decisions.",
		Args: p.takes(),
		RunE: func(c *cobra.Command, _ []string) error {
			s, err := p.api()
			if err != nil {
				return err
			}
			f := p.newFeed(s)
			if c.Flag("cursor").Changed {
				f.ask.Cursor = &cursor
			}
			return p.watchApprovals(c.Context(), f)
		},
	}
	c.Flags().Uint64Var(&cursor, "cursor", 0, "changes after this `number`, which -o json shows; all that is pending and what changes from now on if left out")
	return c
}

// watchApprovals shows what a feed brings, and takes decisions where a person is there.
func (p *program) watchApprovals(ctx context.Context, f *feed) error {
	if _, err := p.catalogue(ctx); err != nil {
		return err
	}
	if p.flags.json() {
		return f.follow(ctx, func(frame *controlv1.WatchApprovalsResponse) error { return p.printJSON(frame, false) })
	}
	d := p.newDesk(f.server, false)
	if d.offers {
		p.err.Line(term.Dim, "Ctrl-C leaves.")
	}
	return p.attend(ctx, d, f.follow, func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) }, true)
}

// attend serves a desk while work runs: it hands it the changes of a feed and the lines of a person. It ends when work
// has ended, or when the feed fails if that is all there is to do.
func (p *program) attend(
	ctx context.Context, d *desk, follow func(context.Context, func(*controlv1.WatchApprovalsResponse) error) error,
	work func(context.Context) error, feedMatters bool,
) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	frames := make(chan *controlv1.WatchApprovalsResponse)
	worked, followed := make(chan error, 1), make(chan error, 1)
	go func() { worked <- work(ctx) }()
	go func() {
		followed <- follow(ctx, func(frame *controlv1.WatchApprovalsResponse) error {
			select {
			case frames <- frame:
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		})
	}()
	over, err := p.serve(ctx, d, frames, worked, followed, feedMatters)
	cancel(err)
	if !over.worked {
		<-worked
	}
	if !over.followed {
		<-followed
	}
	return err
}

// endings says which of the goroutines of attend have come to an end.
type endings struct{ worked, followed bool }

func (p *program) serve(
	ctx context.Context, d *desk, frames <-chan *controlv1.WatchApprovalsResponse, worked, followed <-chan error, feedMatters bool,
) (endings, error) {
	var over endings
	for {
		var lines <-chan line
		if d.offers && (d.wants() || !d.waiting) {
			lines = p.input(ctx)
		}
		select {
		case err := <-worked:
			over.worked = true
			d.breakLine()
			return over, err
		case err := <-followed:
			over.followed, followed = true, nil
			if feedMatters {
				d.breakLine()
				return over, err
			}
		case frame := <-frames:
			if frame.GetReset_() {
				p.err.Line(term.Yellow, "The cursor is too old: what was decided in between is missing. This is what waits now.")
				continue
			}
			d.take(ctx, frame.GetApproval(), frame.GetWarning())
		case line, ok := <-lines:
			if !ok || line.err != nil {
				d.gone()
				continue
			}
			if err := d.line(ctx, line.text); err != nil {
				return over, err
			}
		}
	}
}

// approvalLine shows a change on one line.
func (p *program) approvalLine(ctx context.Context, a *controlv1.Approval, warning bool) {
	state := approvalState(a.GetState())
	at, words := a.GetDecidedAt().AsTime(), []string{}
	switch {
	case !pending(a):
		words = append(words, p.byWhom(ctx, a), term.Visible(a.GetDecisionReason()))
	case warning:
		at = p.Now()
		state = term.Cell{Text: "expires " + p.deadline(a).Text, Style: term.Yellow}
	default:
		at = a.GetCreatedAt().AsTime()
		words = append(words, "expires "+p.deadline(a).Text, term.Visible(a.GetReason()))
	}
	head := at.Local().Format(time.TimeOnly) + "  "
	p.out.Print(p.out.Paint(term.Dim, head) + join(append([]string{
		p.out.Paint(state.Style, term.Visible(state.Text)), p.out.Paint(term.Bold, term.Visible(shortID(a.GetApprovalId()))),
		term.Visible(callsLine(a)),
	}, words...)))
}

func (p *program) byWhom(ctx context.Context, a *controlv1.Approval) string {
	if a.GetDecidedBy() == "" {
		return ""
	}
	return term.Visible(fmt.Sprintf("by %s", p.tokenNames(ctx).token(a.GetDecidedBy())))
}
