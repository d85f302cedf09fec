package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/timestamppb"

	"throwbar.dev/throwbar/clients/cli/term"
	throwbar "throwbar.dev/throwbar/clients/go"
	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
)

// How long a decision is remembered.
const (
	rememberHere   = "conversation"
	rememberAlways = "always"
)

// approval flags.
type approveAsk struct {
	edits     []string
	editJSON  string
	call      string
	remember  string
	expires   string
	patterns  []string
	anyDevice bool
	reason    string
	hash      string
	yes       bool
}

func (p *program) approveVerb() *cobra.Command {
	var ask approveAsk
	c := &cobra.Command{
		Use:   "approve ID...",
		Short: "Approve: each of the calls may start once",
		Long: "Approve. Each of the calls may start once, with just the arguments, targets and device that are shown: what has " +
			"changed in between is refused.\n\nIt shows what is approved, and asks before it sends the decision; without a " +
			"terminal --yes is needed. Several ids are decided together, each with its own outcome.",
		Example: "  throwbar approvals approve 3f2a9c1d\n" +
			"  throwbar approvals approve 3f2a9c1d --edit tab-ids=k3v9x2mqta_tb1aa-1 --reason \"only this one\"\n" +
			"  throwbar approvals approve 3f2a9c1d --remember always --remember-arg 'url=https://docs.example.com/*' --expires 7d",
		Args: func(c *cobra.Command, words []string) error {
			if len(words) == 0 {
				return p.takes(approvalArg)(c, words)
			}
			return nil
		},
		ValidArgsFunction: p.completeApprovals(true),
		RunE: func(c *cobra.Command, words []string) error {
			return p.runApprove(c.Context(), words, ask)
		},
	}
	set := c.Flags()
	set.SortFlags = false
	set.StringArrayVar(&ask.edits, "edit", nil, "run it with this argument instead: `name=value`, as the command's own flag takes it; repeatable")
	set.StringVar(&ask.editJSON, "edit-json", "", "run it with the arguments of this `file` instead, as JSON; - reads the standard input")
	set.StringVar(&ask.call, "call", "", "which call an edit is for, where an approval has several: the `id` of its command, or its device")
	set.Var(choice{&ask.remember, []string{rememberHere, rememberAlways}}, "remember",
		"do not ask again about calls like this, `where`: conversation (this one only) or always")
	set.StringArrayVar(&ask.patterns, "remember-arg", nil, "remember a shape in place of an exact argument: `path=pattern`, with * for any text; repeatable")
	set.BoolVar(&ask.anyDevice, "any-device", false, "remember it for every device")
	set.StringVar(&ask.expires, "expires", "", "how long it is remembered, a `time` such as 12h or 30d; 30d if left out")
	set.StringVar(&ask.reason, "reason", "", "why: `text` for whoever reads it later")
	set.StringVar(&ask.hash, "hash", "", "approve only if this is still its `hash`, which `approvals show` prints")
	set.BoolVarP(&ask.yes, "yes", "y", false, "do not ask before")
	_ = c.RegisterFlagCompletionFunc("remember",
		cobra.FixedCompletions([]string{rememberHere, rememberAlways}, cobra.ShellCompDirectiveNoFileComp))
	return c
}

func (p *program) denyVerb() *cobra.Command {
	var reason string
	c := &cobra.Command{
		Use:     "deny ID...",
		Short:   "Deny: nothing of it runs, and whoever asked is told why",
		Example: "  throwbar approvals deny 3f2a9c1d --reason \"not while I am in a call\"",
		Args: func(c *cobra.Command, words []string) error {
			if len(words) == 0 {
				return p.takes(approvalArg)(c, words)
			}
			return nil
		},
		ValidArgsFunction: p.completeApprovals(true),
		RunE: func(c *cobra.Command, words []string) error {
			list, err := p.findApprovals(c.Context(), words)
			if err != nil {
				return err
			}
			decisions := make([]*controlv1.Decision, len(list))
			for i, a := range list {
				decisions[i] = denial(a, reason)
			}
			return p.decide(c.Context(), list, decisions)
		},
	}
	c.Flags().StringVar(&reason, "reason", "", "why: `text` that whoever asked is told, an agent too")
	return c
}

func denial(a *controlv1.Approval, reason string) *controlv1.Decision {
	return &controlv1.Decision{
		ApprovalId: a.GetApprovalId(), Verdict: &controlv1.Decision_Deny{Deny: &controlv1.Deny{Reason: reason}},
	}
}

