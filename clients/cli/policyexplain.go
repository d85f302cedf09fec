package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"throwbar.dev/throwbar/catalog"
	"throwbar.dev/throwbar/clients/cli/args"
	"throwbar.dev/throwbar/clients/cli/term"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
)

// policyExplainVerb has every command under it, as the call verb does.
func (p *program) policyExplainVerb() *cobra.Command {
	return p.branch(&cobra.Command{
		Use:   "explain",
		Short: "Say what policy would decide about a command, by which rule and why",
		Long: "Say what policy would decide about a command, by which rule and why. It takes the verbs and flags of " +
			"`throwbar call`. Nothing is sent.",
	})
}

// explained is what a command is asked about as.
type explained struct {
	devices                         []string
	json                            string
	conversation, origin, principal string
}

func (p *program) explainCommand(e *catalog.Entry) *cobra.Command {
	c := &cobra.Command{Short: firstSentence(e.Summary), Aliases: e.Aliases, Args: p.takes()}
	flags := args.Bind(c.Flags(), e.In, e.Comment, reserved("device", "ttl", "dry-run", "plan-hash", "detach", "conversation",
		"origin", "principal"))
	c.Use = useLine(e.Name, flags)
	c.Long = "Say what policy would decide about " + e.Name + ". Nothing is sent.\n\n" + p.about(e) + jsonOnly(flags)
	var as explained
	set := c.Flags()
	set.SortFlags = false
	set.StringSliceVar(&as.devices, "device", nil, "`device` to run it, by name or id; several with commas; all for every one "+
		"that is online and runs it")
	set.StringVar(&as.json, "json", "", "arguments as JSON `text`; - reads them from the standard input")
	set.StringVar(&as.conversation, "conversation", "", "as if the conversation with this `id` sent it")
	set.StringVar(&as.origin, "origin", "", "as if it were of this `origin`: interactive or background; interactive if left out")
	set.StringVar(&as.principal, "principal", "", "as if the token or conversation with this `id` sent it; you if left out")
	if e.FixesDevice() {
		c.Flag("device").Hidden = true
	}
	c.RunE = func(c *cobra.Command, _ []string) error { return p.runExplain(c.Context(), e, flags, as) }
	p.complete(c, flags)
	_ = c.RegisterFlagCompletionFunc("origin", cobra.FixedCompletions(origins(), cobra.ShellCompDirectiveNoFileComp))
	return c
}

func (p *program) runExplain(ctx context.Context, e *catalog.Entry, flags *args.Flags, as explained) error {
	origin, err := originOf(as.origin)
	if err != nil {
		return err
	}
	m, err := p.arguments(ctx, e, flags, as.json)
	if err != nil {
		return err
	}
	devices, err := p.devicesFor(ctx, e, m, as.devices)
	if err != nil {
		return err
	}
	action, err := e.Wrap(m)
	if err != nil {
		return fmt.Errorf("wrap %s: %w", e.Name, err)
	}
	s, err := p.api()
	if err != nil {
		return err
	}
	answer, err := s.Policy.ExplainPolicy(ctx, &controlv1.ExplainPolicyRequest{
		DeviceIds: devices, Action: action, ConversationId: as.conversation, Origin: origin, Principal: as.principal,
	})
	if err != nil {
		return fmt.Errorf("explain %s: %w", e.Name, err)
	}
	if p.flags.json() {
		return p.printJSON(answer, true)
	}
	for _, d := range answer.GetDevices() {
		p.explanation(d)
	}
	return nil
}

// explanation shows what policy decides on one device, and what it looked at.
func (p *program) explanation(d *controlv1.PolicyExplanation) {
	p.out.Line(term.Bold, "%s (%s)  %s: %s", d.GetDeviceName(), d.GetDeviceId(), verdictWord(d.GetVerdict()), d.GetReason())
	last := -1
	for n, step := range d.GetSteps() {
		if step.GetMatched() {
			last = n
		}
	}
	t := term.Table{
		Header: []string{"layer", "says", "covers it", "why", "rule"}, Shrink: []int{3}, Indent: outcomeIndent, DropEmpty: true,
	}
	for n, step := range d.GetSteps() {
		covers := term.Cell{Text: "no", Style: term.Dim}
		switch {
		case n == last:
			covers = term.Cell{Text: "decides", Style: term.Bold}
		case step.GetMatched():
			covers = term.Text("yes")
		}
		t.Rows = append(t.Rows, []term.Cell{
			term.Text(args.ShortOf(step.GetLayer().Descriptor(), step.GetLayer().Number())),
			{Text: verdictWord(step.GetVerdict()), Style: verdictStyle(step.GetVerdict())},
			covers, term.Text(step.GetWhy()),
			term.Text(step.GetRuleId()),
		})
	}
	p.out.Table(t)
}
