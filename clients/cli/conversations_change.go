package cli

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"google.golang.org/protobuf/proto"

	"throwbar.dev/throwbar/clients/cli/talk"
	"throwbar.dev/throwbar/clients/cli/term"
	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
)

const (
	maxPrompt = 64 << 10
	maxWakes  = 100
)

// effort is how hard a model thinks.
type effort struct{ value *string }

func (e effort) String() string {
	if e.value == nil {
		return ""
	}
	return *e.value
}

// Type is the word for the value in the help text.
func (e effort) Type() string { return "effort" }

// Set takes one of the efforts, or nothing for the model's own.
func (e effort) Set(text string) error {
	if text == "" {
		*e.value = ""
		return nil
	}
	return choice{e.value, []string{"none", "low", "medium", "high", "max"}}.Set(text)
}

// modelAsk is which model is asked for.
type modelAsk struct {
	models []string
	effort string
}

func (ask *modelAsk) bind(set *pflag.FlagSet, what string) {
	set.StringSliceVar(&ask.models, "model", nil, "the model "+what+": `name`, as `throwbar models` lists them; several are asked in order until one answers")
	set.Var(effort{&ask.effort}, "effort", "how hard it thinks: "+effortWords)
}

// choice is what is asked for; nil if nothing is.
func (ask *modelAsk) choice() *agentv1.ModelChoice {
	if len(ask.models) == 0 && ask.effort == "" {
		return nil
	}
	return &agentv1.ModelChoice{Models: ask.models, Effort: ask.effort}
}

// over is the choice that the flags make of the one before: what no flag is about stays. It is nil if none is about it.
func (ask *modelAsk) over(before *agentv1.ModelChoice, flags *pflag.FlagSet) *agentv1.ModelChoice {
	models, effort := flags.Changed("model"), flags.Changed("effort")
	if !models && !effort {
		return nil
	}
	made := &agentv1.ModelChoice{Models: before.GetModels(), Effort: before.GetEffort()}
	if models {
		made.Models = each(nil, ask.models)
	}
	if effort {
		made.Effort = ask.effort
	}
	return made
}

// settingsAsk are the flags that are a conversation's settings.
type settingsAsk struct {
	model            modelAsk
	prompt, file     string
	folder           string
	wakes            string
	only, more, deny []string
	reset            bool
}

func (ask *settingsAsk) bind(p *program, c *cobra.Command) {
	set := c.Flags()
	set.SortFlags = false
	ask.model.bind(set, "that answers")
	set.StringVar(&ask.prompt, "prompt", "", "what its agent is told beside the server's own rules: `text`")
	set.StringVar(&ask.file, "prompt-file", "", "the same from a `file`; - reads the standard input")
	set.StringSliceVar(&ask.more, "grant", nil, "a tool that is off unless it is granted: `name`, as `throwbar tools list` says; repeatable")
	set.StringSliceVar(&ask.only, "only", nil, "no other tools than these: `name` or group; repeatable")
	set.StringSliceVar(&ask.deny, "deny", nil, "never this tool: `name` or group; repeatable")
	set.StringVar(&ask.folder, "working-directory", "", "the `folder` that the work is about")
	set.StringVar(&ask.wakes, "wakes", "", "how often agents may wake it in a row before a person writes in it: `times`, from 0 for never "+
		"to 100, or default for the server's bound")
	for _, flag := range []string{"grant", "only", "deny"} {
		_ = c.RegisterFlagCompletionFunc(flag, p.completeTools)
	}
	_ = c.RegisterFlagCompletionFunc("model", p.completeModels)
}

// text is the prompt; given says whether one is.
func (ask *settingsAsk) text(stdin io.Reader, flags *pflag.FlagSet) (text string, given bool, err error) {
	switch {
	case ask.file != "" && flags.Changed("prompt"):
		return "", false, Errorf(Invalid, "only one of --prompt and --prompt-file can be given")
	case ask.file == "":
		return ask.prompt, flags.Changed("prompt"), nil
	}
	in := stdin
	if ask.file != "-" {
		file, err := os.Open(ask.file)
		if err != nil {
			return "", false, Errorf(Invalid, "--prompt-file: %w", err)
		}
		defer file.Close()
		in = file
	}
	raw, err := io.ReadAll(io.LimitReader(in, maxPrompt+1))
	switch {
	case err != nil:
		return "", false, Errorf(Invalid, "--prompt-file %s: %w", ask.file, err)
	case len(raw) > maxPrompt:
		return "", false, Errorf(Invalid, "--prompt-file %s is longer than %s", ask.file, talk.Size(maxPrompt))
	case !utf8.Valid(raw):
		return "", false, Errorf(Invalid, "--prompt-file %s is not UTF-8", ask.file)
	}
	return strings.TrimRight(string(raw), "\n"), true, nil
}

