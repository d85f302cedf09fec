package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"throwbar.dev/throwbar/clients/cli/talk"
	"throwbar.dev/throwbar/clients/cli/term"
	throwbar "throwbar.dev/throwbar/clients/go"
	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
)

// mostParents is how far up the agent is looked for that has started another one.
const mostParents = 32

// chat is a person, or a pipe, in front of a conversation. It belongs to one goroutine, but where noted.
type chat struct {
	program *program
	server  *throwbar.Client
	ask     chatAsk
	model   string // the server's default
	choice  *agentv1.ModelChoice
	page    talk.Page
	desk    *desk

	at   *agentv1.Conversation // nil until one is begun
	root string                // where the approvals of its agent come up
	turn string                // that runs; empty if none does
	line []*agentv1.QueuedMessage
	held bool // somebody stopped the turn: what waits is read with the next message

	once   bool   // one message is all there is to say
	person bool   // somebody sits in front of it
	waits  string // the message whose answer is waited for
	of     string // the turn that answers it
	last   error  // of the last turn of a pipe that had one

	own      map[string]int    // changes of messages that wait that were made and shown here, and whose events are to come
	children map[string]string // agents that were started here, in words, by their conversations
	offered  bool              // it was said how the turn can go on

	prompted bool
	behind   bool                           // what was asked before this program came has not been shown yet
	known    map[string]string              // approvals that the desk has, as it has them
	pending  map[string]*controlv1.Approval // of everybody, as the feed tells them

	news    chan news
	frames  chan *controlv1.WatchApprovalsResponse
	leave   context.CancelFunc // ends the follower; nil if there is none
	work    sync.WaitGroup
	pressed chan struct{} // an interrupt that is not dealt with; room for one
	twice   atomic.Bool   // an interrupt came since the person last did something; set by whoever takes interrupts
}

// run talks until there is nothing more to say.
func (c *chat) run(ctx context.Context, message string) error {
	ctx, interrupt := context.WithCancelCause(ctx)
	begun := false
	defer func() {
		if begun {
			c.farewell()
		}
	}()
	defer c.work.Wait()
	defer interrupt(nil)
	c.once = message != ""
	c.person = !c.once && c.program.person()
	c.page.Typed = c.person
	c.pending = map[string]*controlv1.Approval{}
	c.frames = make(chan *controlv1.WatchApprovalsResponse)
	defer c.takeOver(interrupt)()
	if c.once {
		if err := c.say(ctx, message, c.mode()); err != nil {
			return err
		}
	} else if err := c.begin(ctx); err != nil {
		return err
	}
	c.attend(ctx)
	begun = true
	for {
		over, err := c.step(ctx)
		if over || err != nil {
			c.page.Line()
			return err
		}
	}
}

// begin shows what is talked to.
func (c *chat) begin(ctx context.Context) error {
	if c.at == nil {
		if c.person {
			c.program.err.Line(term.Dim, "A new conversation with %s. /help says what can be typed; Ctrl-C stops the agent, twice leaves.", c.model)
		}
		return nil
	}
	c.head()
	return c.enter(ctx, c.at, c.at.GetSequence())
}

// head says which conversation it is.
func (c *chat) head() {
	if !c.person {
		return
	}
	words := []string{c.at.GetHandle(), c.at.GetTitle()}
	if c.at.GetAgent() != "" {
		words = append(words, "agent "+c.at.GetAgent())
	}
	if models := c.at.GetSettings().GetModel().GetModels(); len(models) > 0 {
		words = append(words, "with "+strings.Join(models, ", "))
	}
	if c.at.GetRunning() {
		words = append(words, "a turn runs")
	}
	if n := c.at.GetQueued(); n > 0 {
		words = append(words, fmt.Sprintf("%d %s", n, waiting(uint64(n))))
	}
	c.program.err.Line(term.Bold, "%s", strings.Join(talk.Spoken(words...), "  "))
	c.program.err.Line(term.Dim, "/history shows what was said, /help what can be typed; Ctrl-C stops the agent, twice leaves.")
}

func waiting(n uint64) string {
	if n == 1 {
		return "message waits"
	}
	return "messages wait"
}

