package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"
	"google.golang.org/protobuf/types/known/durationpb"

	"throwbar.dev/throwbar/catalog"
	"throwbar.dev/throwbar/clients/cli/args"
	"throwbar.dev/throwbar/clients/cli/term"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	optionv1 "throwbar.dev/throwbar/gen/go/throwbar/option/v1"
)

const maxJSON = 4 << 20

// callVerb is the verb that every command is under.
func (p *program) callVerb() *cobra.Command {
	return p.branch(&cobra.Command{
		Use:     "call",
		Short:   "Send a command to one or several devices and wait for its outcome",
		GroupID: groupCommands,
		Long: "Send a command to one or several devices and wait for its outcome. An interrupt cancels what is not done " +
			"yet.\n\nThe commands below are the server's. `throwbar commands` shows their effects.",
	})
}

// envelope is what a command travels in.
type envelope struct {
	devices  []string
	json     string
	ttl      time.Duration
	dryRun   bool
	planHash string
	detach   bool
}

// reserved says which names a field's flag cannot have.
func reserved(own ...string) func(string) bool {
	names := map[string]bool{"server": true, "token-file": true, "output": true, "help": true, "json": true}
	for _, name := range own {
		names[name] = true
	}
	return func(name string) bool { return names[name] }
}

// callCommand is the verb of one command.
func (p *program) callCommand(e *catalog.Entry) *cobra.Command {
	c := &cobra.Command{Short: firstSentence(e.Summary), Aliases: e.Aliases, Args: p.takes()}
	flags := args.Bind(c.Flags(), e.In, e.Comment, reserved("device", "ttl", "dry-run", "plan-hash", "detach"))
	c.Use = useLine(e.Name, flags)
	var env envelope
	set := c.Flags()
	set.SortFlags = false
	set.StringSliceVar(&env.devices, "device", nil, "`device` to run it, by name or id; several with commas; all for "+
		"every one that is online and runs it")
	set.StringVar(&env.json, "json", "", "arguments as JSON `text`; - reads them from the standard input")
	set.DurationVar(&env.ttl, "ttl", 0, fmt.Sprintf("`time` to live: nothing runs after it; %s if left out, at most %s",
		term.Span(e.TTL()), term.Span(e.MaxTTL())))
	set.BoolVar(&env.dryRun, "dry-run", false, "say what would be done, and send nothing")
	set.StringVar(&env.planHash, "plan-hash", "", "run only if this is still the plan that a dry run printed: its `hash`")
	set.BoolVar(&env.detach, "detach", false, "send it and return at once")
	if e.FixesDevice() { // accepted all the same; the server checks that it agrees with the ids
		c.Flag("device").Hidden = true
	}
	c.Long = e.Summary + "\n\n" + p.about(e) + jsonOnly(flags)
	c.RunE = func(c *cobra.Command, _ []string) error { return p.runCall(c, e, flags, env) }
	p.complete(c, flags)
	return c
}

// useLine is a verb with the flags that it needs.
func useLine(name string, flags *args.Flags) string {
	return strings.Join(append([]string{name}, flags.Required()...), " ")
}

// about says how a command behaves.
func (p *program) about(e *catalog.Entry) string {
	text := fmt.Sprintf("Effect: %s. Asks a person: %s.", effect(e), approval(e))
	if e.Command.GetIdempotent() {
		text += " Running it twice is running it once."
	}
	if undo, ok := p.known.undo(e); ok && undo != e {
		text += fmt.Sprintf(" Undone by %s.", undo.Name)
	}
	return text
}

func jsonOnly(flags *args.Flags) string {
	if names := flags.JSONOnly(); len(names) > 0 {
		return "\n\nOnly --json can give: " + strings.Join(names, ", ") + "."
	}
	return ""
}

func effect(e *catalog.Entry) string {
	return args.ShortOf(e.Command.GetEffect().Descriptor(), e.Command.GetEffect().Number())
}

// approval says when a command asks a person.
func approval(e *catalog.Entry) string {
	if e.Command.GetApproval() == optionv1.Approval_APPROVAL_REQUIRED {
		return "always"
	}
	when := fmt.Sprintf("above %d targets", e.MaxTargets())
	if asks := e.Consents(); len(asks) > 0 {
		when += ", or with " + strings.Join(asks, ", ")
	}
	return when
}

func firstSentence(text string) string {
	first, _, _ := strings.Cut(text, "\n")
	if sentence, _, ok := strings.Cut(first, ". "); ok {
		first = sentence
	}
	return strings.TrimSuffix(first, ".")
}

