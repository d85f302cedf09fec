package conversation

import (
	"context"
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"throwbar.dev/throwbar/agent/tool"
	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
	configv1 "throwbar.dev/throwbar/gen/go/throwbar/config/v1"
)

// Row is one conversation as it is shown.
type Row struct {
	Conversation
	Handle string // empty if it is not open
	Status agentv1.ConversationStatus
	Queued int // how many messages wait
}

// Message is a row as the contract has it.
func (r Row) Message() *agentv1.Conversation {
	return &agentv1.Conversation{
		ConversationId: r.ID, Handle: r.Handle, Title: r.Title, Archived: !r.Open, Status: r.Status, Queued: uint32(r.Queued),
		Running: r.Status == agentv1.ConversationStatus_CONVERSATION_STATUS_RUNNING ||
			r.Status == agentv1.ConversationStatus_CONVERSATION_STATUS_WAITING,
		CreatedAt: timestamppb.New(r.CreatedAt), UpdatedAt: timestamppb.New(r.UpdatedAt), Settings: r.Settings, ParentId: r.Parent,
		Agent: r.Agent, WakesLeft: uint32(r.Wakes), Sequence: r.Sequence,
	}
}

// row is a conversation as it is shown, without its handle.
func (b *Book) row(c Conversation) Row {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.busy[Ref{c.Workspace, c.ID}]
	if now.status == agentv1.ConversationStatus_CONVERSATION_STATUS_UNSPECIFIED {
		now.status = rested(c)
	}
	return Row{Conversation: c, Status: now.status, Queued: now.queued}
}

// shownAs is a conversation with its handle as it is at this moment.
func (b *Book) shownAs(ctx context.Context, c Conversation) (Row, error) {
	row := b.row(c)
	var err error
	row.Handle, err = b.handle(ctx, c)
	return row, err
}

// List lists conversations, the last used first.
func (b *Book) List(
	ctx context.Context, workspace string, filter agentv1.ConversationFilter, after *Place, limit int,
) ([]Row, error) {
	if err := b.await(ctx); err != nil {
		return nil, err
	}
	page, err := b.config.Lists.Conversations(ctx, workspace, filter, after, limit)
	if err != nil {
		return nil, fmt.Errorf("list conversations: %w", err)
	}
	return b.rows(ctx, workspace, page)
}

// Open lists the open conversations, the last used first.
func (b *Book) Open(ctx context.Context, workspace string) ([]Row, error) {
	all, err := b.config.Lists.Find(ctx, workspace, "")
	if err != nil {
		return nil, fmt.Errorf("find conversations: %w", err)
	}
	short := handlesOf(all)
	slices.SortStableFunc(all, func(a, b Conversation) int { return b.UpdatedAt.Compare(a.UpdatedAt) })
	rows := make([]Row, len(all))
	for i, c := range all {
		rows[i] = b.row(c)
		rows[i].Handle = short[c.ID]
	}
	return rows, nil
}

// rows are conversations as they are shown. Handles are by all open conversations, whichever are shown.
func (b *Book) rows(ctx context.Context, workspace string, page []Conversation) ([]Row, error) {
	open, err := b.config.Lists.Find(ctx, workspace, "")
	if err != nil {
		return nil, fmt.Errorf("find conversations: %w", err)
	}
	short := handlesOf(open)
	rows := make([]Row, len(page))
	for i, c := range page {
		rows[i] = b.row(c)
		rows[i].Handle = short[c.ID]
	}
	return rows, nil
}

func handlesOf(open []Conversation) map[string]string {
	ids := make([]string, len(open))
	for i, c := range open {
		ids[i] = c.ID
	}
	slices.Sort(ids)
	return handles(ids)
}

// Matches are the open conversations that a reference means, as they are shown: one if it is plain.
func (b *Book) Matches(ctx context.Context, workspace, ref string) ([]Row, bool, error) {
	found, err := b.Resolve(ctx, workspace, ref)
	if err != nil {
		return nil, false, err
	}
	if found.One != nil {
		row, err := b.shownAs(ctx, *found.One)
		return []Row{row}, true, err
	}
	if len(found.Several) == 0 {
		return nil, false, nil
	}
	rows, err := b.rows(ctx, workspace, found.Several)
	return rows, false, err
}

// Get is one conversation, also an archived one by its whole id.
func (b *Book) Get(ctx context.Context, workspace, ref string) (Row, error) {
	return b.change(ctx, workspace, ref, func(*thread) (*Change, error) { return nil, nil })
}

// Create begins a conversation in which nothing is said yet. With the name of an agent it begins as that.
func (b *Book) Create(
	ctx context.Context, workspace, name string, settings *agentv1.ConversationSettings, agent string,
) (Row, error) {
	if err := b.await(ctx); err != nil {
		return Row{}, err
	}
	c := Conversation{Title: line(name), Settings: settings, Agent: agent}
	if agent != "" {
		definition, err := b.definition(agent)
		if err != nil {
			return Row{}, err
		}
		c.Settings = b.settingsOf(definition, settings)
	}
	if err := b.checkSettings(c.Settings); err != nil {
		return Row{}, err
	}
	c, err := b.fresh(c, workspace)
	if err != nil {
		return Row{}, err
	}
	t := b.use(Ref{workspace, c.ID})
	defer b.leave(t)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.c, t.loaded = c, true
	if err := b.tellChanged(ctx, t, Change{Conversation: c, New: true, Durable: true}); err != nil {
		return Row{}, err
	}
	return b.shownAs(ctx, t.c)
}

