package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"throwbar.dev/throwbar/catalog"
	"throwbar.dev/throwbar/clients/cli/args"
	"throwbar.dev/throwbar/clients/cli/view"
)

// Groups of verbs in the help text.
const (
	groupDevices  = "devices"
	groupCommands = "commands"
	groupAgent    = "agent"
	groupServer   = "server"
)

// execute builds the verbs, runs the one that was asked for, and reports how it ended.
func (p *program) execute(ctx context.Context) int {
	root, err := p.tree(ctx)
	if err != nil {
		return p.end(ctx, err)
	}
	defer p.disconnect()
	if err := root.ExecuteContext(ctx); err != nil {
		return p.end(ctx, err)
	}
	return p.end(ctx, p.written.lost())
}

func (p *program) tree(ctx context.Context) (*cobra.Command, error) {
	p.flags = globals{env: p.Env}
	root := &cobra.Command{
		Use:   "throwbar",
		Short: "Act on any of your devices with typed commands.",
		Long: "Throwbar acts on any of your devices (browsers, desktops, servers, terminals) with typed commands: yours, " +
			"a program's, or an agent's.",
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	p.flags.bind(root.PersistentFlags())
	_ = root.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"table", "json"}, cobra.ShellCompDirectiveNoFileComp))
	root.AddGroup(
		&cobra.Group{ID: groupDevices, Title: "Devices"}, &cobra.Group{ID: groupCommands, Title: "Commands"},
		&cobra.Group{ID: groupAgent, Title: "Agent"}, &cobra.Group{ID: groupServer, Title: "Server and program"},
	)
	root.SetIn(p.Stdin)
	root.SetOut(p.Stdout)
	root.SetErr(p.Stderr)
	root.SetArgs(append([]string{}, p.Args...)) // cobra reads the arguments of the process if it is given nil
	root.SetHelpFunc(p.help)
	root.SetUsageFunc(func(c *cobra.Command) error { p.help(c, nil); return nil })
	root.SetFlagErrorFunc(p.flagError)
	root.SetCompletionCommandGroupID(groupServer)
	p.branch(root)

	dynamic, err := p.dynamic(ctx)
	if err != nil {
		return nil, err
	}
	root.AddCommand(
		p.devicesVerb(), p.tabsVerb(), p.pairVerb(), p.simVerb(), p.watchVerb(),
		dynamic.call, dynamic.query, p.commandsVerb(), p.policyVerb(dynamic.explain), p.historyVerb(), p.cancelVerb(), p.undoVerb(),
		p.approvalsVerb(), p.chatVerb(), p.conversationsVerb(), p.modelsVerb(), p.agentsVerb(), p.toolsVerb(),
		p.tokenVerb(), p.workspaceVerb(), p.auditVerb(), p.versionVerb(),
	)
	for _, verb := range p.Extra {
		if verb.GroupID == "" {
			verb.GroupID = groupServer
		}
		root.AddCommand(verb)
	}
	root.SetHelpCommand(p.helpVerb())
	exemplify(root)
	strict(root)
	return root, nil
}

// dynamicVerbs are the verbs that are built from the catalogue.
type dynamicVerbs struct{ call, query, explain *cobra.Command }

// dynamic builds them, from the server's catalogue if one of them is asked for, else empty: they are only listed then.
func (p *program) dynamic(ctx context.Context) (dynamicVerbs, error) {
	verbs := dynamicVerbs{call: p.callVerb(), query: p.queryVerb(), explain: p.policyExplainVerb()}
	word := p.verbAsked()
	if word != verbs.call.Name() && word != verbs.query.Name() && word != policyName {
		return verbs, nil
	}
	known, err := p.catalogue(ctx)
	if err != nil {
		return verbs, err
	}
	p.addEntries(verbs.call, known.Commands(), p.callCommand)
	p.addEntries(verbs.query, known.Queries(), p.queryCommand)
	p.addEntries(verbs.explain, known.Commands(), p.explainCommand)
	return verbs, nil
}

// addEntries puts entries of the catalogue under a verb. Only those that the arguments name get their flags: reading
// the rules of all of them takes longer than a call.
func (p *program) addEntries(verb *cobra.Command, entries []*catalog.Entry, full func(*catalog.Entry) *cobra.Command) {
	for _, e := range entries {
		switch {
		case !args.ValidName(e.Name):
		case slices.ContainsFunc(append([]string{e.Name}, e.Aliases...), func(name string) bool {
			return slices.Contains(p.Args, name)
		}):
			verb.AddCommand(full(e))
		default:
			verb.AddCommand(&cobra.Command{Use: e.Name, Short: firstSentence(e.Summary), RunE: func(c *cobra.Command, _ []string) error {
				return Errorf(Failed, "%s was not named as an argument of its own", c.CommandPath())
			}})
		}
	}
}

// verbAsked is the verb that the arguments ask for, to run, to be explained or to be completed. It reads the global
// flags on the way: the catalogue is fetched before cobra knows all flags.
func (p *program) verbAsked() string {
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	set.ParseErrorsAllowlist.UnknownFlags = true
	set.Usage = func() {}
	p.flags.bind(set)
	_ = set.Parse(p.Args) // cobra reports what is wrong with them
	words := set.Args()
	for len(words) > 0 && (words[0] == "help" || strings.HasPrefix(words[0], cobra.ShellCompRequestCmd)) {
		words = words[1:]
	}
	if len(words) == 0 {
		return ""
	}
	return words[0]
}

