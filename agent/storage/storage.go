// Package storage keeps conversations in the store: the adapter between what the agent needs and the tables that are
// its own (agt_).
package storage

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"google.golang.org/protobuf/proto"

	"throwbar.dev/throwbar/agent/conversation"
	"throwbar.dev/throwbar/agent/model"
	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
	"throwbar.dev/throwbar/store"
	"throwbar.dev/throwbar/store/db"
)

var _ conversation.Store = (*Storage)(nil)

// pageSize is how many rows are read at once where all are wanted.
const pageSize = 1000

// Storage keeps conversations.
type Storage struct{ store *store.Store }

// New makes a storage over an open store.
func New(s *store.Store) *Storage { return &Storage{store: s} }

// Conversation is a conversation and its last event.
func (s *Storage) Conversation(ctx context.Context, workspace, id string) (conversation.Conversation, *agentv1.Event, error) {
	var c conversation.Conversation
	var last *agentv1.Event
	err := s.store.ReadTx(ctx, func(q *db.Queries) error {
		row, err := q.GetConversation(ctx, db.GetConversationParams{Workspace: workspace, ID: id})
		if errors.Is(err, sql.ErrNoRows) || errors.Is(err, store.ErrRefused) { // an id that no row can have
			return conversation.ErrNoRow
		}
		if err != nil {
			return fmt.Errorf("read row: %w", err)
		}
		c = fromRow(row)
		seq, err := q.GetLastConversationEvent(ctx, id)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read number of last event: %w", err)
		}
		rows, err := q.ListConversationEvents(ctx, db.ListConversationEventsParams{ConversationID: id, After: seq - 1, PageSize: 1})
		if err != nil {
			return fmt.Errorf("read last event: %w", err)
		}
		for _, row := range rows {
			if last, err = decodeEvent(row); err != nil {
				return err
			}
		}
		return nil
	})
	return c, last, err
}

// Conversations lists the last used first.
func (s *Storage) Conversations(
	ctx context.Context, workspace string, after *conversation.Place, limit int,
) ([]conversation.Conversation, error) {
	params := db.ListConversationsParams{Workspace: workspace, BeforeTime: math.MaxInt64, PageSize: int32(limit)}
	if after != nil {
		params.BeforeTime, params.BeforeID = after.UpdatedAt.UnixMilli(), after.ID
	}
	rows, err := s.store.Read().ListConversations(ctx, params)
	if err != nil {
		return nil, fmt.Errorf("read rows: %w", err)
	}
	return fromRows(rows), nil
}

// Find lists open conversations by the beginning of their ids.
func (s *Storage) Find(ctx context.Context, workspace, prefix string) ([]conversation.Conversation, error) {
	// Ids are hexadecimal digits and dashes, all of which are below the letter g.
	params := db.FindOpenConversationsParams{Workspace: workspace, FromID: prefix, ToID: prefix + "g", PageSize: pageSize}
	var all []conversation.Conversation
	for {
		rows, err := s.store.Read().FindOpenConversations(ctx, params)
		if err != nil {
			return nil, fmt.Errorf("read rows: %w", err)
		}
		all = append(all, fromRows(rows)...)
		if len(rows) < pageSize {
			return all, nil
		}
		params.AfterID = rows[len(rows)-1].ID
	}
}

// Messages is the history of a conversation.
func (s *Storage) Messages(ctx context.Context, id string) ([]model.Message, error) {
	var all []model.Message
	params := db.ListMessagesParams{ConversationID: id, PageSize: pageSize}
	for {
		rows, err := s.store.Read().ListMessages(ctx, params)
		if err != nil {
			return nil, fmt.Errorf("read rows: %w", err)
		}
		for _, row := range rows {
			m, err := decodeMessage(row.Body)
			if err != nil {
				return nil, fmt.Errorf("message %d: %w", row.N, err)
			}
			all = append(all, m)
		}
		if len(rows) < pageSize {
			return all, nil
		}
		params.After = rows[len(rows)-1].N
	}
}

// Events lists events by number.
func (s *Storage) Events(ctx context.Context, id string, after uint64, limit int) ([]*agentv1.Event, error) {
	rows, err := s.store.Read().ListConversationEvents(ctx, db.ListConversationEventsParams{
		ConversationID: id, After: int64(min(after, math.MaxInt64)), PageSize: int32(limit),
	})
	if err != nil {
		return nil, fmt.Errorf("read rows: %w", err)
	}
	events := make([]*agentv1.Event, 0, len(rows))
	for _, row := range rows {
		event, err := decodeEvent(row)
		if err != nil {
			return nil, err
		}
		events = append(events, event)
	}
	return events, nil
}

