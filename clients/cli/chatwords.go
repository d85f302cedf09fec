package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"throwbar.dev/throwbar/clients/cli/args"
	"throwbar.dev/throwbar/clients/cli/talk"
	"throwbar.dev/throwbar/clients/cli/term"
	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
)

const defaultHistory = 10

// word is something that a person can do while talking.
type word struct {
	name, takes, does string
	begun             bool // there has to be a conversation
	do                func(ctx context.Context, rest string) error
}

// words lists them, in the order of the help.
func (c *chat) words() []word {
	return []word{
		{"/stop", "", "stop the turn that runs", true, c.wordStop},
		{"/steer", "TEXT", "say something that enters the turn at its next step", true, c.wordSteer},
		{"/queue", "[edit N TEXT | rm N]", "show what waits for the end of the turn, change it or take it back", true, c.wordQueue},
		{"/show", "N", "show call N in full: what was asked and all that was answered", true, c.wordShow},
		{"/history", "[N]", "show the last N messages, ten if left out", true, c.wordHistory},
		{"/model", "[NAME [EFFORT] | -]", "list the models, choose one, or go back to the default with -; effort is " + effortWords, false, c.wordModel},
		{"/tools", "", "list the tools that the agent has here", false, c.wordTools},
		{"/agents", "", "list the agents that are defined", false, c.wordAgents},
		{"/rename", "TITLE", "give the conversation another title", true, c.wordRename},
		{"/archive", "", "archive the conversation", true, c.wordArchive},
		{"/new", "", "leave this conversation and begin another with the next message", false, c.wordNew},
		{"/open", "HANDLE", "go to another conversation", false, c.wordOpen},
		{"/help", "", "show this", false, c.wordHelp},
		{"/quit", "", "leave; a turn that runs goes on", false, func(context.Context, string) error { return errQuit }},
	}
}

var errQuit = errors.New("the person leaves")

// command does what a line that begins with a slash says.
func (c *chat) command(ctx context.Context, line string) error {
	name, rest, _ := strings.Cut(line, " ")
	rest = strings.TrimSpace(rest)
	c.page.Line()
	var names []string
	for _, w := range c.words() {
		if w.name == name {
			if w.begun && c.at == nil {
				return Errorf(Invalid, "%s needs a conversation: say something first", name)
			}
			return w.do(ctx, rest)
		}
		names = append(names, w.name)
	}
	if near := args.Nearest(name, names); near != "" {
		return Errorf(Invalid, "there is no %s: did you mean %s? Two slashes begin a message with one", name, near)
	}
	return Errorf(Invalid, "there is no %s: /help lists what there is, and two slashes begin a message with one", name)
}

func (c *chat) wordHelp(context.Context, string) error {
	var rows [][2]string
	for _, w := range c.words() {
		rows = append(rows, [2]string{strings.TrimSpace(w.name + " " + w.takes), w.does})
	}
	helpPage{screen: c.program.err, width: min(c.program.err.Width, helpWidth)}.pairs(rows)
	if c.program.editor.Load() != nil {
		c.program.err.Line(term.Dim, "Up and Down bring back what was entered; Alt-Enter begins another line of a message; Enter sends it.")
	}
	return nil
}

func (c *chat) wordStop(ctx context.Context, _ string) error {
	stopped, err := c.stop(ctx)
	if err == nil && !stopped {
		c.program.err.Line(term.Dim, "No turn runs.")
	}
	return err
}

func (c *chat) wordSteer(ctx context.Context, text string) error {
	if text == "" {
		return Errorf(Invalid, "/steer needs what to say")
	}
	return c.say(ctx, text, agentv1.SendMode_SEND_MODE_STEER)
}

func (c *chat) wordQueue(ctx context.Context, rest string) error {
	id := c.at.GetConversationId()
	line, err := c.program.queue(ctx, c.server, id)
	if err != nil {
		return err
	}
	verb, rest, _ := strings.Cut(rest, " ")
	which, text, _ := strings.Cut(strings.TrimSpace(rest), " ")
	switch verb {
	case "":
		c.program.queueTable(c.program.err, line)
		return nil
	case "edit":
		err = c.program.editQueued(ctx, c.server, id, line, which, strings.TrimSpace(text))
	case "rm":
		which = strings.TrimSpace(rest)
		err = c.program.removeQueued(ctx, c.server, id, line, which)
	default:
		return Errorf(Invalid, "/queue takes edit N TEXT or rm N, not %q", verb)
	}
	if err != nil {
		return err
	}
	message, err := waits(line, which)
	c.own[message]++ // its event is no news
	return err
}

func (c *chat) wordShow(ctx context.Context, rest string) error {
	n, err := strconv.Atoi(rest)
	call := c.page.Find(n)
	if err != nil || call == nil {
		return Errorf(Invalid, "/show needs the number of a call that is shown here, as in [1]")
	}
	whole := ""
	if call.Result.GetWholeBytes() > 0 {
		if whole, err = c.program.toolOutput(ctx, c.server, call.Conversation, call.Call.GetCallId()); err != nil {
			return err
		}
	}
	call.Print(c.program.err, whole)
	return nil
}

func (c *chat) wordHistory(ctx context.Context, rest string) error {
	n := defaultHistory
	if rest != "" {
		var err error
		if n, err = strconv.Atoi(rest); err != nil || n < 1 {
			return Errorf(Invalid, "/history %q is no number of messages", rest)
		}
	}
	return c.program.transcript(ctx, c.server, c.at.GetConversationId(), n, &talk.Page{
		Out: c.program.err, Err: c.program.err, Verbose: c.ask.verbose,
	})
}

