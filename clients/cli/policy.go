package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"throwbar.dev/throwbar/clients/cli/args"
	"throwbar.dev/throwbar/clients/cli/term"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
)

const policyName = "policy"

// policyVerb shows and changes what may run without asking.
func (p *program) policyVerb(explain *cobra.Command) *cobra.Command {
	c := p.branch(&cobra.Command{
		Use:     policyName,
		Short:   "Say what runs without asking, what asks a person first, and what never runs",
		GroupID: groupServer,
		Long: "Say what runs without asking, what asks a person first, and what never runs.\n\nEach command has a default of " +
			"its own. Rules of the workspace override it, rules of a conversation those, and rules for where a command comes " +
			"from those; a floor is a deny that nothing lifts. On one level the rule that says most exactly what it is about " +
			"decides, and of two alike the stricter one. A change takes effect on the next command.",
	})
	c.AddCommand(p.policyShowVerb(),
		p.policyRuleVerb(controlv1.Verdict_VERDICT_ALLOW, "allow", "Let commands run without asking"),
		p.policyRuleVerb(controlv1.Verdict_VERDICT_ASK, "ask", "Ask a person before commands run"),
		p.policyRuleVerb(controlv1.Verdict_VERDICT_DENY, "deny", "Let commands not run"),
		p.policyRemoveVerb(), p.policySettingsVerb(), explain)
	return c
}

func (p *program) policyShowVerb() *cobra.Command {
	return &cobra.Command{
		Use:   "show",
		Short: "Show the rules and settings",
		Args:  p.takes(),
		RunE: func(c *cobra.Command, _ []string) error {
			s, err := p.api()
			if err != nil {
				return err
			}
			answer, err := s.Policy.GetPolicy(c.Context(), &controlv1.GetPolicyRequest{})
			if err != nil {
				return fmt.Errorf("get the policy: %w", err)
			}
			if p.flags.json() {
				return p.printJSON(answer, true)
			}
			if len(answer.GetRules()) == 0 {
				p.out.Line(term.Plain, "No rules: each command's own default counts. `throwbar commands` shows them.")
			}
			p.rules(answer.GetRules())
			p.policySettings(answer.GetSettings(), answer.GetVersion())
			return nil
		},
	}
}

// rules shows rules in a table.
func (p *program) rules(rules []*controlv1.PolicyRule) {
	t := term.Table{
		Header: []string{"says", "about", "where", "arguments", "targets", "until", "note", "id"}, Shrink: []int{2, 3, 6},
		DropEmpty: true,
	}
	for _, r := range rules {
		t.Rows = append(t.Rows, []term.Cell{
			{Text: ruleVerdict(r), Style: verdictStyle(r.GetVerdict())},
			term.Text(ruleSubject(r)), term.Text(ruleWhere(r)),
			term.Text(ruleArguments(r)), term.Text(ruleTargets(r)), term.Text(ruleUntil(r)), term.Text(r.GetNote()),
			term.Text(r.GetRuleId()),
		})
	}
	p.out.Table(t)
}

func verdictWord(v controlv1.Verdict) string { return args.ShortOf(v.Descriptor(), v.Number()) }

func ruleVerdict(r *controlv1.PolicyRule) string {
	if r.GetFloor() {
		return verdictWord(r.GetVerdict()) + ", floor"
	}
	return verdictWord(r.GetVerdict())
}

func verdictStyle(v controlv1.Verdict) term.Style {
	switch v {
	case controlv1.Verdict_VERDICT_ALLOW:
		return term.Green
	case controlv1.Verdict_VERDICT_ASK:
		return term.Yellow
	default:
		return term.Red
	}
}

func ruleSubject(r *controlv1.PolicyRule) string {
	switch {
	case r.GetTool() != "":
		return r.GetTool()
	case r.GetGroup() != "":
		return "group " + r.GetGroup()
	default:
		return "anything"
	}
}

func ruleWhere(r *controlv1.PolicyRule) string {
	var words []string
	for _, part := range [][2]string{
		{"conversation", r.GetConversationId()},
		{"origin", originWord(r.GetOrigin())},
		{"device", r.GetDeviceId()},
		{"principal", r.GetPrincipal()},
	} {
		if part[1] != "" {
			words = append(words, part[0]+" "+part[1])
		}
	}
	return strings.Join(words, ", ")
}

func originWord(o controlv1.Origin) string {
	if o == controlv1.Origin_ORIGIN_UNSPECIFIED {
		return ""
	}
	return args.ShortOf(o.Descriptor(), o.Number())
}

func ruleArguments(r *controlv1.PolicyRule) string {
	words := make([]string, 0, len(r.GetArguments()))
	for _, a := range r.GetArguments() {
		words = append(words, a.GetPath()+"="+a.GetPattern())
	}
	return strings.Join(words, " ")
}

func ruleTargets(r *controlv1.PolicyRule) string {
	if r.GetMaxTargets() == 0 {
		return ""
	}
	return fmt.Sprintf("at most %d", r.GetMaxTargets())
}

