package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"throwbar.dev/throwbar/clients/cli/talk"
	"throwbar.dev/throwbar/clients/cli/term"
	throwbar "throwbar.dev/throwbar/clients/go"
	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
)

// readBack is how many events are read at first to find the last messages of a conversation.
const readBack = 200

func (p *program) conversationsQueueVerb() *cobra.Command {
	c := &cobra.Command{
		Use:   "queue CONVERSATION [edit N TEXT... | rm N]",
		Short: "List the messages that wait for the end of the turn, change one or take one back",
		Long: "List the messages that wait for the end of the turn that runs, in the order in which they will be read. A message is named " +
			"by its number in that list, or its id.",
		Example: "  throwbar conversations queue 3f2a\n  throwbar conversations queue 3f2a edit 1 \"only the ones on the laptop\"\n" +
			"  throwbar conversations queue 3f2a rm 2",
		Args: func(c *cobra.Command, words []string) error {
			switch {
			case len(words) == 0:
				return p.takes(conversationArg)(c, words)
			case len(words) == 1, len(words) == 3 && words[1] == "rm", len(words) >= 4 && words[1] == "edit":
				return nil
			}
			return Errorf(Invalid, "%s takes a conversation, and edit N TEXT or rm N: `%s --help` shows how", c.CommandPath(), c.CommandPath())
		},
		ValidArgsFunction: p.completeConversations(false),
		RunE: func(c *cobra.Command, words []string) error {
			s, at, err := p.named(c.Context(), words[0])
			if err != nil {
				return err
			}
			line, err := p.queue(c.Context(), s, at.GetConversationId())
			if err != nil {
				return err
			}
			switch {
			case len(words) == 3:
				return p.removeQueued(c.Context(), s, at.GetConversationId(), line, words[2])
			case len(words) >= 4:
				return p.editQueued(c.Context(), s, at.GetConversationId(), line, words[2], strings.Join(words[3:], " "))
			case p.flags.json():
				return p.printJSON(&agentv1.ListQueueResponse{Messages: line}, true)
			}
			p.queueTable(p.out, line)
			return nil
		},
	}
	return c
}

// queue is what waits in a conversation, the next one first.
func (p *program) queue(ctx context.Context, s *throwbar.Client, id string) ([]*agentv1.QueuedMessage, error) {
	var line []*agentv1.QueuedMessage
	err := pages(func(token string) (string, error) {
		size := uint32(pageSize)
		page, err := s.Agent.ListQueue(ctx, &agentv1.ListQueueRequest{ConversationId: id, PageSize: &size, PageToken: set(token)})
		line = append(line, page.GetMessages()...)
		return page.GetNextPageToken(), err
	})
	if err != nil {
		return nil, fmt.Errorf("list what waits: %w", err)
	}
	return line, nil
}

func (p *program) queueTable(to *term.Screen, line []*agentv1.QueuedMessage) {
	if len(line) == 0 {
		to.Line(term.Plain, "Nothing waits.")
		return
	}
	t := term.Table{Header: []string{"n", "from", "message", "came"}, Shrink: []int{1, 2}}
	for i, q := range line {
		from := "a person"
		if q.GetSender().GetSpeaker() == agentv1.Speaker_SPEAKER_AGENT {
			from = talk.Who(q.GetSender())
		}
		t.Rows = append(t.Rows, []term.Cell{
			{Text: strconv.Itoa(i + 1), Style: term.Bold},
			term.Text(from), term.Text(talk.OneLine(q.GetText())),
			{Text: term.When(q.GetCreatedAt().AsTime(), p.Now()), Style: term.Dim},
		})
	}
	to.Table(t)
}

// waits is the message that a number or an id means.
func waits(line []*agentv1.QueuedMessage, which string) (string, error) {
	if n, err := strconv.Atoi(which); err == nil && n >= 1 && n <= len(line) {
		return line[n-1].GetMessageId(), nil
	}
	if slices.ContainsFunc(line, func(q *agentv1.QueuedMessage) bool { return q.GetMessageId() == which }) {
		return which, nil
	}
	switch len(line) {
	case 0:
		return "", Errorf(Failed, "nothing waits any more: it may have been read meanwhile")
	default:
		return "", Errorf(Invalid, "%q is none of the %d %s that wait", which, len(line), plural("message", uint64(len(line))))
	}
}