// takesBack is what is typed in place of a name for the default.
const takesBack = "-"

func (c *chat) wordModel(ctx context.Context, rest string) error {
	fields := strings.Fields(rest)
	if c.at != nil { // the events, which may lag behind, are not enough: what stays has to be what there is
		answer, err := c.server.Agent.GetConversation(ctx, &agentv1.GetConversationRequest{ConversationId: c.at.GetConversationId()})
		if err != nil {
			return fmt.Errorf("get the conversation: %w", err)
		}
		c.at.Settings = answer.GetConversation().GetSettings()
	}
	switch {
	case len(fields) == 0:
		c.program.err.Print(c.chosen())
		return c.program.listModels(ctx, c.program.err)
	case len(fields) > 2 || fields[0] == takesBack && len(fields) > 1:
		return Errorf(Invalid, "/model takes NAME and EFFORT, or - alone for the default model")
	}
	choice, err := c.chooses(fields)
	if err != nil {
		return err
	}
	name := modelWords(choice)
	if name == "" {
		name = "The default model"
	}
	if c.at == nil {
		if c.choice = choice; modelWords(choice) == "" {
			c.choice = nil
		}
		c.program.err.Line(term.Dim, "%s answers what is said now.", name)
		return nil
	}
	answer, err := c.server.Agent.UpdateConversation(ctx, &agentv1.UpdateConversationRequest{
		ConversationId: c.at.GetConversationId(), Model: choice,
	})
	if err != nil {
		return fmt.Errorf("choose the model: %w", err)
	}
	c.choice, c.at.Settings = nil, answer.GetConversation().GetSettings()
	c.program.err.Line(term.Dim, "%s answers in this conversation from the next step on.", name)
	return nil
}

// chooses is the choice that a person types. An effort that was chosen before stays where none is named.
func (c *chat) chooses(fields []string) (*agentv1.ModelChoice, error) {
	if fields[0] == takesBack {
		return &agentv1.ModelChoice{}, nil
	}
	choice := &agentv1.ModelChoice{Models: strings.Split(fields[0], ","), Effort: c.choice.GetEffort()}
	if choice.GetEffort() == "" {
		choice.Effort = c.at.GetSettings().GetModel().GetEffort()
	}
	if len(fields) == 1 {
		return choice, nil
	}
	wanted := fields[1]
	if wanted == takesBack {
		wanted = ""
	}
	if err := (effort{&choice.Effort}).Set(wanted); err != nil {
		return nil, Errorf(Invalid, "/model: effort %q %w", fields[1], err)
	}
	return choice, nil
}

// chosen says which model is chosen, as lines; empty if none is.
func (c *chat) chosen() string {
	if words := modelWords(c.choice); words != "" {
		return "Chosen here: " + term.Visible(words) + "\n"
	}
	if words := modelWords(c.at.GetSettings().GetModel()); words != "" {
		return "Of this conversation: " + term.Visible(words) + "\n"
	}
	return ""
}

// modelWords says a choice; empty if it is none.
func modelWords(choice *agentv1.ModelChoice) string {
	name := strings.Join(choice.GetModels(), ", ")
	switch {
	case choice.GetEffort() == "":
		return name
	case name == "":
		return "the default model (effort " + choice.GetEffort() + ")"
	default:
		return name + " (effort " + choice.GetEffort() + ")"
	}
}

func (c *chat) wordTools(ctx context.Context, _ string) error {
	return c.program.listTools(ctx, c.program.err, c.at.GetConversationId(), false)
}

func (c *chat) wordAgents(ctx context.Context, _ string) error {
	return c.program.listAgents(ctx, c.program.err)
}

func (c *chat) wordRename(ctx context.Context, title string) error {
	if title == "" {
		return Errorf(Invalid, "/rename needs a title")
	}
	c.page.Titled(title)
	_, err := c.server.Agent.UpdateConversation(ctx, &agentv1.UpdateConversationRequest{
		ConversationId: c.at.GetConversationId(), Title: &title,
	})
	if err != nil {
		return fmt.Errorf("rename: %w", err)
	}
	c.at.Title = title
	c.program.err.Line(term.Dim, "%s  %s", c.at.GetHandle(), title)
	return nil
}

func (c *chat) wordArchive(ctx context.Context, _ string) error {
	id := c.at.GetConversationId()
	if _, err := c.server.Agent.ArchiveConversation(ctx, &agentv1.ArchiveConversationRequest{ConversationId: id}); err != nil {
		return fmt.Errorf("archive: %w", err) // it stays there: what is said next goes there
	}
	c.exit() // its end is no news
	c.page.Forget()
	c.program.err.Line(term.Dim, "Archived: `throwbar conversations reopen %s` opens it again. The next message begins a new one.", id)
	return nil
}

func (c *chat) wordNew(context.Context, string) error {
	if c.turn != "" {
		c.program.err.Line(term.Dim, "The turn in %s goes on.", c.at.GetHandle())
	}
	c.exit()
	c.page.Forget()
	c.program.err.Line(term.Dim, "The next message begins a new conversation.")
	return nil
}

func (c *chat) wordOpen(ctx context.Context, ref string) error {
	if ref == "" {
		return Errorf(Invalid, "/open needs the handle of a conversation: `throwbar conversations list` lists them")
	}
	at, err := c.program.conversation(ctx, c.server, ref)
	if err != nil {
		return err
	}
	if at.GetArchived() {
		return errArchived(at)
	}
	if err := c.enter(ctx, at, at.GetSequence()); err != nil {
		return err
	}
	c.page.Forget()
	c.page.Titled(at.GetTitle())
	c.head()
	return nil
}
