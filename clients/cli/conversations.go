package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"throwbar.dev/throwbar/clients/cli/talk"
	"throwbar.dev/throwbar/clients/cli/term"
	throwbar "throwbar.dev/throwbar/clients/go"
	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
)

const (
	leastHandle      = 4
	namedAtMost      = 8 // conversations that an error names
	conversationArg  = "a conversation, by its handle or id"
	conversationRows = 50
)

// conversationsVerb shows and changes conversations with the agent.
func (p *program) conversationsVerb() *cobra.Command {
	var ask listAsk
	c := &cobra.Command{
		Use:     "conversations",
		Aliases: []string{"conversation"},
		Short:   "See the conversations with the agent, and change them",
		Long: "See the conversations with the agent, and change them.\n\nA conversation is named by its handle, the shortest beginning of " +
			"its id that fits no other open one, or by any longer beginning. An archived one has no handle: it is named by its whole id.",
		GroupID:     groupAgent,
		Annotations: map[string]string{"alone": "yes"},
		Args:        p.takes(),
		RunE:        func(c *cobra.Command, _ []string) error { return p.listConversations(c.Context(), ask) },
	}
	ask.bind(c)
	c.AddCommand(
		p.conversationsListVerb(), p.conversationsShowVerb(), p.conversationsCreateVerb(), p.conversationsRenameVerb(),
		p.conversationsArchiveVerb(), p.conversationsReopenVerb(), p.conversationsSendVerb(), p.conversationsWatchVerb(),
		p.conversationsStopVerb(), p.conversationsQueueVerb(), p.conversationsHistoryVerb(), p.conversationsOutputVerb(),
		p.conversationsSettingsVerb(),
	)
	return c
}

// listAsk is which conversations to list.
type listAsk struct {
	archived, all bool
	limit         uint32
}

func (ask *listAsk) bind(c *cobra.Command) {
	c.Flags().BoolVar(&ask.archived, "archived", false, "the archived ones in place of the open ones")
	c.Flags().BoolVar(&ask.all, "all", false, "the archived ones too")
	c.Flags().Uint32Var(&ask.limit, "limit", conversationRows, "most `rows`; 0 for all")
}

func (p *program) conversationsListVerb() *cobra.Command {
	var ask listAsk
	c := &cobra.Command{
		Use:   "list",
		Short: "List the conversations, the last used first; what an agent started is under who started it",
		Args:  p.takes(),
		RunE:  func(c *cobra.Command, _ []string) error { return p.listConversations(c.Context(), ask) },
	}
	ask.bind(c)
	return c
}

// conversationRowsOf lists conversations, the last used first, at most so many; all if limit is zero.
func (p *program) conversationRowsOf(
	ctx context.Context, s *throwbar.Client, filter agentv1.ConversationFilter, limit uint32,
) (*agentv1.ListConversationsResponse, error) {
	all := &agentv1.ListConversationsResponse{}
	err := pages(func(token string) (string, error) {
		size := uint32(pageSize)
		if left := limit - uint32(len(all.GetConversations())); limit > 0 && left < size {
			size = left
		}
		page, err := s.Agent.ListConversations(ctx, &agentv1.ListConversationsRequest{PageSize: &size, PageToken: set(token), Filter: filter})
		all.Conversations = append(all.Conversations, page.GetConversations()...)
		all.NextPageToken = page.GetNextPageToken()
		if limit > 0 && len(all.GetConversations()) >= int(limit) {
			return "", err
		}
		return page.GetNextPageToken(), err
	})
	if err != nil {
		return nil, fmt.Errorf("list conversations: %w", err)
	}
	return all, nil
}

func (p *program) listConversations(ctx context.Context, ask listAsk) error {
	s, err := p.api()
	if err != nil {
		return err
	}
	filter := agentv1.ConversationFilter_CONVERSATION_FILTER_OPEN
	switch {
	case ask.all && ask.archived:
		return Errorf(Invalid, "only one of --all and --archived can be given")
	case ask.all:
		filter = agentv1.ConversationFilter_CONVERSATION_FILTER_UNSPECIFIED
	case ask.archived:
		filter = agentv1.ConversationFilter_CONVERSATION_FILTER_ARCHIVED
	}
	all, err := p.conversationRowsOf(ctx, s, filter, ask.limit)
	if err != nil {
		return err
	}
	if p.flags.json() {
		return p.printJSON(all, true)
	}
	switch {
	case len(all.GetConversations()) == 0 && ask.archived:
		p.out.Line(term.Plain, "No conversation is archived.")
	case len(all.GetConversations()) == 0:
		p.out.Line(term.Plain, "No conversations yet. `throwbar chat` begins one.")
	}
	p.conversationsTable(all.GetConversations())
	if all.GetNextPageToken() != "" {
		p.out.Line(term.Dim, "There are older ones; --limit 0 shows all.")
	}
	return nil
}

func (p *program) conversationsTable(list []*agentv1.Conversation) {
	t := term.Table{
		Header: []string{"handle", "title", "agent", "does", "waiting", "last used", "id"}, Shrink: []int{1}, DropEmpty: true,
	}
	for _, row := range inFamilies(list) {
		c := row.Conversation
		is, queued, id := conversationState(c), "", ""
		if c.GetQueued() > 0 {
			queued = fmt.Sprint(c.GetQueued())
		}
		if c.GetArchived() { // it has no handle
			id = c.GetConversationId()
		}
		t.Rows = append(t.Rows, []term.Cell{
			{Text: c.GetHandle(), Style: term.Bold},
			term.Text(strings.Repeat("  ", row.depth) + c.GetTitle()),
			term.Text(c.GetAgent()), is, term.Text(queued),
			{Text: term.When(c.GetUpdatedAt().AsTime(), p.Now()), Style: term.Dim},
			term.Text(id),
		})
	}
	p.out.Table(t)
}