func (p *program) editQueued(
	ctx context.Context, s *throwbar.Client, id string, line []*agentv1.QueuedMessage, which, text string,
) error {
	message, err := waits(line, which)
	if err != nil {
		return err
	}
	if strings.TrimSpace(text) == "" {
		return Errorf(Invalid, "edit needs what the message says now")
	}
	if !utf8.ValidString(text) {
		return Errorf(Invalid, "edit needs what the message says now in UTF-8")
	}
	answer, err := s.Agent.EditQueued(ctx, &agentv1.EditQueuedRequest{ConversationId: id, MessageId: message, Message: text})
	if err != nil {
		return fmt.Errorf("change the message: %w", err)
	}
	if p.flags.json() {
		return p.printJSON(answer, true)
	}
	p.err.Line(term.Dim, "Changed: %s", talk.OneLine(answer.GetMessage().GetText()))
	return nil
}

func (p *program) removeQueued(ctx context.Context, s *throwbar.Client, id string, line []*agentv1.QueuedMessage, which string) error {
	message, err := waits(line, which)
	if err != nil {
		return err
	}
	answer, err := s.Agent.RemoveQueued(ctx, &agentv1.RemoveQueuedRequest{ConversationId: id, MessageId: message})
	if err != nil {
		return fmt.Errorf("take the message back: %w", err)
	}
	if p.flags.json() {
		return p.printJSON(answer, true)
	}
	p.err.Line(term.Dim, "Taken back.")
	return nil
}

func (p *program) conversationsWatchVerb() *cobra.Command {
	var after uint64
	var idle, reasoning, verbose bool
	c := &cobra.Command{
		Use:   "watch CONVERSATION",
		Short: "Follow a conversation until interrupted, without saying anything",
		Long: "Follow a conversation until interrupted. What is stored comes once and in order, also over a lost connection and a restart " +
			"of the server; -o json writes one event a line.",
		Args:              p.takes(conversationArg),
		ValidArgsFunction: p.completeConversations(false),
		RunE: func(c *cobra.Command, words []string) error {
			s, at, err := p.named(c.Context(), words[0])
			if err != nil {
				return err
			}
			if !c.Flag("after").Changed {
				after = at.GetSequence()
			}
			page := &talk.Page{Out: p.out, Err: p.err, Reasoning: reasoning, Verbose: verbose}
			page.Titled(at.GetTitle())
			return p.watchConversation(c.Context(), &follower{server: s, id: at.GetConversationId(), after: after, patient: true}, page, idle)
		},
	}
	c.Flags().Uint64Var(&after, "after", 0, "from the event after this `number` on, 0 for all; from now on if left out")
	c.Flags().BoolVar(&idle, "until-idle", false, "end when no turn runs, instead of waiting for more")
	c.Flags().BoolVar(&reasoning, "reasoning", false, "show the model's reasoning too")
	c.Flags().BoolVarP(&verbose, "verbose", "v", false, "show what tools are asked and what they answer in full")
	return c
}

// watchConversation shows what a follower tells.
func (p *program) watchConversation(ctx context.Context, f *follower, page *talk.Page, untilIdle bool) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer page.Line()
	f.tell = func(n news) bool {
		switch {
		case n.end != nil:
			cancel(n.end)
		case n.event != nil && p.flags.json():
			if err := p.printJSON(n.event, false); err != nil {
				cancel(err)
			}
		case n.event != nil:
			page.Show(n.event)
		case n.lost != nil:
			p.err.Line(term.Yellow, "The connection is lost: trying again. Nothing will be missed.")
		case n.back:
			page.Joined()
			p.err.Line(term.Dim, "Connected again: nothing was missed.")
		case n.gap:
			page.Joined()
		case n.reset:
			p.err.Line(term.Yellow, "The server's conversation ends before that place, as after a restored backup. It goes on from its end.")
		}
		return ctx.Err() == nil
	}
	f.untilIdle = untilIdle
	f.run(ctx)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

func (p *program) conversationsHistoryVerb() *cobra.Command {
	var limit int
	var verbose, reasoning bool
	c := &cobra.Command{
		Use:               "history CONVERSATION",
		Short:             "Show what was said and done in a conversation",
		Args:              p.takes(conversationArg),
		ValidArgsFunction: p.completeConversations(false),
		RunE: func(c *cobra.Command, words []string) error {
			s, at, err := p.named(c.Context(), words[0])
			if err != nil {
				return err
			}
			return p.transcript(c.Context(), s, at.GetConversationId(), limit, &talk.Page{
				Out: p.out, Err: p.out, Verbose: verbose, Reasoning: reasoning, Usage: verbose,
			})
		},
	}
	c.Flags().IntVar(&limit, "limit", defaultHistory, "the last messages, this `number` of them; 0 for all")
	c.Flags().BoolVarP(&verbose, "verbose", "v", false, "show what tools are asked and what they answer in full")
	return c
}

