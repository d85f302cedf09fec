// Package storage keeps conversations in the store: the adapter between what the agent needs and the tables that are
// its own (agt_).
package storage

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"slices"

	"google.golang.org/protobuf/proto"

	"throwbar.dev/throwbar/agent/conversation"
	"throwbar.dev/throwbar/agent/model"
	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
	"throwbar.dev/throwbar/store"
	"throwbar.dev/throwbar/store/db"
)

var (
	_ conversation.Store   = (*Storage)(nil)
	_ conversation.Lists   = (*Storage)(nil)
	_ conversation.Outputs = (*Storage)(nil)
)

// pageSize is how many rows are read at once where all are wanted.
const pageSize = 1000

// Storage keeps conversations.
type Storage struct {
	store  *store.Store
	recent *recent
}

// New makes a storage over an open store.
func New(s *store.Store) *Storage { return &Storage{store: s, recent: newRecent(maxRecent)} }

// State is a conversation and what it is about to do.
func (s *Storage) State(ctx context.Context, workspace, id string) (conversation.State, error) {
	var state conversation.State
	err := s.store.ReadTx(ctx, func(q *db.Queries) error {
		state = conversation.State{}
		row, err := q.GetConversation(ctx, db.GetConversationParams{Workspace: workspace, ID: id})
		if err != nil {
			return missing(err)
		}
		if state.Conversation, err = fromRow(row); err != nil {
			return err
		}
		last, err := q.ListEventsBefore(ctx, db.ListEventsBeforeParams{ConversationID: id, Before: math.MaxInt64, PageSize: 1})
		if err != nil {
			return fmt.Errorf("read last event: %w", err)
		}
		for _, row := range last {
			if state.Last, err = decodeEvent(row); err != nil {
				return err
			}
		}
		return agenda(ctx, q, id, &state)
	})
	return state, err
}

// agenda reads what runs and what waits.
func agenda(ctx context.Context, q *db.Queries, id string, state *conversation.State) error {
	running, err := q.GetRunningTurn(ctx, id)
	switch {
	case errors.Is(err, sql.ErrNoRows):
	case err != nil:
		return fmt.Errorf("read turn: %w", err)
	default:
		t, err := fromTurn(running)
		if err != nil {
			return err
		}
		state.Running = &t
	}
	state.Turns = state.Running != nil
	if last := state.Last; !state.Turns && last.GetTurnId() != "" {
		_, err := q.GetTurn(ctx, last.GetTurnId())
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return fmt.Errorf("read turn: %w", err)
		}
		state.Turns = err == nil
	}
	params := db.ListWaitingParams{ConversationID: id, PageSize: pageSize}
	for {
		rows, err := q.ListWaiting(ctx, params)
		if err != nil {
			return fmt.Errorf("read queue: %w", err)
		}
		for _, row := range rows {
			l, err := fromQueued(row)
			if err != nil {
				return err
			}
			state.Waiting = append(state.Waiting, l)
		}
		if len(rows) < pageSize {
			return nil
		}
		params.After = rows[len(rows)-1].N
	}
}

// missing is ErrNoRow if a row is not there, or cannot be there for its id.
func missing(err error) error {
	if errors.Is(err, sql.ErrNoRows) || errors.Is(err, store.ErrRefused) {
		return conversation.ErrNoRow
	}
	return fmt.Errorf("read row: %w", err)
}

// Messages is what models are shown of the history of a conversation. They are those that are kept for the next time: nobody may
// change them.
func (s *Storage) Messages(ctx context.Context, id string) ([]model.Message, error) {
	var all stretch
	err := s.store.ReadTx(ctx, func(q *db.Queries) error {
		from, err := q.GetHistoryStart(ctx, id)
		if err != nil {
			return missing(err)
		}
		all = s.recent.take(id, from)
		for {
			rows, err := q.ListMessages(ctx, db.ListMessagesParams{ConversationID: id, After: all.last, PageSize: pageSize})
			if err != nil {
				return fmt.Errorf("read rows: %w", err)
			}
			all = all.grown(len(rows))
			for _, row := range rows {
				m, err := decodeMessage(row.Body)
				if err != nil {
					return fmt.Errorf("message %d: %w", row.N, err)
				}
				all = all.add(row.N, m, len(row.Body))
			}
			if len(rows) < pageSize {
				return nil
			}
		}
	})
	if err != nil {
		return nil, err
	}
	s.recent.keep(id, all)
	return slices.Clip(all.messages), nil
}

// Letter is a message that was said in a workspace.
func (s *Storage) Letter(ctx context.Context, workspace, id string) (conversation.Letter, error) {
	row, err := s.store.Read().GetQueued(ctx, db.GetQueuedParams{Workspace: workspace, ID: id})
	if err != nil {
		return conversation.Letter{}, missing(err)
	}
	return fromQueued(row)
}

// Chain is the chain of a turn.
func (s *Storage) Chain(ctx context.Context, workspace, turn string) (conversation.Chain, error) {
	t, err := s.store.Read().GetTurn(ctx, turn)
	if err != nil {
		return conversation.Chain{}, missing(err)
	}
	row, err := s.store.Read().GetChain(ctx, t.ChainID)
	if err != nil {
		return conversation.Chain{}, missing(err)
	}
	if row.Workspace != workspace {
		return conversation.Chain{}, conversation.ErrNoRow
	}
	return fromChain(row), nil
}

// Unfinished lists the conversations in which a turn runs or a message waits.
func (s *Storage) Unfinished(ctx context.Context) ([]conversation.Ref, error) {
	var all []conversation.Ref
	known := map[conversation.Ref]bool{}
	add := func(r conversation.Ref) {
		if !known[r] {
			known[r] = true
			all = append(all, r)
		}
	}
	after := ""
	for {
		rows, err := s.store.Read().ListRunningTurns(ctx, db.ListRunningTurnsParams{AfterID: after, PageSize: pageSize})
		if err != nil {
			return nil, fmt.Errorf("read turns: %w", err)
		}
		for _, row := range rows {
			add(conversation.Ref{Workspace: row.Workspace, ID: row.ConversationID})
		}
		if len(rows) < pageSize {
			break
		}
		after = rows[len(rows)-1].ConversationID
	}
	after = ""
	for {
		rows, err := s.store.Read().ListWaitingConversations(ctx, db.ListWaitingConversationsParams{AfterID: after, PageSize: pageSize})
		if err != nil {
			return nil, fmt.Errorf("read queues: %w", err)
		}
		for _, row := range rows {
			add(conversation.Ref{Workspace: row.Workspace, ID: row.ID})
		}
		if len(rows) < pageSize {
			return all, nil
		}
		after = rows[len(rows)-1].ID
	}
}

// Output is the whole answer of a call.
func (s *Storage) Output(ctx context.Context, id, call string) (string, error) {
	body, err := s.store.Read().GetOutput(ctx, db.GetOutputParams{ConversationID: id, CallID: call})
	if err != nil {
		return "", missing(err)
	}
	return string(body), nil
}

// encode is a message as it is stored: empty if there is none.
func encode(m proto.Message) ([]byte, error) {
	if !m.ProtoReflect().IsValid() {
		return []byte{}, nil
	}
	body, err := proto.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", m.ProtoReflect().Descriptor().Name(), err)
	}
	if body == nil {
		body = []byte{}
	}
	return body, nil
}

func decodeEvent(row db.ConversationEvent) (*agentv1.Event, error) {
	event := &agentv1.Event{}
	if err := proto.Unmarshal(row.Body, event); err != nil {
		return nil, fmt.Errorf("decode event %d: %w", row.Seq, err)
	}
	return event, nil
}