// definition is the definition of an agent, or an error that lists those that there are.
func (b *Book) definition(name string) (*configv1.AgentDefinition, error) {
	var names []string
	for _, d := range b.config.Definitions {
		if d.GetName() == name {
			return d, nil
		}
		names = append(names, d.GetName())
	}
	if len(names) == 0 {
		return nil, errorf(Invalid, "there is no agent %q: none is defined", shown(name))
	}
	return nil, errorf(Invalid, "there is no agent %q: there are %s", shown(name), joined(names))
}

// settingsOf are the settings of an agent's definition, where a person who begins it does not say otherwise.
func (b *Book) settingsOf(d *configv1.AgentDefinition, more *agentv1.ConversationSettings) *agentv1.ConversationSettings {
	s := proto.CloneOf(more)
	if s == nil {
		s = &agentv1.ConversationSettings{}
	}
	if s.GetPrompt() == "" {
		s.Prompt = d.GetPrompt()
	}
	if s.GetModel() == nil {
		s.Model = &agentv1.ModelChoice{Models: d.GetModels(), Effort: d.GetEffort()}
	}
	if s.GetGrants() == nil {
		a := b.config.Listed(d.GetTools())
		s.Grants = &agentv1.Grants{Only: a.Only, Extra: a.Extra, Denied: a.Denied}
	}
	return s
}

// Patch is what to change of a conversation. What is nil stays as it is.
type Patch struct {
	Title            *string
	Prompt           *string
	Model            *agentv1.ModelChoice
	Grants           *agentv1.Grants
	WorkingDirectory *string
	Wakes            *agentv1.WakeBound
}

// Update changes the title or the settings of a conversation. It holds from the next step of a turn that runs.
func (b *Book) Update(ctx context.Context, workspace, ref string, patch Patch) (Row, error) {
	return b.change(ctx, workspace, ref, func(t *thread) (*Change, error) {
		change := &Change{Conversation: t.c}
		settings := proto.CloneOf(t.c.Settings)
		if patch.Title != nil {
			if change.Conversation.Title = line(*patch.Title); change.Conversation.Title == "" {
				return nil, errorf(Invalid, "the title is empty")
			}
		}
		if patch.Prompt != nil {
			settings.Prompt = *patch.Prompt
		}
		if patch.WorkingDirectory != nil {
			settings.WorkingDirectory = *patch.WorkingDirectory
		}
		if patch.Model != nil {
			settings.Model = patch.Model
		}
		if patch.Grants != nil {
			settings.Grants = patch.Grants
		}
		if patch.Wakes != nil {
			settings.Wakes = patch.Wakes
			b.rebound(&change.Conversation, settings)
		}
		change.Conversation.Settings = settings
		if change.Conversation.Equal(t.c) {
			return nil, nil
		}
		return change, b.checkSettings(settings)
	})
}

// Archive closes a conversation: its handle is free, and nothing can be said in it. A turn that runs is stopped, and what
// waits stays until it is open again and the next message comes. The agents that it started are archived with it.
func (b *Book) Archive(ctx context.Context, workspace, ref string) (Row, error) {
	if err := b.await(ctx); err != nil {
		return Row{}, err
	}
	row, runs, err := b.putAway(context.WithoutCancel(ctx), workspace, ref) // all of it, also if the caller goes away
	if err != nil {
		return row, err
	}
	if err := awaitEnds(ctx, runs); err != nil {
		return row, err
	}
	return b.Get(ctx, workspace, row.ID)
}

// Reopen opens an archived conversation again.
func (b *Book) Reopen(ctx context.Context, workspace, id string) (Row, error) {
	return b.change(ctx, workspace, id, func(t *thread) (*Change, error) {
		if t.c.Open {
			return nil, nil
		}
		change := &Change{Conversation: t.c}
		change.Conversation.Open = true
		return change, nil
	})
}

// change changes a conversation and says how it is then. No change is none.
func (b *Book) change(ctx context.Context, workspace, ref string, make func(*thread) (*Change, error)) (Row, error) {
	if err := b.await(ctx); err != nil {
		return Row{}, err
	}
	c, err := b.readable(ctx, workspace, ref)
	if err != nil {
		return Row{}, err
	}
	err = b.locked(ctx, Ref{workspace, c.ID}, func(t *thread) error {
		change, err := make(t)
		if err == nil && change != nil {
			change.Durable = true
			err = b.tellChanged(ctx, t, *change)
		}
		c = t.c
		return err
	})
	if err != nil {
		return Row{}, err
	}
	return b.shownAs(ctx, c)
}

// tellChanged stores a change of a conversation's own row, with an event that has it as it is then. The caller holds t.mu.
func (b *Book) tellChanged(ctx context.Context, t *thread, change Change) error {
	row := b.row(change.Conversation)
	if change.Conversation.Open {
		handle, err := b.handle(ctx, change.Conversation)
		if err != nil {
			return err
		}
		row.Handle = handle
	}
	message := row.Message()
	message.Sequence, message.UpdatedAt = t.c.Sequence+1, timestamppb.New(b.config.Now())
	change.Events = append(change.Events, &agentv1.Event{Kind: &agentv1.Event_ConversationChanged{ConversationChanged: message}})
	return b.commit(ctx, t, change)
}

// Access is what the agent of a conversation may use now.
func (b *Book) Access(ctx context.Context, workspace, ref string) (tool.Access, error) {
	row, err := b.Get(ctx, workspace, ref)
	if err != nil {
		return tool.Access{}, err
	}
	return b.access(ctx, row.Conversation)
}

// Definitions are the agents that can be started by name.
func (b *Book) Definitions() []*configv1.AgentDefinition { return b.config.Definitions }