// Append stores a change in one transaction.
func (s *Storage) Append(ctx context.Context, change conversation.Change) error {
	level := store.Fast
	if change.Durable {
		level = store.Synced
	}
	events := make([]db.InsertConversationEventParams, len(change.Events))
	for i, event := range change.Events {
		body, err := proto.Marshal(event)
		if err != nil {
			return fmt.Errorf("encode event: %w", err)
		}
		events[i] = db.InsertConversationEventParams{
			ConversationID: change.Conversation.ID, Seq: int64(event.GetSequence()), Time: event.GetTime().AsTime().UnixMilli(),
			TurnID: event.GetTurnId(), Body: body,
		}
	}
	messages := make([][]byte, len(change.Messages))
	for i, m := range change.Messages {
		body, err := encodeMessage(m)
		if err != nil {
			return err
		}
		messages[i] = body
	}
	return s.store.Write(ctx, level, func(ctx context.Context, q *db.Queries) error {
		if err := header(ctx, q, change); err != nil {
			return err
		}
		for _, event := range events {
			if err := q.InsertConversationEvent(ctx, event); err != nil {
				return fmt.Errorf("insert event: %w", err)
			}
		}
		return appendMessages(ctx, q, change.Conversation.ID, messages)
	})
}

// header inserts or updates the row of the conversation.
func header(ctx context.Context, q *db.Queries, change conversation.Change) error {
	c := change.Conversation
	if change.New {
		if err := q.InsertConversation(ctx, db.InsertConversationParams{
			ID: c.ID, Workspace: c.Workspace, Title: c.Title, Open: c.Open,
			CreatedAt: c.CreatedAt.UnixMilli(), UpdatedAt: c.UpdatedAt.UnixMilli(),
		}); err != nil {
			return fmt.Errorf("insert conversation: %w", err)
		}
		return nil
	}
	n, err := q.UpdateConversation(ctx, db.UpdateConversationParams{
		Title: c.Title, UpdatedAt: c.UpdatedAt.UnixMilli(), Workspace: c.Workspace, ID: c.ID,
	})
	if err != nil {
		return fmt.Errorf("update conversation: %w", err)
	}
	if n == 0 {
		return conversation.ErrNoRow
	}
	return nil
}

func appendMessages(ctx context.Context, q *db.Queries, id string, messages [][]byte) error {
	if len(messages) == 0 {
		return nil
	}
	last, err := q.GetLastMessage(ctx, id)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return fmt.Errorf("read number of last message: %w", err)
	}
	for i, body := range messages {
		params := db.InsertMessageParams{ConversationID: id, N: last + int64(i) + 1, Body: body}
		if err := q.InsertMessage(ctx, params); err != nil {
			return fmt.Errorf("insert message: %w", err)
		}
	}
	return nil
}

func fromRows(rows []db.Conversation) []conversation.Conversation {
	all := make([]conversation.Conversation, len(rows))
	for i, row := range rows {
		all[i] = fromRow(row)
	}
	return all
}

func fromRow(row db.Conversation) conversation.Conversation {
	return conversation.Conversation{
		ID: row.ID, Workspace: row.Workspace, Title: row.Title, Open: row.Open,
		CreatedAt: time.UnixMilli(row.CreatedAt).UTC(), UpdatedAt: time.UnixMilli(row.UpdatedAt).UTC(),
	}
}

func decodeEvent(row db.ConversationEvent) (*agentv1.Event, error) {
	event := &agentv1.Event{}
	if err := proto.Unmarshal(row.Body, event); err != nil {
		return nil, fmt.Errorf("decode event %d: %w", row.Seq, err)
	}
	return event, nil
}

// message is the form in which a message of the history is stored.
type message struct {
	Role      model.Role `json:"role"`
	Text      string     `json:"text,omitempty"`
	Images    []string   `json:"images,omitempty"`
	Reasoning string     `json:"reasoning,omitempty"`
	Calls     []call     `json:"calls,omitempty"`
	CallID    string     `json:"call_id,omitempty"`
}

type call struct {
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Arguments string          `json:"arguments"`
	Extra     json.RawMessage `json:"extra,omitempty"`
}

func encodeMessage(m model.Message) ([]byte, error) {
	stored := message{Role: m.Role, Text: m.Text, Images: m.Images, Reasoning: m.Reasoning, CallID: m.CallID}
	for _, c := range m.Calls {
		stored.Calls = append(stored.Calls, call(c))
	}
	body, err := json.Marshal(stored)
	if err != nil {
		return nil, fmt.Errorf("encode message: %w", err)
	}
	return body, nil
}

func decodeMessage(body []byte) (model.Message, error) {
	var stored message
	if err := json.Unmarshal(body, &stored); err != nil {
		return model.Message{}, fmt.Errorf("decode message: %w", err)
	}
	m := model.Message{Role: stored.Role, Text: stored.Text, Images: stored.Images, Reasoning: stored.Reasoning, CallID: stored.CallID}
	for _, c := range stored.Calls {
		m.Calls = append(m.Calls, model.Call(c))
	}
	return m, nil
}