// enter follows a conversation from a place on.
func (c *chat) enter(ctx context.Context, at *agentv1.Conversation, after uint64) error {
	root, err := c.rootOf(ctx, at)
	if err != nil {
		return err // it stays where it is: what is said next goes there
	}
	c.exit()
	c.at, c.root, c.behind = at, root, at.GetRunning()
	c.page.Titled(at.GetTitle())
	if at.GetRunning() && after >= at.GetSequence() {
		c.turn = "running" // its name comes with its next event
	}
	ctx, c.leave = context.WithCancel(ctx)
	f := &follower{
		server: c.server, id: at.GetConversationId(), after: after, patient: c.person,
		tell: func(n news) bool {
			n.of = at.GetConversationId()
			select {
			case c.news <- n:
				return true
			case <-ctx.Done():
				return false
			}
		},
	}
	c.goes(func() { f.run(ctx) })
	return nil
}

// exit stops following the conversation.
func (c *chat) exit() {
	if c.leave != nil {
		c.leave()
	}
	c.desk.clear()
	clear(c.known)
	clear(c.own)
	clear(c.children)
	c.leave, c.at, c.turn, c.line, c.held = nil, nil, "", nil, false
}

// rootOf is the conversation at the top, where approvals come up.
func (c *chat) rootOf(ctx context.Context, at *agentv1.Conversation) (string, error) {
	for range mostParents {
		if at.GetParentId() == "" {
			break
		}
		answer, err := c.server.Agent.GetConversation(ctx, &agentv1.GetConversationRequest{ConversationId: at.GetParentId()})
		if err != nil {
			return "", fmt.Errorf("get conversation %s: %w", at.GetParentId(), err)
		}
		at = answer.GetConversation()
	}
	return at.GetConversationId(), nil
}