func ruleUntil(r *controlv1.PolicyRule) string {
	if r.GetExpiresAt() == nil {
		return ""
	}
	return r.GetExpiresAt().AsTime().UTC().Format("2006-01-02 15:04Z")
}

func (p *program) policySettings(s *controlv1.PolicySettings, version uint64) {
	word := func(u controlv1.Unreachable) string { return args.ShortOf(u.Descriptor(), u.Number()) }
	p.out.Facts(0, [2]string{"time to decide", s.GetApprovalWithin().AsDuration().String()},
		[2]string{"nobody reachable", "interactive: " + word(s.GetInteractive()) + ", background: " + word(s.GetBackground())},
		[2]string{"version", fmt.Sprint(version)})
}

// ruleFlags are the flags of a new rule.
type ruleFlags struct {
	tool, group, conversation, origin, device, principal, expires, note string

	arguments  []string
	maxTargets uint32
	floor      bool
}

func (p *program) policyRuleVerb(verdict controlv1.Verdict, use, short string) *cobra.Command {
	var f ruleFlags
	c := &cobra.Command{
		Use:   use,
		Short: short,
		Long: short + ". What is left out matches everything.\n\nIn a pattern * is any text, \\* a star and \\\\ a backslash; an " +
			"empty pattern means that the argument is not set. Patterns see an address as text: end a host with a slash, as in " +
			"https://example.com/*.",
		Args: p.takes(),
		RunE: func(c *cobra.Command, _ []string) error {
			rule, err := p.ruleOf(c, f)
			if err != nil {
				return err
			}
			rule.Verdict = verdict
			return p.addRule(c, rule)
		},
	}
	set := c.Flags()
	set.SortFlags = false
	set.StringVar(&f.tool, "tool", "", "only this command or query, by `name`")
	set.StringVar(&f.group, "group", "", "only this `group`: a family such as tabs, or read, reversible or destructive")
	set.StringArrayVar(&f.arguments, "arg", nil, "only where an argument has a value of a shape, as `path=pattern`; may be repeated")
	set.StringVar(&f.device, "device", "", "only on this `device`, by name or id")
	set.StringVar(&f.conversation, "conversation", "", "only commands of the conversation with this `id`")
	set.StringVar(&f.origin, "origin", "", "only commands of this `origin`: interactive or background")
	set.StringVar(&f.principal, "principal", "", "only commands of the token or conversation with this `id`")
	set.StringVar(&f.expires, "expires", "", "stop to count after this `time`, as in 12h, 30d or 2026-12-31T18:00:00Z")
	set.StringVar(&f.note, "note", "", "what it is for, as `text`")
	switch verdict {
	case controlv1.Verdict_VERDICT_ALLOW:
		set.Uint32Var(&f.maxTargets, "max-targets", 0, "cover so many targets in one command; the command's own `number` if left out")
	case controlv1.Verdict_VERDICT_DENY:
		set.BoolVar(&f.floor, "floor", false, "let no other rule lift it")
	default:
	}
	_ = c.RegisterFlagCompletionFunc("device", p.completeDevice)
	_ = c.RegisterFlagCompletionFunc("origin", cobra.FixedCompletions(origins(), cobra.ShellCompDirectiveNoFileComp))
	return c
}

func origins() []string { return []string{"interactive", "background"} }

func originOf(name string) (controlv1.Origin, error) {
	switch name {
	case "":
		return controlv1.Origin_ORIGIN_UNSPECIFIED, nil
	case "interactive":
		return controlv1.Origin_ORIGIN_INTERACTIVE, nil
	case "background":
		return controlv1.Origin_ORIGIN_BACKGROUND, nil
	default:
		return 0, Errorf(Invalid, "--origin has to be one of %s", strings.Join(origins(), ", "))
	}
}

// ruleOf is the rule that flags describe, without its verdict.
func (p *program) ruleOf(c *cobra.Command, f ruleFlags) (*controlv1.PolicyRule, error) {
	origin, err := originOf(f.origin)
	if err != nil {
		return nil, err
	}
	rule := &controlv1.PolicyRule{
		Tool: f.tool, Group: f.group, ConversationId: f.conversation, Origin: origin, Principal: f.principal,
		MaxTargets: f.maxTargets, Floor: f.floor, Note: f.note,
	}
	if f.expires != "" {
		at, err := p.moment(f.expires)
		if err != nil {
			return nil, err
		}
		rule.ExpiresAt = timestamppb.New(at)
	}
	for _, text := range f.arguments {
		path, pattern, ok := strings.Cut(text, "=")
		if !ok || path == "" {
			return nil, Errorf(Invalid, "--arg %q has to be path=pattern, as in url=https://example.com/*", text)
		}
		rule.Arguments = append(rule.Arguments, &controlv1.ArgumentPattern{Path: path, Pattern: pattern})
	}
	if f.device != "" {
		ids, err := p.resolve(c.Context(), []string{f.device})
		if err != nil {
			return nil, err
		}
		rule.DeviceId = ids[0]
	}
	return rule, nil
}

