package storage

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"

	"throwbar.dev/throwbar/agent/conversation"
	"throwbar.dev/throwbar/store"
	"throwbar.dev/throwbar/store/db"
)

// encoded is what a change stores, as it is stored.
type encoded struct {
	conversation.Change

	settings []byte
	events   []db.InsertConversationEventParams
	messages [][]byte
	begin    db.InsertTurnParams
	letters  []db.InsertQueuedParams
}

// Append stores a change in one transaction.
func (s *Storage) Append(ctx context.Context, change conversation.Change) error {
	level := store.Fast
	if change.Durable {
		level = store.Synced
	}
	e, err := encodeChange(change)
	if err != nil {
		return err
	}
	return s.store.Write(ctx, level, func(ctx context.Context, q *db.Queries) error {
		for _, step := range []func(context.Context, *db.Queries) error{e.pay, e.talk, e.turns, e.deliver} {
			if err := step(ctx, q); err != nil {
				return err
			}
		}
		return nil
	})
}

// encodeChange does what needs no database before the transaction.
func encodeChange(change conversation.Change) (*encoded, error) {
	e := &encoded{Change: change}
	var err error
	if e.settings, err = encode(change.Conversation.Settings); err != nil {
		return nil, err
	}
	for _, event := range change.Events {
		body, err := proto.Marshal(event)
		if err != nil {
			return nil, fmt.Errorf("encode event: %w", err)
		}
		e.events = append(e.events, db.InsertConversationEventParams{
			ConversationID: change.Conversation.ID, Seq: int64(event.GetSequence()), Time: event.GetTime().AsTime().UnixMilli(),
			TurnID: event.GetTurnId(), Body: body,
		})
	}
	for _, m := range change.Messages {
		body, err := encodeMessage(m)
		if err != nil {
			return nil, err
		}
		e.messages = append(e.messages, body)
	}
	if t := change.Begin; t != nil {
		choice, err := encode(t.Choice)
		if err != nil {
			return nil, err
		}
		e.begin = db.InsertTurnParams{
			ID: t.ID, ConversationID: t.Conversation, State: string(t.State), Durable: t.Durable, Stopping: t.Stopping,
			Speaker: int64(t.Speaker), ChainID: t.Chain, Choice: choice, Sequence: int64(t.Sequence), Rounds: int64(t.Spent.Rounds),
			Tokens: t.Spent.Tokens, Millis: t.Spent.Millis, StartedAt: millis(t.StartedAt),
		}
	}
	for _, move := range change.Letters {
		row, err := encodeLetter(move.Letter)
		if err != nil {
			return nil, err
		}
		e.letters = append(e.letters, row)
	}
	return e, nil
}

func encodeLetter(l conversation.Letter) (db.InsertQueuedParams, error) {
	sender, err := encode(l.Sender)
	if err != nil {
		return db.InsertQueuedParams{}, err
	}
	choice, err := encode(l.Choice)
	if err != nil {
		return db.InsertQueuedParams{}, err
	}
	body := []byte{}
	if l.State == conversation.LetterWaiting {
		body = []byte(l.Text)
	}
	return db.InsertQueuedParams{
		Workspace: l.Workspace, ID: l.ID, ConversationID: l.Conversation, State: string(l.State), Mode: int64(l.Mode), Sender: sender,
		ChainID: l.Chain, Choice: choice, Body: body, Delivery: int64(l.Delivery), TurnID: l.Turn, Sequence: int64(l.Sequence),
		CreatedAt: millis(l.CreatedAt),
	}, nil
}

// pay begins, charges and closes chains.
func (e *encoded) pay(ctx context.Context, q *db.Queries) error {
	if c := e.Chain; c != nil {
		err := q.InsertChain(ctx, db.InsertChainParams{
			ID: c.ID, Workspace: c.Workspace, RootID: c.Root, Authority: c.Authority, WakesLeft: int64(c.Left), CreatedAt: millis(c.CreatedAt),
		})
		if err != nil {
			return fmt.Errorf("insert chain: %w", err)
		}
	}
	if e.Spend != "" {
		switch n, err := q.SpendChain(ctx, e.Spend); {
		case err != nil:
			return fmt.Errorf("charge chain: %w", err)
		case n == 0:
			return conversation.ErrExhausted
		}
	}
	if e.Close != "" {
		if _, err := q.CloseChain(ctx, e.Close); err != nil {
			return fmt.Errorf("close chain: %w", err)
		}
	}
	return nil
}

