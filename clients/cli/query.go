package cli

import (
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"throwbar.dev/throwbar/catalog"
	"throwbar.dev/throwbar/clients/cli/args"
	"throwbar.dev/throwbar/clients/cli/term"
	optionv1 "throwbar.dev/throwbar/gen/go/throwbar/option/v1"
)

const nextPage = protoreflect.Name("next_page_token")

// queryVerb is the verb that every query is under.
func (p *program) queryVerb() *cobra.Command {
	return p.branch(&cobra.Command{
		Use:     "query",
		Short:   "Ask the server what it knows: windows, groups, domains, saved tabs",
		GroupID: groupDevices,
		Long: "Ask the server what it knows of the devices. It answers from what they have told it, also for devices that " +
			"are offline, and says how fresh each device's data is.",
	})
}

// queryCommand is the verb of one query.
func (p *program) queryCommand(e *catalog.Entry) *cobra.Command {
	c := &cobra.Command{Short: firstSentence(e.Summary), Aliases: e.Aliases, Args: p.takes()}
	c.Flags().SortFlags = false
	flags := args.Bind(c.Flags(), e.In, e.Comment, reserved())
	c.Use = useLine(e.Name, flags)
	c.Long = e.Summary + jsonOnly(flags)
	c.Flags().SetNormalizeFunc(deviceFlag(e.In))
	var text string
	c.Flags().StringVar(&text, "json", "", "arguments as JSON `text`; - reads them from the standard input")
	c.RunE = func(c *cobra.Command, _ []string) error { return p.runQuery(c, e, flags, text) }
	p.complete(c, flags)
	return c
}

// deviceFlag accepts --device for the field device_id, as everywhere else.
func deviceFlag(in protoreflect.MessageDescriptor) func(*pflag.FlagSet, string) pflag.NormalizedName {
	fd := in.Fields().ByName("device_id")
	short := fd != nil && catalog.TargetOf(fd) == optionv1.Target_TARGET_DEVICE && in.Fields().ByName("device") == nil
	return func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if short && name == "device" {
			return "device-id"
		}
		return pflag.NormalizedName(name)
	}
}

func (p *program) runQuery(c *cobra.Command, e *catalog.Entry, flags *args.Flags, text string) error {
	in, err := p.arguments(c.Context(), e, flags, text)
	if err != nil {
		return err
	}
	s, err := p.api()
	if err != nil {
		return err
	}
	out := dynamicpb.NewMessage(e.Out)
	if err := s.Invoke(c.Context(), e.Method, in, out); err != nil {
		return fmt.Errorf("call %s: %w", e.Method.Name(), err)
	}
	if p.flags.json() {
		return p.printJSON(out, true)
	}
	next := ""
	if fd := e.Out.Fields().ByName(nextPage); fd != nil && fd.Kind() == protoreflect.StringKind {
		next = out.Get(fd).String()
		out.Clear(fd)
	}
	p.show().Message(out, 0)
	if empty(out) {
		p.out.Line(term.Plain, "Nothing.")
	}
	if next != "" {
		p.out.Line(term.Dim, "There is more: the same query with --page-token %s", next)
	}
	return nil
}

// empty says whether an answer has no row and no value.
func empty(m protoreflect.Message) bool {
	found := false
	m.Range(func(protoreflect.FieldDescriptor, protoreflect.Value) bool {
		found = true
		return false
	})
	return !found
}

// commandsVerb lists the commands and queries of the catalogue.
func (p *program) commandsVerb() *cobra.Command {
	return &cobra.Command{
		Use:     "commands",
		Short:   "List the commands: what each one does, its effect, and when it asks a person",
		GroupID: groupCommands,
		Args:    p.takes(),
		RunE: func(c *cobra.Command, _ []string) error {
			known, err := p.catalogue(c.Context())
			if err != nil {
				return err
			}
			if known.why != nil {
				_, text := p.explain(known.why)
				p.warn("this is not the server's own list: %s", text)
			}
			if p.flags.json() {
				return p.commandsJSON(known)
			}
			t := term.Table{Header: []string{"name", "effect", "asks a person", "what it does"}, Shrink: []int{3}}
			for _, e := range known.Commands() {
				t.Rows = append(t.Rows, []term.Cell{
					{Text: e.Name, Style: term.Bold},
					{Text: effect(e), Style: effectStyle(e)},
					term.Text(approval(e)),
					term.Text(firstSentence(e.Summary)),
				})
			}
			p.out.Table(t)
			return nil
		},
	}
}

func effectStyle(e *catalog.Entry) term.Style {
	if e.Command.GetEffect() == optionv1.Effect_EFFECT_DESTRUCTIVE {
		return term.Yellow
	}
	return term.Plain
}

// commandInfo is a command as JSON.
type commandInfo struct {
	Name     string `json:"name"`
	Family   string `json:"family"`
	Effect   string `json:"effect"`
	Approval string `json:"approval"`
	// ApprovalArguments are the arguments that have a person asked where they are true.
	ApprovalArguments []string `json:"approvalArguments"`

	Idempotent bool   `json:"idempotent"`
	MaxTargets int    `json:"maxTargets"`
	TTL        string `json:"ttl"`
	Undo       string `json:"undo"`
	Summary    string `json:"summary"`
}

func (p *program) commandsJSON(k *known) error {
	list := struct {
		Commands []commandInfo `json:"commands"`
		Digest   string        `json:"digest"`
	}{Digest: k.Digest()}
	for _, e := range k.Commands() {
		info := commandInfo{
			Name: e.Name, Family: e.Family, Effect: effect(e), Idempotent: e.Command.GetIdempotent(),
			Approval:          args.ShortOf(e.Command.GetApproval().Descriptor(), e.Command.GetApproval().Number()),
			ApprovalArguments: append([]string{}, e.Consents()...), MaxTargets: e.MaxTargets(), TTL: fmt.Sprintf("%gs", e.TTL().Seconds()), Summary: e.Summary,
		}
		if undo, ok := k.undo(e); ok {
			info.Undo = undo.Name
		}
		list.Commands = append(list.Commands, info)
	}
	return p.printValue(list)
}
