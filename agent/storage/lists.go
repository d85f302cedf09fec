package storage

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"

	"throwbar.dev/throwbar/agent/conversation"
	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
	"throwbar.dev/throwbar/store"
	"throwbar.dev/throwbar/store/db"
)

// Conversations lists the last used first.
func (s *Storage) Conversations(
	ctx context.Context, workspace string, filter agentv1.ConversationFilter, after *conversation.Place, limit int,
) ([]conversation.Conversation, error) {
	before, id := int64(math.MaxInt64), ""
	if after != nil {
		before, id = after.UpdatedAt.UnixMilli(), after.ID
	}
	var rows []db.Conversation
	var err error
	if filter == agentv1.ConversationFilter_CONVERSATION_FILTER_UNSPECIFIED {
		rows, err = s.store.Read().ListConversations(ctx, db.ListConversationsParams{
			Workspace: workspace, BeforeTime: before, BeforeID: id, PageSize: int32(limit),
		})
	} else {
		rows, err = s.store.Read().ListConversationsWhere(ctx, db.ListConversationsWhereParams{
			Workspace: workspace, Open: filter == agentv1.ConversationFilter_CONVERSATION_FILTER_OPEN,
			BeforeTime: before, BeforeID: id, PageSize: int32(limit),
		})
	}
	if errors.Is(err, store.ErrRefused) { // a place that no row can have
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read rows: %w", err)
	}
	return fromRows(nil, rows)
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
		if all, err = fromRows(all, rows); err != nil {
			return nil, err
		}
		if len(rows) < pageSize {
			return all, nil
		}
		params.AfterID = rows[len(rows)-1].ID
	}
}

// Neighbours are the open conversations next to an id.
func (s *Storage) Neighbours(ctx context.Context, workspace, id string) ([]string, error) {
	var ids []string
	before, err := s.store.Read().GetOpenBefore(ctx, db.GetOpenBeforeParams{Workspace: workspace, ID: id})
	switch {
	case err == nil:
		ids = append(ids, before)
	case !errors.Is(err, sql.ErrNoRows):
		return nil, fmt.Errorf("read row: %w", err)
	}
	after, err := s.store.Read().GetOpenAfter(ctx, db.GetOpenAfterParams{Workspace: workspace, ID: id})
	switch {
	case err == nil:
		ids = append(ids, after)
	case !errors.Is(err, sql.ErrNoRows):
		return nil, fmt.Errorf("read row: %w", err)
	}
	return ids, nil
}

// Children lists what the agent of a conversation has started.
func (s *Storage) Children(ctx context.Context, workspace, parent string) ([]conversation.Conversation, error) {
	params := db.ListChildConversationsParams{Workspace: workspace, ParentID: parent, PageSize: pageSize}
	var all []conversation.Conversation
	for {
		rows, err := s.store.Read().ListChildConversations(ctx, params)
		if err != nil {
			return nil, fmt.Errorf("read rows: %w", err)
		}
		if all, err = fromRows(all, rows); err != nil {
			return nil, err
		}
		if len(rows) < pageSize {
			return all, nil
		}
		params.AfterID = rows[len(rows)-1].ID
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
	return fromEvents(rows)
}

// EventsBefore lists events from a number down.
func (s *Storage) EventsBefore(ctx context.Context, id string, before uint64, limit int) ([]*agentv1.Event, error) {
	rows, err := s.store.Read().ListEventsBefore(ctx, db.ListEventsBeforeParams{
		ConversationID: id, Before: int64(min(before, math.MaxInt64)), PageSize: int32(limit),
	})
	if err != nil {
		return nil, fmt.Errorf("read rows: %w", err)
	}
	return fromEvents(rows)
}

func fromEvents(rows []db.ConversationEvent) ([]*agentv1.Event, error) {
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