// moment is a time that is given as a span from now on or as itself.
func (p *program) moment(text string) (time.Time, error) {
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at, nil
	}
	span, err := spanOf(text)
	if err != nil || span <= 0 {
		return time.Time{}, Errorf(Invalid, "--expires %q is no time: say 12h, 30d or 2026-12-31T18:00:00Z", text)
	}
	return p.Now().Add(span), nil
}

// spanOf is a duration, which may be in days.
func spanOf(text string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		hours, err := time.ParseDuration(days + "h")
		return 24 * hours, err
	}
	return time.ParseDuration(text)
}

func (p *program) addRule(c *cobra.Command, rule *controlv1.PolicyRule) error {
	s, err := p.api()
	if err != nil {
		return err
	}
	answer, err := s.Policy.AddRule(c.Context(), &controlv1.AddRuleRequest{Rule: rule})
	if err != nil {
		return fmt.Errorf("add the rule: %w", err)
	}
	if p.flags.json() {
		return p.printJSON(answer, true)
	}
	p.rules([]*controlv1.PolicyRule{answer.GetRule()})
	p.err.Line(term.Dim, "It counts from the next command on. `throwbar policy remove %s` takes it back.", answer.GetRule().GetRuleId())
	return nil
}

func (p *program) policyRemoveVerb() *cobra.Command {
	return &cobra.Command{
		Use:   "remove RULE-ID",
		Short: "Remove a rule",
		Args:  p.takes("the id of a rule"),
		RunE: func(c *cobra.Command, words []string) error {
			s, err := p.api()
			if err != nil {
				return err
			}
			answer, err := s.Policy.RemoveRule(c.Context(), &controlv1.RemoveRuleRequest{RuleId: words[0]})
			if err != nil {
				return fmt.Errorf("remove the rule: %w", err)
			}
			if p.flags.json() {
				return p.printJSON(answer, true)
			}
			p.out.Line(term.Plain, "%s is removed.", words[0])
			return nil
		},
	}
}

func unreachable(flag, name string) (controlv1.Unreachable, error) {
	switch name {
	case "default":
		return controlv1.Unreachable_UNREACHABLE_UNSPECIFIED, nil
	case "wait":
		return controlv1.Unreachable_UNREACHABLE_WAIT, nil
	case "refuse":
		return controlv1.Unreachable_UNREACHABLE_REFUSE, nil
	default:
		return 0, Errorf(Invalid, "--%s has to be wait, refuse or default", flag)
	}
}

func (p *program) policySettingsVerb() *cobra.Command {
	var within, interactive, background string
	c := &cobra.Command{
		Use:   "settings",
		Short: "Show or change how long a person has to decide, and what happens where nobody is reachable",
		Args:  p.takes(),
		RunE: func(c *cobra.Command, _ []string) error {
			s, err := p.api()
			if err != nil {
				return err
			}
			now, err := s.Policy.GetPolicy(c.Context(), &controlv1.GetPolicyRequest{})
			if err != nil {
				return fmt.Errorf("get the settings: %w", err)
			}
			answer := &controlv1.SetPolicySettingsResponse{Settings: now.GetSettings(), Version: now.GetVersion()}
			if c.Flags().Changed("within") || c.Flags().Changed("interactive") || c.Flags().Changed("background") {
				next, err := changed(c, now.GetSettings(), within, interactive, background)
				if err != nil {
					return err
				}
				if answer, err = s.Policy.SetPolicySettings(c.Context(), &controlv1.SetPolicySettingsRequest{Settings: next}); err != nil {
					return fmt.Errorf("change the settings: %w", err)
				}
			}
			if p.flags.json() {
				return p.printJSON(answer, true)
			}
			p.policySettings(answer.GetSettings(), answer.GetVersion())
			return nil
		},
	}
	c.Flags().StringVar(&within, "within", "", "`time` to decide, as in 12h or 3d; default for 72h")
	c.Flags().StringVar(&interactive, "interactive", "", "where somebody waits for the command and nobody can decide, one `word`: wait, refuse or default")
	c.Flags().StringVar(&background, "background", "", "where nobody waits for the command and nobody can decide, one `word`: wait, refuse or default")
	return c
}

// changed are settings with what the flags change.
func changed(
	c *cobra.Command, now *controlv1.PolicySettings, within, interactive, background string,
) (*controlv1.PolicySettings, error) {
	next := &controlv1.PolicySettings{
		ApprovalWithin: now.GetApprovalWithin(), Interactive: now.GetInteractive(), Background: now.GetBackground(),
	}
	var err error
	if c.Flags().Changed("within") {
		next.ApprovalWithin = nil
		if within != "default" {
			span, err := spanOf(within)
			if err != nil {
				return nil, Errorf(Invalid, "--within %q is no time: say 12h, 3d or default", within)
			}
			next.ApprovalWithin = durationpb.New(span)
		}
	}
	if c.Flags().Changed("interactive") {
		if next.Interactive, err = unreachable("interactive", interactive); err != nil {
			return nil, err
		}
	}
	if c.Flags().Changed("background") {
		if next.Background, err = unreachable("background", background); err != nil {
			return nil, err
		}
	}
	return next, nil
}