func (p *program) runApprove(ctx context.Context, words []string, ask approveAsk) error {
	remember, err := ask.check(len(words), p.Now())
	if err != nil {
		return err
	}
	if !ask.yes && !p.person() {
		return Errorf(Invalid, "nobody can confirm it here: `throwbar approvals show %s` shows what it is, and --yes approves it without asking",
			strings.Join(words, " "))
	}
	list, err := p.findApprovals(ctx, words)
	if err != nil {
		return err
	}
	decisions := make([]*controlv1.Decision, len(list))
	for i, a := range list {
		approve, err := p.approving(a, ask)
		if err != nil {
			return err
		}
		approve.Remember = remember
		decisions[i] = &controlv1.Decision{ApprovalId: a.GetApprovalId(), Verdict: &controlv1.Decision_Approve{Approve: approve}}
	}
	p.proposal(ctx, list, decisions)
	if !ask.yes {
		yes, err := p.confirm(ctx, "Approve "+these(len(list))+"? [y/N] ")
		if err != nil {
			return err
		}
		if !yes {
			p.err.Line(term.Yellow, "Nothing was decided.")
			return &Exit{Code: Cancelled}
		}
	}
	return p.decide(ctx, list, decisions)
}

func these(n int) string {
	if n == 1 {
		return "this"
	}
	return fmt.Sprintf("these %d", n)
}

// check holds the flags against each other, and makes the wish to remember of them.
func (ask approveAsk) check(ids int, now time.Time) (*controlv1.Remember, error) {
	edited := len(ask.edits) > 0 || ask.editJSON != ""
	switch {
	case len(ask.edits) > 0 && ask.editJSON != "":
		return nil, Errorf(Invalid, "only one of --edit and --edit-json can be given")
	case ids > 1 && (edited || ask.remember != "" || ask.hash != ""):
		return nil, Errorf(Invalid, "--edit, --edit-json, --remember and --hash are for one approval: name one id")
	case ask.call != "" && !edited:
		return nil, Errorf(Invalid, "--call says what an edit is for: give --edit or --edit-json too")
	case ask.remember == "" && (len(ask.patterns) > 0 || ask.anyDevice || ask.expires != ""):
		return nil, Errorf(Invalid, "--remember-arg, --any-device and --expires need --remember")
	case ask.remember == "":
		return nil, nil
	}
	remember := &controlv1.Remember{ConversationOnly: ask.remember == rememberHere, AnyDevice: ask.anyDevice}
	if ask.expires != "" {
		d, err := span(ask.expires)
		if err != nil {
			return nil, Errorf(Invalid, "--expires %q %w", ask.expires, err)
		}
		remember.ExpiresAt = timestamppb.New(now.Add(d))
	}
	for _, text := range ask.patterns {
		path, pattern, ok := strings.Cut(text, "=")
		if !ok || path == "" {
			return nil, Errorf(Invalid, "--remember-arg %q is no path=pattern", text)
		}
		remember.Arguments = append(remember.Arguments, &controlv1.ArgumentPattern{Path: path, Pattern: pattern})
	}
	return remember, nil
}

// span reads a duration, which may be in days.
func span(text string) (time.Duration, error) {
	wrong := errors.New("is no time: write it like 90m, 12h or 30d")
	days, inDays := strings.CutSuffix(text, "d")
	if inDays {
		text = days + "h"
	}
	d, err := time.ParseDuration(text)
	if inDays {
		d *= 24
	}
	if err != nil || d <= 0 || d > 10*365*24*time.Hour {
		return 0, wrong
	}
	return d, nil
}

// approving is the decision to approve what is shown, edited where that is wanted.
func (p *program) approving(a *controlv1.Approval, ask approveAsk) (*controlv1.Approve, error) {
	switch {
	case ask.hash != "" && ask.hash != a.GetHash():
		return nil, Errorf(Refused, "approval %s has changed since its hash was taken: `throwbar approvals show %s` shows what it is now",
			a.GetApprovalId(), shortID(a.GetApprovalId()))
	case ask.remember == rememberHere && a.GetConversationId() == "":
		return nil, Errorf(Invalid, "no conversation asks: --remember always is for the whole workspace")
	}
	for _, call := range a.GetCalls() {
		if _, err := p.known.ByAction(call.GetProposed()); err != nil {
			return nil, Errorf(Failed, "approval %s has a call that this program cannot show, so that it does not approve it: %w", a.GetApprovalId(), err)
		}
	}
	edits, err := p.edits(a, ask)
	if err != nil {
		return nil, err
	}
	return &controlv1.Approve{Hash: a.GetHash(), Reason: ask.reason, Edits: edits}, nil
}