// bound is how often agents may wake it; nil if no flag is about that.
func (ask *settingsAsk) bound(flags *pflag.FlagSet) (*agentv1.WakeBound, error) {
	if !flags.Changed("wakes") {
		return nil, nil
	}
	if ask.wakes == "default" {
		return &agentv1.WakeBound{}, nil
	}
	n, err := strconv.ParseUint(ask.wakes, 10, 32)
	if err != nil || n > maxWakes {
		return nil, Errorf(Invalid, "--wakes is a number from 0 to %d, or default", maxWakes)
	}
	return &agentv1.WakeBound{Most: proto.Uint32(uint32(n))}, nil
}

// grants are the grants that the flags make of those before; nil if no flag is about them.
func (ask *settingsAsk) grants(before *agentv1.Grants, flags *pflag.FlagSet) *agentv1.Grants {
	if !ask.reset && !flags.Changed("grant") && !flags.Changed("only") && !flags.Changed("deny") {
		return nil
	}
	made := &agentv1.Grants{}
	if !ask.reset {
		made.Only, made.Extra, made.Denied = before.GetOnly(), before.GetExtra(), before.GetDenied()
	}
	if flags.Changed("only") {
		made.Only = nil
	}
	made.Only = each(made.GetOnly(), ask.only)
	made.Extra = each(made.GetExtra(), ask.more)
	made.Denied = each(made.GetDenied(), ask.deny)
	return made
}

// each is a list with what another one has beside it, each once.
func each(list, more []string) []string {
	var all []string
	seen := map[string]bool{}
	for _, name := range append(append([]string{}, list...), more...) {
		if name != "" && !seen[name] {
			seen[name] = true
			all = append(all, name)
		}
	}
	return all
}

func (p *program) conversationsCreateVerb() *cobra.Command {
	var ask settingsAsk
	var title, agent string
	c := &cobra.Command{
		Use:   "create",
		Short: "Begin a conversation without saying anything in it yet",
		Example: "  throwbar conversations create --title \"Tabs of the trip\" --prompt-file trip.txt\n" +
			"  throwbar conversations create --only browser,devices --model small",
		Args: p.takes(),
		RunE: func(c *cobra.Command, _ []string) error {
			text, _, err := ask.text(p.Stdin, c.Flags())
			if err != nil {
				return err
			}
			wakes, err := ask.bound(c.Flags())
			if err != nil {
				return err
			}
			s, err := p.api()
			if err != nil {
				return err
			}
			answer, err := s.Agent.CreateConversation(c.Context(), &agentv1.CreateConversationRequest{
				Title: title, Agent: agent, Settings: &agentv1.ConversationSettings{
					Prompt: text, Model: ask.model.choice(), Grants: ask.grants(nil, c.Flags()), WorkingDirectory: ask.folder, Wakes: wakes,
				},
			})
			if err != nil {
				return fmt.Errorf("begin a conversation: %w", err)
			}
			return p.changed(answer, answer.GetConversation(), "begun: `throwbar chat --conversation HANDLE` talks in it")
		},
	}
	c.Flags().StringVar(&title, "title", "", "its `title`; made from the first message if left out")
	c.Flags().StringVar(&agent, "agent", "", "begin it as this agent: `name`, as `throwbar agents` lists them")
	ask.bind(p, c)
	_ = c.RegisterFlagCompletionFunc("agent", p.completeAgents)
	return c
}

func (p *program) conversationsSettingsVerb() *cobra.Command {
	var ask settingsAsk
	c := &cobra.Command{
		Use:   "settings CONVERSATION",
		Short: "Change what a conversation has of its own: prompt, model, tools, wakes; show it if nothing is changed",
		Long: "Change what a conversation has of its own: prompt, model, tools, wakes. Without a flag it shows them.\n\nWhat is left out stays. " +
			"--grant and --deny add to what there is, --only takes its place; --reset-grants begins anew. An empty --prompt, --model or " +
			"--effort takes its own away, so that the server's default holds again. A change holds from the " +
			"next step of a turn that runs. What policy forbids stays forbidden whatever is granted here.",
		Args: p.takes(conversationArg),
		RunE: func(c *cobra.Command, words []string) error {
			wakes, err := ask.bound(c.Flags())
			if err != nil {
				return err
			}
			s, at, err := p.named(c.Context(), words[0])
			if err != nil {
				return err
			}
			req := &agentv1.UpdateConversationRequest{
				ConversationId: at.GetConversationId(),
				Wakes:          wakes,
				Model:          ask.model.over(at.GetSettings().GetModel(), c.Flags()),
				Grants:         ask.grants(at.GetSettings().GetGrants(), c.Flags()),
			}
			text, given, err := ask.text(p.Stdin, c.Flags())
			if err != nil {
				return err
			}
			if given {
				req.Prompt = &text
			}
			if c.Flags().Changed("working-directory") {
				req.WorkingDirectory = &ask.folder
			}
			if req.Model == nil && req.Grants == nil && req.Prompt == nil && req.WorkingDirectory == nil && req.Wakes == nil {
				return p.showConversation(&agentv1.GetConversationResponse{Conversation: at})
			}
			answer, err := s.Agent.UpdateConversation(c.Context(), req)
			if err != nil {
				return fmt.Errorf("change conversation %s: %w", at.GetHandle(), err)
			}
			return p.showConversation(&agentv1.GetConversationResponse{Conversation: answer.GetConversation()})
		},
		ValidArgsFunction: p.completeConversations(false),
	}
	ask.bind(p, c)
	c.Flags().BoolVar(&ask.reset, "reset-grants", false, "take all grants of tools back before the others are read")
	return c
}

