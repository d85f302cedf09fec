package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"throwbar.dev/throwbar/clients/cli/term"
	throwbar "throwbar.dev/throwbar/clients/go"
	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
)

const (
	maxMessage   = 1 << 20
	handleLength = 8
)

var errStopped = errors.New("the turn was stopped")

// chatVerb talks to the agent.
func (p *program) chatVerb() *cobra.Command {
	var conversation string
	var reasoning, list bool
	c := &cobra.Command{
		Use:     "chat [MESSAGE]...",
		Short:   "Talk to the agent, which acts on your devices",
		GroupID: groupAgent,
		Long: "Talk to the agent, which acts on your devices.\n\nWith a message it answers that one and ends. Without, it reads " +
			"a message from each line of the standard input. An interrupt stops the turn, the next one leaves.",
		Example: "  throwbar chat \"close my YouTube tabs\"\n  throwbar chat --conversation 3f2a \"and the ones on my laptop\"",
		Args:    cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, words []string) error {
			if list {
				return p.listConversations(c.Context())
			}
			return p.runChat(c.Context(), conversation, reasoning, strings.Join(words, " "))
		},
	}
	c.Flags().StringVar(&conversation, "conversation", "", "go on with this conversation, by handle or `id`")
	c.Flags().BoolVar(&reasoning, "reasoning", false, "show the model's reasoning too")
	c.Flags().BoolVar(&list, "list", false, "list the conversations instead")
	return c
}

func (p *program) runChat(ctx context.Context, conversation string, reasoning bool, message string) error {
	if conversation != "" && len(conversation) < 4 {
		return Errorf(Invalid, "--conversation %q is too short: it takes at least four characters", conversation)
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
		return Errorf(Failed, "no model is set: %s", model.GetHint())
	}
	c := &chat{program: p, server: s, conversation: conversation, pressed: make(chan struct{}, 1)}
	c.page = page{program: p, reasoning: reasoning}
	c.desk = p.newDesk(s, true)
	restore := p.interrupts.set(c.interrupt)
	defer restore()
	if message != "" {
		err = c.say(ctx, message)
	} else {
		err = c.talk(ctx, model.GetModel())
	}
	c.farewell(conversation)
	return err
}

// chat is one conversation with the agent.
type chat struct {
	program      *program
	server       *throwbar.Client
	conversation string // empty until the server has named it
	page         page
	desk         *desk

	pressed chan struct{} // an interrupt that is not dealt with; room for one

	mu    sync.Mutex
	twice bool                    // guarded by mu; an interrupt came since the last message
	stop  context.CancelCauseFunc // guarded by mu; ends the turn that runs; nil if none does
}

// interrupt stops the turn, or warns that the next one leaves. It says false to leave.
func (c *chat) interrupt() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.twice {
		return false
	}
	c.twice = true
	if c.stop != nil {
		c.stop(errStopped)
		return true
	}
	offer(c.pressed, struct{}{})
	return true
}

// begin makes the context of a turn, which an interrupt ends.
func (c *chat) begin(ctx context.Context) (context.Context, func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.twice = false
	ctx, cancel := context.WithCancelCause(ctx)
	c.stop = cancel
	return ctx, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.stop = nil
		cancel(nil)
	}
}

// say sends a message and shows the turn until its end.
func (c *chat) say(ctx context.Context, message string) error {
	turn, end := c.begin(ctx)
	defer end()
	ask := &agentv1.ChatRequest{Message: message, ConversationId: set(c.conversation)}
	stream, err := c.server.Agent.Chat(turn, ask)
	if err != nil {
		return fmt.Errorf("chat: %w", err)
	}
	defer func() { _ = stream.Close() }() // the end of the stream is told by Receive
	events := make(chan heard)
	var listener sync.WaitGroup
	listener.Go(func() { listen(turn, stream.Receive, events) })
	c.desk.clear()
	defer listener.Wait()
	defer end() // what listens ends with the turn
	for {
		var lines <-chan line
		if c.desk.wants() {
			lines = c.program.input(ctx)
		}
		select {
		case typed, ok := <-lines:
			if !ok || typed.err != nil {
				c.desk.offers = false
				c.desk.clear()
				continue
			}
			if err := c.desk.line(turn, typed.text); err != nil && turn.Err() == nil {
				return err
			}
		case <-turn.Done():
			_, err := c.hear(turn, heard{err: context.Cause(turn)})
			return err
		case next := <-events:
			if over, err := c.hear(turn, next); over || err != nil {
				return err
			}
		}
	}
}

// heard is one answer of a stream, or its end.
type heard struct {
	answer *agentv1.ChatResponse
	err    error
}

// listen hands over what a stream brings, its end too.
func listen(ctx context.Context, receive func() (*agentv1.ChatResponse, error), events chan<- heard) {
	for {
		answer, err := receive()
		select {
		case events <- heard{answer, err}:
		case <-ctx.Done():
			return
		}
		if err != nil {
			return
		}
	}
}

