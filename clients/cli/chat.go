package cli

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"throwbar.dev/throwbar/clients/cli/talk"
	"throwbar.dev/throwbar/clients/cli/term"
	throwbar "throwbar.dev/throwbar/clients/go"
	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
)

const (
	maxMessage  = 1 << 20
	sendTries   = 4
	stopWait    = 5 * time.Second
	effortWords = "none, low, medium, high or max"
)

// chatAsk are the flags of chat.
type chatAsk struct {
	conversation, agent      string
	model                    modelAsk
	fresh, detach, list      bool
	reasoning, verbose, used bool
	steer                    bool
	ambient                  bool // the conversation is what THROWBAR_CONVERSATION names
}

// chatVerb talks to the agent.
func (p *program) chatVerb() *cobra.Command {
	var ask chatAsk
	c := &cobra.Command{
		Use:     "chat [MESSAGE]...",
		Short:   "Talk to the agent, which acts on your devices",
		GroupID: groupAgent,
		Long: "Talk to the agent, which acts on your devices.\n\nWith a message it answers that one and ends. Without, it talks: what is " +
			"typed while the agent works waits for the end of the turn, /help lists what else can be done. From a pipe each line is " +
			"a message.\n\nAn interrupt stops the turn, the next one leaves. A turn goes on when this program is gone, and over a " +
			"restart of the server: `throwbar chat --conversation HANDLE` comes back to it.",
		Example: "  throwbar chat \"close my YouTube tabs\"\n  throwbar chat --conversation 3f2a \"and the ones on my laptop\"\n" +
			"  throwbar chat --detach \"sort my tabs into groups\"",
		Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, words []string) error {
			if ask.list {
				return p.listConversations(c.Context(), listAsk{})
			}
			message := strings.Join(words, " ")
			if len(words) > 0 && strings.TrimSpace(message) == "" {
				return Errorf(Invalid, "the message is empty: leave it out to talk")
			}
			if ask.conversation == "" && !ask.fresh {
				ask.conversation = p.Env("THROWBAR_CONVERSATION")
				ask.ambient = ask.conversation != ""
			}
			return p.runChat(c.Context(), ask, message)
		},
	}
	set := c.Flags()
	set.StringVar(&ask.conversation, "conversation", "", "go on with this conversation, by handle or `id` (THROWBAR_CONVERSATION)")
	set.BoolVar(&ask.fresh, "new", false, "begin a new conversation, whatever THROWBAR_CONVERSATION says")
	set.StringVar(&ask.agent, "agent", "", "begin the conversation as this agent: `name`, as `throwbar agents` lists them")
	ask.model.bind(set, "for what is said now")
	set.BoolVar(&ask.steer, "steer", false, "let the message enter a turn that runs, instead of waiting for its end")
	set.BoolVar(&ask.detach, "detach", false, "send the message and end; the turn goes on by itself")
	set.BoolVar(&ask.reasoning, "reasoning", false, "show the model's reasoning too")
	set.BoolVarP(&ask.verbose, "verbose", "v", false, "show what tools are asked and what they answer in full")
	set.BoolVar(&ask.used, "usage", false, "show at the end of a turn what the model counted")
	set.BoolVar(&ask.list, "list", false, "list the conversations instead")
	_ = c.RegisterFlagCompletionFunc("conversation", p.completeConversations(false))
	_ = c.RegisterFlagCompletionFunc("agent", p.completeAgents)
	_ = c.RegisterFlagCompletionFunc("model", p.completeModels)
	return c
}

func (ask chatAsk) check(message string) error {
	switch {
	case !utf8.ValidString(message):
		return errEncoding()
	case ask.fresh && ask.conversation != "":
		return Errorf(Invalid, "only one of --new and --conversation can be given")
	case ask.agent != "" && ask.ambient:
		return Errorf(Invalid, "--agent is for a new conversation, and THROWBAR_CONVERSATION names one: add --new")
	case ask.agent != "" && ask.conversation != "":
		return Errorf(Invalid, "--agent is for a new conversation: leave out --conversation")
	case ask.detach && message == "":
		return Errorf(Invalid, "--detach sends one message: give it as an argument")
	case ask.steer && ask.conversation == "":
		return Errorf(Invalid, "--steer enters a turn that runs: give its --conversation")
	}
	return nil
}

func errEncoding() error { return Errorf(Invalid, "the message is not UTF-8") }

// errArchived says that nothing can be said in a conversation.
func errArchived(at *agentv1.Conversation) error {
	id := at.GetConversationId()
	return Errorf(Refused, "conversation %s is archived: `throwbar conversations reopen %s` opens it again", id, id)
}

func (p *program) runChat(ctx context.Context, ask chatAsk, message string) error {
	if err := ask.check(message); err != nil {
		return err
	}
	if ask.conversation != "" && len(ask.conversation) < leastHandle {
		where := "--conversation"
		if ask.ambient {
			where = "THROWBAR_CONVERSATION"
		}
		return Errorf(Invalid, "%s %q is too short: it takes at least four characters", where, ask.conversation)
	}
	s, err := p.api()
	if err != nil {
		return err
	}
	model, err := s.Agent.GetModel(ctx, &agentv1.GetModelRequest{})
	if err != nil {
		return fmt.Errorf("ask for the model: %w", err)
	}
	if model.GetModel() == "" {
		return Errorf(Failed, "%s", model.GetHint())
	}
	c := &chat{
		program: p, server: s, ask: ask, model: model.GetModel(), pressed: make(chan struct{}, 1), choice: ask.model.choice(),
		news: make(chan news), known: map[string]string{}, own: map[string]int{}, children: map[string]string{},
	}
	c.page = talk.Page{Out: p.out, Err: p.err, Reasoning: ask.reasoning, Verbose: ask.verbose, Usage: ask.used}
	c.desk = p.newDesk(s, true)
	c.desk.who = c.asker
	if ask.conversation != "" {
		if c.at, err = p.conversation(ctx, s, ask.conversation); err != nil {
			return err
		}
		if c.at.GetArchived() {
			return errArchived(c.at)
		}
	}
	if ask.detach {
		return c.detached(ctx, message)
	}
	restore := p.interrupts.set(c.interrupt)
	defer restore()
	return c.run(ctx, message)
}