// branch makes a verb that only has verbs under it: alone it shows help, anything else is a misspelt name.
func (p *program) branch(c *cobra.Command) *cobra.Command {
	c.Args = cobra.ArbitraryArgs
	c.RunE = func(c *cobra.Command, words []string) error {
		if len(words) == 0 {
			return c.Help()
		}
		return p.unknownVerb(c, words[0])
	}
	return c
}

func (p *program) unknownVerb(c *cobra.Command, word string) error {
	if p.known != nil && p.known.why != nil && c.HasParent() { // the server may well have it
		return p.known.why
	}
	var names []string
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			names = append(names, sub.Name())
		}
	}
	if near := args.Nearest(word, names); near != "" {
		return Errorf(Invalid, "%s has no %q: did you mean %s?", c.CommandPath(), word, near)
	}
	return Errorf(Invalid, "%s has no %q: `%s --help` lists what there is", c.CommandPath(), word, c.CommandPath())
}

// flagError names the flag, or the verb before it, that was probably meant.
func (p *program) flagError(c *cobra.Command, err error) error {
	var bare *pflag.ValueRequiredError
	if errors.As(err, &bare) {
		word, _ := pflag.UnquoteUsage(bare.GetFlag())
		return Errorf(Invalid, "--%s needs a value (%s): `%s --help` says which", bare.GetFlag().Name, word, c.CommandPath())
	}
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return &Exit{Code: Invalid, Err: tidyFlagError(err)}
	}
	if words := c.Flags().Args(); c.HasSubCommands() && len(words) > 0 {
		return p.unknownVerb(c, words[0])
	}
	var names []string
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	name := unknown.GetSpecifiedName()
	if near := args.Nearest(name, names); near != "" && len(name) > 1 {
		return Errorf(Invalid, "%s has no flag --%s: did you mean --%s?", c.CommandPath(), name, near)
	}
	return Errorf(Invalid, "%s has no flag --%s: `%s --help` lists them", c.CommandPath(), name, c.CommandPath())
}

// tidyFlagError says "--count x is no number …" instead of the flag library's longer text.
func tidyFlagError(err error) error {
	var value *pflag.InvalidValueError
	if errors.As(err, &value) {
		return fmt.Errorf("--%s %q %w", value.GetFlag().Name, value.GetValue(), tidyNumber(value.GetFlag().Value.Type(), value.Unwrap()))
	}
	return err
}

// tidyNumber says what is wrong with a number in place of the words of the library that reads it.
func tidyNumber(kind string, err error) error {
	var number *strconv.NumError
	switch {
	case kind == "duration" && strings.HasPrefix(err.Error(), "time: "): // the words of the package that reads it
		return errors.New("is no duration such as 90s, 15m or 720h")
	case !errors.As(err, &number):
		return err
	case errors.Is(err, strconv.ErrRange):
		return errors.New("is too large or too small")
	case strings.HasPrefix(kind, "uint"):
		return errors.New("is no whole number of 0 or more")
	case strings.HasPrefix(kind, "int"):
		return errors.New("is no whole number")
	case kind == "bool":
		return errors.New("is neither true nor false")
	}
	return errors.New("is no number")
}

// strict makes wrong arguments end with the code for invalid, of every verb.
func strict(c *cobra.Command) {
	if check := c.Args; check != nil {
		c.Args = func(c *cobra.Command, words []string) error {
			err := check(c, words)
			var exit *Exit
			if err != nil && !errors.As(err, &exit) {
				return &Exit{Code: Invalid, Err: err}
			}
			return err
		}
	}
	for _, sub := range c.Commands() {
		strict(sub)
	}
}

// takes checks the number of arguments; names say what they are.
func (p *program) takes(names ...string) cobra.PositionalArgs {
	return func(c *cobra.Command, words []string) error {
		switch {
		case len(words) < len(names):
			return Errorf(Invalid, "%s needs %s", c.CommandPath(), strings.Join(names[len(words):], " and "))
		case len(words) == len(names):
			return nil
		}
		extra := words[len(names)]
		if c.HasSubCommands() {
			return p.unknownVerb(c, extra)
		}
		if extra == "true" || extra == "false" {
			return Errorf(Invalid, "%s takes no %q: write a switch as --flag=%s", c.CommandPath(), extra, extra)
		}
		return Errorf(Invalid, "%s takes no %q: `%s --help` shows how", c.CommandPath(), extra, c.CommandPath())
	}
}

// takesText checks the arguments of a verb whose last one is a text, which need not be quoted and must not be empty.
func (p *program) takesText(names ...string) cobra.PositionalArgs {
	return func(c *cobra.Command, words []string) error {
		last := len(names) - 1
		if len(words) < len(names) {
			return p.takes(names...)(c, words)
		}
		switch text := strings.Join(words[last:], " "); {
		case strings.TrimSpace(text) == "":
			return Errorf(Invalid, "%s needs %s that is not empty", c.CommandPath(), names[last])
		case !utf8.ValidString(text):
			return Errorf(Invalid, "%s needs %s in UTF-8", c.CommandPath(), names[last])
		}
		return nil
	}
}

// show writes messages for a person.
func (p *program) show() view.Show { return view.Show{Screen: p.out, Now: p.Now()} }