// talk stores the row of the conversation, its events and its messages.
func (e *encoded) talk(ctx context.Context, q *db.Queries) error {
	last := int64(0)
	var err error
	if len(e.messages) > 0 && !e.New {
		last, err = q.GetLastMessage(ctx, e.Conversation.ID)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return fmt.Errorf("read number of last message: %w", err)
		}
	}
	if err := e.header(ctx, q, last+1); err != nil {
		return err
	}
	for _, event := range e.events {
		if err := q.InsertConversationEvent(ctx, event); err != nil {
			return fmt.Errorf("insert event: %w", err)
		}
	}
	for i, body := range e.messages {
		params := db.InsertMessageParams{ConversationID: e.Conversation.ID, N: last + int64(i) + 1, Body: body}
		if err := q.InsertMessage(ctx, params); err != nil {
			return fmt.Errorf("insert message: %w", err)
		}
	}
	for _, out := range e.Outputs {
		params := db.PutOutputParams{ConversationID: e.Conversation.ID, CallID: out.CallID, Body: []byte(out.Text)}
		if err := q.PutOutput(ctx, params); err != nil {
			return fmt.Errorf("keep output: %w", err)
		}
	}
	return nil
}

// header inserts or updates the row of the conversation. If the history begins anew, it does so with a message's number.
func (e *encoded) header(ctx context.Context, q *db.Queries, number int64) error {
	c := e.Conversation
	if e.New {
		if err := q.InsertConversation(ctx, db.InsertConversationParams{
			ID: c.ID, Workspace: c.Workspace, Title: c.Title, Open: c.Open, CreatedAt: millis(c.CreatedAt),
			UpdatedAt: millis(c.UpdatedAt), Settings: e.settings, ParentID: c.Parent, RootID: c.Root, Agent: c.Agent,
			Wakes: int64(c.Wakes), Holds: int64(c.Holds), LastEnd: int64(c.LastEnd), Sequence: int64(c.Sequence),
		}); err != nil {
			return fmt.Errorf("insert conversation: %w", err)
		}
		return nil
	}
	n, err := q.UpdateConversation(ctx, db.UpdateConversationParams{
		Title: c.Title, Open: c.Open, UpdatedAt: millis(c.UpdatedAt), Settings: e.settings, Wakes: int64(c.Wakes),
		Holds: int64(c.Holds), LastEnd: int64(c.LastEnd), Sequence: int64(c.Sequence), Workspace: c.Workspace, ID: c.ID,
	})
	if err != nil {
		return fmt.Errorf("update conversation: %w", err)
	}
	if n == 0 {
		return conversation.ErrNoRow
	}
	if !e.Restart {
		return nil
	}
	if _, err := q.SetHistoryStart(ctx, db.SetHistoryStartParams{HistoryFrom: number, Workspace: c.Workspace, ID: c.ID}); err != nil {
		return fmt.Errorf("update conversation: %w", err)
	}
	return nil
}

// turns stores what becomes of the turn that runs, then the one that begins: there is one at a time.
func (e *encoded) turns(ctx context.Context, q *db.Queries) error {
	if t := e.Turn; t != nil {
		n, err := q.UpdateTurn(ctx, db.UpdateTurnParams{
			ToState: string(t.State), Durable: t.Durable, Stopping: t.Stopping, ChainID: t.Chain, Rounds: int64(t.Spent.Rounds),
			Tokens: t.Spent.Tokens, Millis: t.Spent.Millis, Reason: int64(t.End), EndedAt: millis(t.EndedAt), ID: t.ID,
			FromState: string(conversation.TurnRunning),
		})
		if err != nil {
			return fmt.Errorf("update turn: %w", err)
		}
		if n == 0 {
			return fmt.Errorf("update turn %s: it does not run", t.ID)
		}
	}
	if e.Begin == nil {
		return nil
	}
	if err := q.InsertTurn(ctx, e.begin); err != nil {
		return fmt.Errorf("insert turn: %w", err)
	}
	return nil
}

// deliver stores what becomes of messages that were said.
func (e *encoded) deliver(ctx context.Context, q *db.Queries) error {
	for i, move := range e.Change.Letters {
		row := e.letters[i]
		switch {
		case move.New:
			last, err := q.GetLastQueued(ctx, row.ConversationID)
			if err != nil && !errors.Is(err, sql.ErrNoRows) {
				return fmt.Errorf("read number of last message: %w", err)
			}
			row.N = last + 1
			switch n, err := q.InsertQueued(ctx, row); {
			case err != nil:
				return fmt.Errorf("insert message: %w", err)
			case n == 0:
				return conversation.ErrKnown
			}
		case move.Edit:
			n, err := q.EditQueued(ctx, db.EditQueuedParams{Body: row.Body, Workspace: row.Workspace, ID: row.ID})
			if err := moved(n, row.ID, err); err != nil {
				return err
			}
		default:
			n, err := q.MoveQueued(ctx, db.MoveQueuedParams{
				ToState: row.State, Body: row.Body, TurnID: row.TurnID, Workspace: row.Workspace, ID: row.ID,
				FromState: string(conversation.LetterWaiting),
			})
			if err := moved(n, row.ID, err); err != nil {
				return err
			}
		}
	}
	return nil
}

func moved(n int64, id string, err error) error {
	switch {
	case err != nil:
		return fmt.Errorf("update message: %w", err)
	case n == 0:
		return fmt.Errorf("update message %s: it does not wait", id)
	default:
		return nil
	}
}