// attend follows the approvals: whoever does so can be asked.
func (c *chat) attend(ctx context.Context) {
	feed := c.program.newFeed(c.server)
	c.goes(func() {
		_ = feed.follow(ctx, func(frame *controlv1.WatchApprovalsResponse) error { // a token that may not is told by what it asks
			select {
			case c.frames <- frame:
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		})
	})
}

// step waits for the next thing and does it. It says whether that was the last one.
func (c *chat) step(ctx context.Context) (over bool, err error) {
	c.prompt()
	var lines <-chan line
	entered := c.program.editor.lines()
	if entered == nil && (c.person || c.desk.wants() || !c.once && c.waits == "") {
		lines = c.program.input(ctx)
	}
	select {
	case <-ctx.Done():
		c.aside()
		return true, context.Cause(ctx)
	case <-c.pressed:
		return c.interrupted(ctx)
	case n := <-c.news:
		if n.of != c.at.GetConversationId() {
			return false, nil
		}
		return c.hear(ctx, n)
	case frame := <-c.frames:
		c.frame(ctx, frame)
		return false, nil
	case typed, ok := <-lines:
		c.prompted = false
		if !ok || typed.err != nil {
			return c.inputEnds(typed.err)
		}
		return c.typed(ctx, typed.text)
	case line, ok := <-entered:
		if !ok {
			return c.inputEnds(nil)
		}
		return c.entered(ctx, line)
	}
}

// prompt shows that something can be typed, where nothing else is on the line.
func (c *chat) prompt() {
	if e := c.program.editor.Load(); e != nil {
		c.before(e)
		return
	}
	waits := !c.held && len(c.line) > 0 && c.line[0].GetSender().GetSpeaker() != agentv1.Speaker_SPEAKER_AGENT // it begins the next turn
	if !c.person || c.prompted || c.turn != "" || waits || c.desk.wants() {
		return
	}
	c.page.Line()
	c.program.err.Print(c.program.err.Paint(term.Bold, term.Visible(c.at.GetHandle())+"> "))
	c.prompted = true
}

// aside leaves the line that a prompt has begun.
func (c *chat) aside() {
	if c.prompted {
		c.program.err.Print("\n")
	}
	c.prompted = false
}

// interrupted stops the turn, or warns.
func (c *chat) interrupted(ctx context.Context) (bool, error) {
	c.aside()
	if c.turn == "" && c.waits == "" || c.at == nil {
		if c.program.editor.clear() {
			c.twice.Store(false)
			return false, nil
		}
		c.program.err.Line(term.Dim, "Press Ctrl-C again to leave.")
		return false, nil
	}
	stopped, err := c.stop(ctx)
	switch {
	case err != nil && c.person:
		c.report(err)
		return false, nil
	case err != nil:
		return true, err
	case !stopped && c.once: // it waits in the line, or is over already
		c.program.err.Line(term.Yellow, "No turn ran. The message stays: `throwbar conversations queue %s` shows what waits.", c.at.GetHandle())
		return true, &Exit{Code: Cancelled}
	}
	return false, nil
}

// inputEnds leaves, or where somebody decided goes on without.
func (c *chat) inputEnds(err error) (bool, error) {
	if c.once {
		c.desk.gone()
		return false, nil
	}
	if c.person && c.program.editor.Load() == nil {
		c.program.err.Print("\n")
	}
	return true, errors.Join(c.last, err)
}

// typed takes a line: a decision, something to do, or a message.
func (c *chat) typed(ctx context.Context, text string) (bool, error) {
	word := strings.TrimSpace(text)
	if c.desk.wants() && (!strings.HasPrefix(word, "/") || c.desk.why) {
		c.twice.Store(false)
		return false, c.told(c.desk.line(ctx, text))
	}
	return c.typedToAgent(ctx, text)
}

// typedToAgent takes a line that decides nothing: something to do, or a message.
func (c *chat) typedToAgent(ctx context.Context, text string) (bool, error) {
	c.twice.Store(false)
	word := strings.TrimSpace(text)
	switch {
	case word == "" || c.once:
		return false, nil
	case c.person && !utf8.ValidString(text):
		return false, c.told(errEncoding())
	case c.person && strings.HasPrefix(word, "/") && !strings.HasPrefix(word, "//"):
		err := c.command(ctx, word)
		if errors.Is(err, errQuit) {
			return true, nil
		}
		return false, c.told(err)
	case c.person && strings.HasPrefix(word, "//"):
		text = word[1:]
	}
	err := c.say(ctx, text, c.mode())
	if err != nil && !c.person && ctx.Err() == nil {
		c.last = err // the next line may do better
		return false, nil
	}
	return false, c.told(err)
}

// locked says whether an error is that the server does not accept the token: nothing that is typed can help.
func (c *chat) locked(err error) bool {
	code, _ := c.program.explain(err)
	return code == Unauthenticated
}

// told shows an error to a person, for whom the conversation goes on, unless nothing would work any more.
func (c *chat) told(err error) error {
	if err == nil || !c.person || errors.Is(err, errInterrupted) || c.locked(err) {
		return err
	}
	c.report(err)
	return nil
}

// say sends a message, and says where it waits.
func (c *chat) say(ctx context.Context, message string, mode agentv1.SendMode) error {
	if !utf8.ValidString(message) {
		return errEncoding()
	}
	if c.at == nil && c.ask.agent != "" {
		if err := c.named(ctx); err != nil {
			return err
		}
	}
	answer, err := c.send(ctx, message, mode)
	if err != nil {
		return err
	}
	if c.leave == nil { // what has come of the answer by now is the first piece that a follower is told
		at := &agentv1.Conversation{ConversationId: answer.GetConversationId()}
		if c.at != nil {
			at = c.at
		}
		if err := c.enter(ctx, at, answer.GetSequence()); err != nil {
			return err
		}
	}
	c.at.Handle = answer.GetHandle()
	if !c.person {
		c.waits, c.of = answer.GetMessageId(), answer.GetTurnId()
	}
	switch answer.GetDelivery() {
	case agentv1.Delivery_DELIVERY_STARTED:
		c.turn = answer.GetTurnId()
	case agentv1.Delivery_DELIVERY_QUEUED:
		c.note("It waits for the end of the turn. /queue shows what waits, /steer TEXT enters at the next step.")
	case agentv1.Delivery_DELIVERY_STEERED:
		c.note("It enters the turn at its next step.")
	default:
	}
	return nil
}

// note says something to a person on the way.
func (c *chat) note(text string) {
	if c.person {
		c.page.Line()
		c.program.err.Line(term.Dim, "%s", text)
	}
}