func (p *program) conversationsRenameVerb() *cobra.Command {
	return &cobra.Command{
		Use:               "rename CONVERSATION TITLE...",
		Short:             "Give a conversation another title",
		Args:              p.takesText(conversationArg, "a title"),
		ValidArgsFunction: p.completeConversations(false),
		RunE: func(c *cobra.Command, words []string) error {
			s, at, err := p.named(c.Context(), words[0])
			if err != nil {
				return err
			}
			title := strings.Join(words[1:], " ")
			answer, err := s.Agent.UpdateConversation(c.Context(), &agentv1.UpdateConversationRequest{
				ConversationId: at.GetConversationId(), Title: &title,
			})
			if err != nil {
				return fmt.Errorf("rename conversation %s: %w", at.GetHandle(), err)
			}
			return p.changed(answer, answer.GetConversation(), "renamed")
		},
	}
}

func (p *program) conversationsArchiveVerb() *cobra.Command {
	return &cobra.Command{
		Use:               "archive CONVERSATION",
		Short:             "Archive a conversation: its handle is free, nothing can be said in it, and a turn that runs is stopped",
		Args:              p.takes(conversationArg),
		ValidArgsFunction: p.completeConversations(false),
		RunE: func(c *cobra.Command, words []string) error {
			s, at, err := p.named(c.Context(), words[0])
			if err != nil {
				return err
			}
			answer, err := s.Agent.ArchiveConversation(c.Context(), &agentv1.ArchiveConversationRequest{ConversationId: at.GetConversationId()})
			if err != nil {
				return fmt.Errorf("archive conversation %s: %w", at.GetHandle(), err)
			}
			return p.changed(answer, answer.GetConversation(), "archived: `throwbar conversations reopen ID` opens it again")
		},
	}
}

func (p *program) conversationsReopenVerb() *cobra.Command {
	return &cobra.Command{
		Use:               "reopen ID",
		Short:             "Open an archived conversation again",
		Args:              p.takes("the whole id of an archived conversation"),
		ValidArgsFunction: p.completeConversations(true),
		RunE: func(c *cobra.Command, words []string) error {
			if len(words[0]) < wholeLength {
				return Errorf(Invalid, "an archived conversation has no handle: give its whole id, which "+
					"`throwbar conversations list --archived` shows")
			}
			s, err := p.api()
			if err != nil {
				return err
			}
			answer, err := s.Agent.ReopenConversation(c.Context(), &agentv1.ReopenConversationRequest{ConversationId: words[0]})
			if err != nil {
				return fmt.Errorf("open conversation %s again: %w", term.Visible(words[0]), err)
			}
			return p.changed(answer, answer.GetConversation(), "open again")
		},
	}
}

func (p *program) conversationsStopVerb() *cobra.Command {
	return &cobra.Command{
		Use:               "stop CONVERSATION",
		Short:             "Stop the turn that runs, and the agents that it has started; what waits is read with the next message",
		Args:              p.takes(conversationArg),
		ValidArgsFunction: p.completeConversations(false),
		RunE: func(c *cobra.Command, words []string) error {
			s, at, err := p.named(c.Context(), words[0])
			if err != nil {
				return err
			}
			answer, err := s.Agent.StopTurn(c.Context(), &agentv1.StopTurnRequest{ConversationId: at.GetConversationId()})
			if err != nil {
				return fmt.Errorf("stop conversation %s: %w", at.GetHandle(), err)
			}
			if p.flags.json() {
				return p.printJSON(answer, true)
			}
			text := "stopped"
			if !answer.GetStopped() {
				text = "no turn ran"
			}
			p.out.Line(term.Plain, "%s  %s", at.GetHandle(), text)
			return nil
		},
	}
}