// hear shows one event of a turn. It says whether the turn is over.
func (c *chat) hear(turn context.Context, next heard) (over bool, err error) {
	switch {
	case errors.Is(context.Cause(turn), errStopped):
		c.desk.clear()
		c.page.line()
		c.program.err.Line(term.Yellow, "Stopped.")
		return true, &Exit{Code: Cancelled}
	case errors.Is(next.err, io.EOF):
		c.page.line()
		return true, Errorf(Failed, "the answer broke off: the server ended the stream")
	case next.err != nil:
		c.page.line()
		return true, fmt.Errorf("chat: %w", next.err)
	}
	e := next.answer.GetEvent()
	if id := e.GetConversationId(); id != "" {
		c.conversation = id
	}
	if id := e.GetApprovalRequested().GetApprovalId() + e.GetApprovalResolved().GetApprovalId(); id != "" && c.shown(turn, id) {
		return false, nil
	}
	return c.page.show(e)
}

// shown shows an approval of the turn as it is now, and offers to decide it. It says false if it cannot.
func (c *chat) shown(turn context.Context, id string) bool {
	if c.program.flags.json() {
		return false
	}
	if _, err := c.program.catalogue(turn); err != nil {
		return false
	}
	answer, err := c.server.Approvals.GetApproval(turn, &controlv1.GetApprovalRequest{ApprovalId: id})
	if err != nil {
		return false
	}
	c.page.line()
	c.desk.take(turn, answer.GetApproval(), false)
	return true
}

// talk sends each line of the standard input. It returns the error of the last turn that had one.
func (c *chat) talk(ctx context.Context, model string) error {
	person := c.program.Terminal(c.program.Stdin) && !c.program.flags.json()
	if person {
		c.program.err.Line(term.Dim, "Talking to %s. Ctrl-C stops it, twice leaves; so does Ctrl-D.", model)
	}
	lines := c.program.input(ctx)
	var last error
	for {
		if person {
			c.program.err.Print(c.program.err.Paint(term.Bold, "> "))
		}
		select {
		case <-ctx.Done():
			c.program.err.Print("\n")
			return context.Cause(ctx)
		case <-c.pressed:
			c.program.err.Print("\n")
			c.program.err.Line(term.Dim, "Press Ctrl-C again to leave.")
			continue
		case line, ok := <-lines:
			if !ok || line.err != nil {
				if person {
					c.program.err.Print("\n")
				}
				return errors.Join(last, line.err)
			}
			if strings.TrimSpace(line.text) == "" {
				continue
			}
			if err := c.say(ctx, line.text); err != nil {
				last = err
				if person {
					c.report(err)
					last = nil
				}
			}
		}
	}
}

// report shows the error of a turn and lets the conversation go on.
func (c *chat) report(err error) {
	if _, text := c.program.explain(err); text != "" {
		c.program.err.Line(term.Red, "throwbar: %s", text)
	}
}

// farewell says how to go on with a new conversation.
func (c *chat) farewell(before string) {
	if before != "" || c.conversation == "" || !c.program.err.Terminal || c.program.flags.json() {
		return
	}
	handle := c.conversation[:min(len(c.conversation), handleLength)]
	c.program.err.Line(term.Dim, "To go on: throwbar chat --conversation %s", handle)
}

// line is one line of input, or why there is none.
type line struct {
	text string
	err  error
}

// readLines reads lines until the end of the input. A read cannot be called back: where the run ends before the input,
// the goroutine ends with the next line or with the process.
func readLines(ctx context.Context, in io.Reader) <-chan line {
	lines := make(chan line)
	go func() {
		defer close(lines)
		scanner := bufio.NewScanner(in)
		scanner.Buffer(nil, maxMessage)
		for scanner.Scan() {
			select {
			case lines <- line{text: scanner.Text()}:
			case <-ctx.Done():
				return
			}
		}
		if err := scanner.Err(); err != nil {
			select {
			case lines <- line{err: fmt.Errorf("read a message: %w", err)}:
			case <-ctx.Done():
			}
		}
	}()
	return lines
}

func (p *program) listConversations(ctx context.Context) error {
	s, err := p.api()
	if err != nil {
		return err
	}
	all := &agentv1.ListConversationsResponse{}
	err = pages(func(token string) (string, error) {
		size := uint32(pageSize)
		page, err := s.Agent.ListConversations(ctx, &agentv1.ListConversationsRequest{PageSize: &size, PageToken: set(token)})
		all.Conversations = append(all.Conversations, page.GetConversations()...)
		return page.GetNextPageToken(), err
	})
	if err != nil {
		return fmt.Errorf("list conversations: %w", err)
	}
	if p.flags.json() {
		return p.printJSON(all, true)
	}
	t := term.Table{Header: []string{"handle", "title", "last used", "is"}, Shrink: []int{1}, DropEmpty: true}
	for _, c := range all.GetConversations() {
		is := term.Cell{}
		if c.GetRunning() {
			is = term.Cell{Text: "running", Style: term.Green}
		}
		t.Rows = append(t.Rows, []term.Cell{
			{Text: c.GetHandle(), Style: term.Bold},
			term.Text(c.GetTitle()),
			term.Text(term.When(c.GetUpdatedAt().AsTime(), p.Now())), is,
		})
	}
	p.out.Table(t)
	return nil
}