// complete offers values where the possible ones are known.
func (p *program) complete(c *cobra.Command, flags *args.Flags) {
	flags.EachChoice(func(flag string, choices []string) {
		_ = c.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(choices, cobra.ShellCompDirectiveNoFileComp))
	})
	flags.Each(func(flag string, fd protoreflect.FieldDescriptor) {
		if catalog.TargetOf(fd) == optionv1.Target_TARGET_DEVICE {
			_ = c.RegisterFlagCompletionFunc(flag, p.completeDevices)
		}
	})
	if c.Flag("device") != nil {
		_ = c.RegisterFlagCompletionFunc("device", p.completeDevices)
	}
}

// arguments makes and checks the message of the flags.
func (p *program) arguments(ctx context.Context, e *catalog.Entry, flags *args.Flags, text string) (*dynamicpb.Message, error) {
	raw := []byte(text)
	if text == "-" {
		var err error
		if raw, err = io.ReadAll(io.LimitReader(p.Stdin, maxJSON+1)); err != nil {
			return nil, fmt.Errorf("read the arguments: %w", err)
		}
		if len(raw) > maxJSON {
			return nil, Errorf(Invalid, "the arguments are longer than %d bytes", maxJSON)
		}
	}
	m, err := flags.Message(raw, dynamicpb.NewTypes(p.known.Files()))
	if err != nil {
		return nil, &Exit{Code: Invalid, Err: err}
	}
	if err := flags.Check(m); err != nil {
		return nil, Errorf(Invalid, "%s: %w", e.Name, err)
	}
	if err := p.resolveFields(ctx, e, m); err != nil {
		return nil, err
	}
	return m, nil
}

func (p *program) runCall(c *cobra.Command, e *catalog.Entry, flags *args.Flags, env envelope) error {
	ctx := c.Context()
	if err := env.check(c); err != nil {
		return err
	}
	m, err := p.arguments(ctx, e, flags, env.json)
	if err != nil {
		return err
	}
	devices, err := p.devicesFor(ctx, e, m, env.devices)
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
	var ttl *durationpb.Duration
	if c.Flag("ttl").Changed {
		ttl = durationpb.New(env.ttl)
	}
	request, own := newRequest()
	if env.detach {
		answer, err := s.Commands.Submit(ctx, &controlv1.SubmitRequest{
			DeviceIds: devices, Action: action, Ttl: ttl, PlanHash: env.planHash, RequestId: request,
		})
		if err != nil {
			return fmt.Errorf("%s: %w", e.Name, err)
		}
		return p.submitted(e, answer)
	}
	answer, err := asking(ctx, p, s, own, func(ctx context.Context) (*controlv1.DispatchResponse, error) {
		return s.Commands.Dispatch(ctx, &controlv1.DispatchRequest{
			DeviceIds: devices, Action: action, Ttl: ttl, DryRun: env.dryRun, PlanHash: env.planHash, RequestId: request,
		})
	})
	if err != nil {
		return fmt.Errorf("%s: %w", e.Name, err)
	}
	line := ""
	if answer.GetPlanHash() != "" {
		if line, err = p.planLine(c, m, devices, answer.GetPlanHash()); err != nil {
			return err
		}
	}
	return p.dispatched(e, answer, line)
}

func (env envelope) check(c *cobra.Command) error {
	if env.dryRun && env.detach {
		return Errorf(Invalid, "only one of --dry-run and --detach can be given")
	}
	if c.Flag("ttl").Changed && env.ttl <= 0 {
		return Errorf(Invalid, "--ttl has to be longer than zero")
	}
	return nil
}

// devicesFor finds the devices of a command: those that the caller names, or none where ids in the arguments say it.
func (p *program) devicesFor(
	ctx context.Context, e *catalog.Entry, m *dynamicpb.Message, names []string,
) ([]string, error) {
	switch {
	case slices.Contains(names, allDevices) && len(names) > 1:
		return nil, Errorf(Invalid, "--device %s means every device: name no other beside it", allDevices)
	case slices.Contains(names, allDevices) && !e.FixesDevice():
		return p.devicesThatRun(ctx, e)
	case len(names) > 0 && !slices.Contains(names, allDevices):
		return p.resolve(ctx, names)
	}
	if e.FixesDevice() || e.HasSaved() {
		return nil, nil
	}
	for _, ref := range catalog.Targets(m) {
		switch ref.Kind {
		case optionv1.Target_TARGET_TAB, optionv1.Target_TARGET_WINDOW, optionv1.Target_TARGET_GROUP:
			return nil, nil
		default:
		}
	}
	return nil, p.askForDevice(ctx, e)
}