func (p *program) conversationsSendVerb() *cobra.Command {
	var model modelAsk
	var steer bool
	var id string
	c := &cobra.Command{
		Use:   "send CONVERSATION MESSAGE...",
		Short: "Say something in a conversation and return at once: a turn begins, or it waits for the one that runs",
		Long: "Say something in a conversation and return at once: a turn begins, or the message waits for the one that runs.\n\n" +
			"`throwbar chat` begins a new conversation, and shows what is answered.",
		Args:              p.takesText(conversationArg, "a message"),
		ValidArgsFunction: p.completeConversations(false),
		RunE: func(c *cobra.Command, words []string) error {
			if id == "" {
				id = uuid.NewString()
			} else if _, err := uuid.Parse(id); err != nil {
				return Errorf(Invalid, "--message-id %q is no UUID: %w", id, err)
			}
			s, at, err := p.named(c.Context(), words[0])
			if err != nil {
				return err
			}
			ask := &agentv1.SendRequest{
				ConversationId: set(at.GetConversationId()), Message: strings.Join(words[1:], " "), Model: model.choice(), MessageId: &id,
				Mode: agentv1.SendMode_SEND_MODE_QUEUE,
			}
			if steer {
				ask.Mode = agentv1.SendMode_SEND_MODE_STEER
			}
			answer, err := p.deliver(c.Context(), s, ask)
			if err != nil {
				return err
			}
			if p.flags.json() {
				return p.printJSON(answer, true)
			}
			p.delivered(answer)
			return nil
		},
	}
	c.Flags().BoolVar(&steer, "steer", false, "let it enter a turn that runs, instead of waiting for its end")
	c.Flags().StringVar(&id, "message-id", "", "a `uuid` of your own, so that a repeat says it once")
	model.bind(c.Flags(), "for the turn that it begins")
	_ = c.RegisterFlagCompletionFunc("model", p.completeModels)
	return c
}

func (p *program) conversationsShowVerb() *cobra.Command {
	return &cobra.Command{
		Use:               "show CONVERSATION",
		Short:             "Show a conversation: what it does, and its settings",
		Args:              p.takes(conversationArg),
		ValidArgsFunction: p.completeConversations(false),
		RunE: func(c *cobra.Command, words []string) error {
			_, at, err := p.named(c.Context(), words[0])
			if err != nil {
				return err
			}
			return p.showConversation(&agentv1.GetConversationResponse{Conversation: at})
		},
	}
}

func (p *program) showConversation(answer *agentv1.GetConversationResponse) error {
	if p.flags.json() {
		return p.printJSON(answer, true)
	}
	c := answer.GetConversation()
	own := c.GetSettings()
	does := conversationState(c).Text
	if does == "" {
		does = "idle"
	}
	queued, prompt := "", ""
	if c.GetQueued() > 0 {
		queued = fmt.Sprintf("%d %s", c.GetQueued(), waiting(uint64(c.GetQueued())))
	}
	if own.GetPrompt() != "" {
		prompt = talk.OneLine(own.GetPrompt())
	}
	p.out.Facts(
		0,
		[2]string{"handle", c.GetHandle()},
		[2]string{"title", c.GetTitle()},
		[2]string{"id", c.GetConversationId()},
		[2]string{"does", does},
		[2]string{"waiting", queued},
		[2]string{"agent", c.GetAgent()},
		[2]string{"started by", c.GetParentId()},
		[2]string{"wakes left", wakesLeft(c)},
		[2]string{"prompt", prompt},
		[2]string{"model", strings.Join(own.GetModel().GetModels(), ", ")},
		[2]string{"effort", own.GetModel().GetEffort()},
		[2]string{"only", strings.Join(own.GetGrants().GetOnly(), ", ")},
		[2]string{"granted", strings.Join(own.GetGrants().GetExtra(), ", ")},
		[2]string{"denied", strings.Join(own.GetGrants().GetDenied(), ", ")},
		[2]string{"folder", own.GetWorkingDirectory()},
		[2]string{"events", fmt.Sprint(c.GetSequence())},
		[2]string{"begun", term.When(c.GetCreatedAt().AsTime(), p.Now())},
		[2]string{"last used", term.When(c.GetUpdatedAt().AsTime(), p.Now())},
	)
	return nil
}

func wakesLeft(c *agentv1.Conversation) string {
	text := fmt.Sprintf("%d by agents, before a person writes", c.GetWakesLeft())
	if own := c.GetSettings().GetWakes(); own != nil && own.Most != nil {
		text += fmt.Sprintf(" (its own bound: %d)", own.GetMost())
	}
	return text
}

// changed says what became of a conversation. HANDLE and ID in the text are its own.
func (p *program) changed(answer proto.Message, c *agentv1.Conversation, text string) error {
	if p.flags.json() {
		return p.printJSON(answer, true)
	}
	text = strings.NewReplacer("HANDLE", c.GetHandle(), "ID", c.GetConversationId()).Replace(text)
	p.out.Line(term.Plain, "%s", strings.Join(talk.Spoken(c.GetHandle(), talk.OneLine(c.GetTitle()), text), "  "))
	return nil
}