// detached sends a message and says how to follow what comes of it.
func (c *chat) detached(ctx context.Context, message string) error {
	if c.ask.agent != "" {
		if err := c.named(ctx); err != nil {
			return err
		}
	}
	answer, err := c.send(ctx, message, c.mode())
	if err != nil {
		return err
	}
	if c.program.flags.json() {
		return c.program.printJSON(answer, true)
	}
	c.program.delivered(answer)
	return nil
}

// mode is what a message does while a turn runs.
func (c *chat) mode() agentv1.SendMode {
	if c.ask.steer {
		return agentv1.SendMode_SEND_MODE_STEER
	}
	return agentv1.SendMode_SEND_MODE_QUEUE
}

// named begins a conversation as an agent.
func (c *chat) named(ctx context.Context) error {
	begun, err := c.server.Agent.CreateConversation(ctx, &agentv1.CreateConversationRequest{Agent: c.ask.agent})
	if err != nil {
		return fmt.Errorf("begin a conversation: %w", err)
	}
	c.at = begun.GetConversation()
	return nil
}

// send sends a message, again if the answer is lost on the way: by its id the server says it once.
func (c *chat) send(ctx context.Context, message string, mode agentv1.SendMode) (*agentv1.SendResponse, error) {
	id := uuid.NewString()
	c.page.Mine(id)
	ask := &agentv1.SendRequest{
		ConversationId: set(c.at.GetConversationId()), Message: message, Mode: mode, MessageId: &id, Model: c.choice,
	}
	return c.program.deliver(ctx, c.server, ask)
}

// deliver sends a message that has an id, again if the answer is lost on the way.
func (p *program) deliver(ctx context.Context, s *throwbar.Client, ask *agentv1.SendRequest) (*agentv1.SendResponse, error) {
	for try := 1; ; try++ {
		answer, err := s.Agent.Send(ctx, ask)
		problem, _ := problemOf(err)
		lost := problem.code == Offline && !problem.refused() || problem.code == Cancelled
		switch {
		case err == nil:
			return answer, nil
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case try == sendTries || !lost:
			return nil, fmt.Errorf("chat: %w", err)
		}
		if err := pause(ctx, try-1); err != nil {
			return nil, err
		}
	}
}

// delivered says what became of a message.
func (p *program) delivered(answer *agentv1.SendResponse) {
	handle := answer.GetHandle()
	switch answer.GetDelivery() {
	case agentv1.Delivery_DELIVERY_QUEUED:
		p.out.Line(term.Plain, "%s  it waits for the end of the turn that runs: `throwbar conversations queue %s` shows it", handle, handle)
	case agentv1.Delivery_DELIVERY_SUPPRESSED:
		p.out.Line(term.Yellow, "%s  it is held: agents have woken this conversation too often", handle)
	case agentv1.Delivery_DELIVERY_STEERED:
		p.out.Line(term.Plain, "%s  it enters the turn that runs at its next step", handle)
	default:
		p.out.Line(term.Plain, "%s  a turn has begun: `throwbar chat --conversation %s` follows it", handle, handle)
	}
}

// interrupt asks the loop to stop the turn, or to warn that the next interrupt leaves. It says false to leave.
func (c *chat) interrupt() bool {
	if c.twice.Swap(true) {
		return false
	}
	offer(c.pressed, struct{}{})
	return true
}

// stop stops the turn that runs. It says whether one did.
func (c *chat) stop(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWait)
	defer cancel()
	answer, err := c.server.Agent.StopTurn(ctx, &agentv1.StopTurnRequest{ConversationId: c.at.GetConversationId()})
	if err != nil {
		return false, fmt.Errorf("stop the turn: %w", err)
	}
	return answer.GetStopped(), nil
}

// report shows an error and lets the conversation go on.
func (c *chat) report(err error) {
	c.page.Line()
	if _, text := c.program.explain(err); text != "" {
		c.program.err.Line(term.Red, "throwbar: %s", text)
	}
}

// farewell says how to come back.
func (c *chat) farewell() {
	if c.at == nil || !c.program.err.Terminal || c.program.flags.json() {
		return
	}
	if c.turn != "" {
		c.program.err.Line(term.Dim, "The turn goes on without you.")
	}
	if c.ask.conversation == "" || c.turn != "" {
		c.program.err.Line(term.Dim, "To go on: throwbar chat --conversation %s", c.at.GetHandle())
	}
}

// ended is the error that a turn ends with.
func (c *chat) ended(end *agentv1.TurnEnded) error {
	switch end.GetReason() {
	case agentv1.TurnEnd_TURN_END_ANSWERED:
		return nil
	case agentv1.TurnEnd_TURN_END_STOPPED:
		return &Exit{Code: Cancelled}
	case agentv1.TurnEnd_TURN_END_LIMIT:
		return Errorf(Failed, "a limit was hit: `throwbar chat --conversation %s \"go on\"` goes on from there", c.at.GetHandle())
	default: // the error event before it said why
		return &Exit{Code: Failed}
	}
}