// conversationState is what a conversation does, in words; nothing where it does nothing.
func conversationState(c *agentv1.Conversation) term.Cell {
	switch status := c.GetStatus(); {
	case c.GetArchived():
		return term.Cell{Text: "archived", Style: term.Dim}
	case status == agentv1.ConversationStatus_CONVERSATION_STATUS_WAITING:
		return term.Cell{Text: talk.StatusText(status), Style: term.Yellow}
	case status == agentv1.ConversationStatus_CONVERSATION_STATUS_FAILED:
		return term.Cell{Text: talk.StatusText(status), Style: term.Red}
	case c.GetRunning() || status == agentv1.ConversationStatus_CONVERSATION_STATUS_RUNNING:
		return term.Cell{Text: "running", Style: term.Green}
	default:
		return term.Cell{}
	}
}

// member is a conversation with how deep it is under the one that a person began.
type member struct {
	*agentv1.Conversation

	depth int
}

// inFamilies puts each conversation under the one whose agent started it, if that is in the list.
func inFamilies(list []*agentv1.Conversation) []member {
	under := map[string][]*agentv1.Conversation{}
	here := map[string]bool{}
	for _, c := range list {
		here[c.GetConversationId()] = true
	}
	for _, c := range list {
		parent := c.GetParentId()
		if !here[parent] {
			parent = ""
		}
		under[parent] = append(under[parent], c)
	}
	var rows []member
	var add func(parent string, depth int)
	add = func(parent string, depth int) {
		for _, c := range under[parent] {
			rows = append(rows, member{c, depth})
			if depth < mostParents && c.GetConversationId() != "" {
				add(c.GetConversationId(), depth+1)
			}
		}
	}
	add("", 0)
	return rows
}

// conversation is the one that a word means: an open one by its handle or any beginning of its id, an archived one by its
// whole id. An error lists what the word may have meant.
func (p *program) conversation(ctx context.Context, s *throwbar.Client, ref string) (*agentv1.Conversation, error) {
	found, err := s.Agent.ResolveConversation(ctx, &agentv1.ResolveConversationRequest{Reference: ref})
	if err != nil {
		return nil, fmt.Errorf("find the conversation: %w", err)
	}
	several := found.GetConversations()
	switch {
	case found.GetResolved() && len(several) == 1:
		answer, err := s.Agent.GetConversation(ctx, &agentv1.GetConversationRequest{ConversationId: several[0].GetConversationId()})
		if err != nil {
			return nil, fmt.Errorf("get conversation %s: %w", term.Visible(ref), err)
		}
		return answer.GetConversation(), nil
	case len(several) > 0:
		return nil, Errorf(Invalid, "%q fits %d conversations: %s. Give more of it", ref, len(several), namesOf(several))
	case len(ref) >= wholeLength:
		answer, err := s.Agent.GetConversation(ctx, &agentv1.GetConversationRequest{ConversationId: ref})
		if err != nil {
			return nil, fmt.Errorf("get conversation %s: %w", term.Visible(ref), err)
		}
		return answer.GetConversation(), nil
	}
	open, err := p.conversationRowsOf(ctx, s, agentv1.ConversationFilter_CONVERSATION_FILTER_OPEN, namedAtMost+1)
	switch {
	case err != nil || len(open.GetConversations()) == 0:
		return nil, Errorf(Failed, "there is no open conversation %q: none is open", ref)
	default:
		return nil, Errorf(Failed, "there is no open conversation %q; there are %s", ref, namesOf(open.GetConversations()))
	}
}

// namesOf names conversations by handle and title.
func namesOf(list []*agentv1.Conversation) string {
	var names []string
	for i, c := range list {
		if i == namedAtMost {
			names = append(names, "…")
			break
		}
		name := c.GetHandle()
		if c.GetTitle() != "" {
			name += " (" + talk.OneLine(c.GetTitle()) + ")"
		}
		names = append(names, name)
	}
	return strings.Join(names, ", ")
}

// named is the API and the conversation that a word means.
func (p *program) named(ctx context.Context, ref string) (*throwbar.Client, *agentv1.Conversation, error) {
	s, err := p.api()
	if err != nil {
		return nil, nil, err
	}
	c, err := p.conversation(ctx, s, ref)
	return s, c, err
}

// completeConversations offers the handles of open conversations, or the ids of archived ones.
func (p *program) completeConversations(archived bool) cobra.CompletionFunc {
	return func(c *cobra.Command, words []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(c.Context(), completeWait)
		defer cancel()
		s, err := p.api()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		filter := agentv1.ConversationFilter_CONVERSATION_FILTER_OPEN
		if archived {
			filter = agentv1.ConversationFilter_CONVERSATION_FILTER_ARCHIVED
		}
		list, err := p.conversationRowsOf(ctx, s, filter, historyRows)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var names []cobra.Completion
		for _, row := range list.GetConversations() {
			name := row.GetHandle()
			if archived {
				name = row.GetConversationId()
			}
			if name != "" && !slices.Contains(words, name) {
				names = append(names, cobra.CompletionWithDesc(term.Visible(name), talk.OneLine(row.GetTitle())))
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}