// transcript shows the last messages of a conversation, with all that happened from the first of them on.
func (p *program) transcript(ctx context.Context, s *throwbar.Client, id string, messages int, page *talk.Page) error {
	at, err := s.Agent.GetConversation(ctx, &agentv1.GetConversationRequest{ConversationId: id})
	if err != nil {
		return fmt.Errorf("get the conversation: %w", err)
	}
	end := at.GetConversation().GetSequence()
	var events []*agentv1.Event
	for back := uint64(readBack); ; back *= 8 {
		after := end - min(back, end)
		if messages == 0 {
			after = 0
		}
		if events, err = p.stored(ctx, s, id, after, end); err != nil {
			return err
		}
		first, enough := firstOf(events, messages)
		if enough || after == 0 {
			events = events[first:]
			break
		}
	}
	if _, said := firstOf(events, 1); !said && !p.flags.json() {
		page.Out.Line(term.Dim, "Nothing was said in it yet.")
	}
	for _, e := range events {
		if p.flags.json() {
			if err := p.printJSON(e, false); err != nil {
				return err
			}
			continue
		}
		page.Show(e)
	}
	page.Line()
	return nil
}

// firstOf is where the last so many messages to the agent begin, and whether there are so many.
func firstOf(events []*agentv1.Event, messages int) (int, bool) {
	found := 0
	for i, e := range slices.Backward(events) {
		if e.GetMessage() != nil {
			found++
		}
		if messages > 0 && found == messages {
			return i, true
		}
	}
	return 0, false
}

// stored reads the events of a conversation after one number, up to another.
func (p *program) stored(ctx context.Context, s *throwbar.Client, id string, after, end uint64) ([]*agentv1.Event, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	fail := func(err error) ([]*agentv1.Event, error) { return nil, fmt.Errorf("read the conversation: %w", err) }
	stream, err := s.Agent.WatchConversation(ctx, &agentv1.WatchConversationRequest{ConversationId: id, After: after})
	if err != nil {
		return fail(err)
	}
	defer func() { _ = stream.Close() }() // the end of the stream is told by Receive
	var events []*agentv1.Event
	for {
		frame, err := stream.Receive()
		switch {
		case errors.Is(err, io.EOF):
			return events, nil
		case err != nil:
			return fail(err)
		case frame.GetCaughtUp() != nil || frame.GetUnknownPlace() != nil:
			return events, nil
		}
		n := frame.GetEvent().GetSequence()
		if n > 0 && n <= end {
			events = append(events, frame.GetEvent())
		}
	}
}

func (p *program) conversationsOutputVerb() *cobra.Command {
	return &cobra.Command{
		Use:   "output CONVERSATION CALL-ID",
		Short: "Print all that a tool answered, also where the model was told only a part",
		Long: "Print all that a tool answered, also where the model was told only a part. The ids of calls are in " +
			"`throwbar conversations history -o json`.",
		Args:              p.takes(conversationArg, "the id of a call"),
		ValidArgsFunction: p.completeConversations(false),
		RunE: func(c *cobra.Command, words []string) error {
			s, at, err := p.named(c.Context(), words[0])
			if err != nil {
				return err
			}
			whole, err := p.toolOutput(c.Context(), s, at.GetConversationId(), words[1])
			if err != nil {
				return err
			}
			if p.out.Terminal {
				whole = term.VisibleText(whole)
			}
			p.out.Print(strings.TrimRight(whole, "\n") + "\n")
			return nil
		},
	}
}

// toolOutput is the whole text of a tool's answer.
func (p *program) toolOutput(ctx context.Context, s *throwbar.Client, id, call string) (string, error) {
	var text strings.Builder
	for offset := uint64(0); ; {
		answer, err := s.Agent.GetToolOutput(ctx, &agentv1.GetToolOutputRequest{ConversationId: id, CallId: call, Offset: offset})
		if err != nil {
			return "", fmt.Errorf("get the answer of the call: %w", err)
		}
		text.WriteString(answer.GetText())
		if answer.GetNextOffset() <= offset {
			return text.String(), nil
		}
		offset = answer.GetNextOffset()
	}
}