// proposal shows what is about to be approved.
func (p *program) proposal(ctx context.Context, list []*controlv1.Approval, decisions []*controlv1.Decision) {
	if p.flags.json() {
		return
	}
	for i, a := range list {
		p.approval(ctx, p.out, a, p.askedBy(ctx, a))
		for _, edit := range decisions[i].GetApprove().GetEdits() {
			p.edit(a, edit)
		}
	}
}

// edit shows what an edit makes of a call.
func (p *program) edit(a *controlv1.Approval, edit *controlv1.Edit) {
	for _, call := range a.GetCalls() {
		if e, err := p.known.ByAction(edit.GetAction()); err == nil && call.GetCommandId() == edit.GetCommandId() {
			p.out.Line(term.Bold, "Edited: %s on %s", e.Name, deviceTitle(call))
			p.actionFacts(p.out, e, "will run as", edit.GetAction(), nil)
		}
	}
}

// decide sends decisions in one call, and shows the outcome of each.
func (p *program) decide(ctx context.Context, list []*controlv1.Approval, decisions []*controlv1.Decision) error {
	s, err := p.api()
	if err != nil {
		return err
	}
	answer, err := s.Approvals.Decide(ctx, &controlv1.DecideRequest{Decisions: decisions})
	if err != nil {
		return fmt.Errorf("decide: %w", err)
	}
	if len(answer.GetOutcomes()) != len(decisions) {
		return Errorf(Failed, "the server answered %d decisions with %d outcomes: `throwbar approvals list --all` shows what counts",
			len(decisions), len(answer.GetOutcomes()))
	}
	codes := make([]int, len(decisions))
	for i, o := range answer.GetOutcomes() {
		codes[i] = outcomeCode(o.GetError())
	}
	if p.flags.json() {
		if err := p.printJSON(answer, true); err != nil {
			return err
		}
		return exit(codes)
	}
	for i, o := range answer.GetOutcomes() {
		p.decision(ctx, p.out, list[i], o)
	}
	return exit(codes)
}

// outcomeCode is the exit code of one decision.
func outcomeCode(err *commandv1.CommandError) int {
	if err == nil {
		return OK
	}
	return codeOfError(err)
}

// decision shows the outcome of one decision. before is the approval as it was shown.
func (p *program) decision(ctx context.Context, to *term.Screen, before *controlv1.Approval, o *controlv1.DecisionOutcome) {
	after := o.GetApproval()
	if after == nil {
		after = before
	}
	if o.GetError() != nil {
		text := o.GetError().GetMessage()
		if by := p.decided(after, p.tokenNames(ctx)); by != "" {
			text += fmt.Sprintf(" (it is %s: %s)", approvalState(after.GetState()).Text, by)
		}
		p.err.Line(term.Red, "%s  not decided: %s", shortID(before.GetApprovalId()), text)
		return
	}
	state := approvalState(after.GetState())
	to.Print(join([]string{
		to.Paint(term.Bold, term.Visible(shortID(after.GetApprovalId()))), to.Paint(state.Style, term.Visible(state.Text)),
		term.Visible(callsLine(after)),
	}))
	if id := after.GetRememberedRuleId(); id != "" {
		to.Line(term.Dim, "  remembered as rule %s: `throwbar policy remove %s` takes it back", id, id)
	}
}

// person says whether somebody sits in front of it who can be asked.
func (p *program) person() bool {
	return p.Terminal(p.Stdin) && p.err.Terminal && !p.flags.json()
}

// confirm asks a question that is answered by yes or anything else.
func (p *program) confirm(ctx context.Context, question string) (bool, error) {
	p.err.Print(p.err.Paint(term.Bold, question))
	select {
	case <-ctx.Done():
		p.err.Print("\n")
		return false, context.Cause(ctx)
	case line, ok := <-p.input(ctx):
		if !ok || line.err != nil {
			p.err.Print("\n")
			return false, line.err
		}
		return yes(line.text), nil
	}
}

func yes(text string) bool {
	text = strings.ToLower(strings.TrimSpace(text))
	return text == "y" || text == "yes"
}

// input is the lines of the standard input, which are read once.
func (p *program) input(ctx context.Context) <-chan line {
	if p.lines == nil {
		p.lines = readLines(ctx, p.Stdin)
	}
	return p.lines
}

// mayNot says whether an error means that this token cannot decide.
func mayNot(err error) bool {
	return throwbar.CodeOf(err) == throwbar.CodeDenied || throwbar.CodeOf(err) == throwbar.CodeRefused
}
