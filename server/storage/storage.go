// Package storage keeps the server's state in the store: the thin adapters between what the cores ask for and the
// queries. Tables with the prefix srv_ are its own.
package storage

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	"throwbar.dev/throwbar/server/event"
	"throwbar.dev/throwbar/server/fault"
	"throwbar.dev/throwbar/store"
	"throwbar.dev/throwbar/store/db"
)

const (
	pageSize = 500
	// keepEvents is how long events can be read back.
	keepEvents = 30 * 24 * time.Hour
)

// Storage implements what the server's cores ask for on one store.
type Storage struct {
	store *store.Store
	feed  *event.Feed
	log   *slog.Logger
	meter Meter // may be nil
	gaps  gaps

	auditing Auditing
	heads    heads // of the writer
}

// Meter counts writes. Its methods must not wait.
type Meter interface {
	// StoreWrote is one write from its request to its commit: synced, fast, or one that nobody waited for.
	StoreWrote(kind string, took time.Duration)
}

// Measure says who counts writes. It has to be called before the first one.
func (s *Storage) Measure(meter Meter) {
	s.meter = meter
}

func (s *Storage) wrote(kind string, began time.Time) {
	if s.meter != nil {
		s.meter.StoreWrote(kind, time.Since(began))
	}
}

// New makes the adapters. Feed makes the event feed over them.
func New(s *store.Store, log *slog.Logger) *Storage {
	st := &Storage{store: s, log: log, heads: heads{}}
	st.feed = event.New(st)
	return st
}

// Between makes watchers read the event log through what put returns. It is called before the feed is used.
func (s *Storage) Between(put func(event.Journal) event.Journal) { s.feed = event.New(put(s)) }

// Feed wakes the watchers of the event log.
func (s *Storage) Feed() *event.Feed { return s.feed }

func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func fromMillis(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

// before is the time of a keyset page; the first page is before the greatest time.
func before(t time.Time) int64 {
	if t.IsZero() {
		return math.MaxInt64
	}
	return t.UnixMilli()
}

// appendEvent adds an event to the log in the transaction of the change that it is about.
func appendEvent(ctx context.Context, q *db.Queries, workspace string, at time.Time, e *controlv1.Event) error {
	e.Time = timestamppb.New(at)
	body, err := proto.Marshal(e)
	if err != nil {
		return fmt.Errorf("encode event: %w", err)
	}
	if err := q.AppendEvent(ctx, db.AppendEventParams{
		Workspace: workspace, Time: millis(at), DeviceID: e.GetDeviceId(), Body: body,
	}); err != nil {
		return fmt.Errorf("append event: %w", err)
	}
	return nil
}

// later writes soon, and says in the log if that did not work: nobody waits for it. Failed may be nil.
func (s *Storage) later(what string, write func(context.Context, *db.Queries) error, failed func()) {
	began := time.Now()
	s.store.WriteLater(s.audited(write), func(err error) {
		s.wrote("later", began)
		if err != nil {
			s.log.ErrorContext(context.Background(), "writing later failed", slog.String("what", what), slog.Any("error", err))
			if failed != nil {
				failed()
			}
			return
		}
		s.feed.Hint()
	})
}

// write writes now and wakes the watchers.
func (s *Storage) write(ctx context.Context, level store.Level, write func(context.Context, *db.Queries) error) error {
	began := time.Now()
	err := s.store.Write(ctx, level, s.audited(write))
	switch {
	case err == nil:
		s.wrote(map[store.Level]string{store.Fast: "fast", store.Synced: "synced"}[level], began)
		s.feed.Hint()
		return nil
	case errors.Is(err, store.ErrUnknown):
		s.feed.Hint() // perhaps it is there
		return fault.Wrap(fault.Interrupted, err, "the database was lost while it was written to, and whether this was done is not "+
			"known: look before you try it again")
	case errors.Is(err, store.ErrUnavailable):
		return fault.Wrap(fault.Unavailable, err, "the database does not answer: nothing was done").Retry()
	default:
		return err
	}
}

// noRow says that there is no such row: it was not found, or its key is a text that no row can have.
func noRow(err error) bool { return errors.Is(err, sql.ErrNoRows) || errors.Is(err, store.ErrRefused) }

// text is what people and devices call things, without what a database cannot hold.
func text(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\ufffd"), "\x00", "\ufffd")
}

// After implements event.Journal.
func (s *Storage) After(ctx context.Context, workspace, device string, cursor uint64, limit int) ([]*controlv1.Event, error) {
	var rows []db.Event
	var err error
	if device == "" {
		rows, err = s.store.Read().ListEvents(ctx, db.ListEventsParams{
			Workspace: workspace, After: int64(cursor), PageSize: int32(limit),
		})
	} else {
		rows, err = s.store.Read().ListDeviceEvents(ctx, db.ListDeviceEventsParams{
			Workspace: workspace, DeviceID: device, After: int64(cursor), PageSize: int32(limit),
		})
	}
	if err != nil && !noRow(err) {
		return nil, fmt.Errorf("list events: %w", err)
	}
	events := make([]*controlv1.Event, 0, len(rows))
	for _, row := range rows {
		e := &controlv1.Event{}
		if err := proto.Unmarshal(row.Body, e); err != nil {
			return nil, fmt.Errorf("decode event %d: %w", row.Seq, err)
		}
		e.Cursor = uint64(row.Seq)
		events = append(events, e)
	}
	return events, nil
}

// Bounds implements event.Journal.
func (s *Storage) Bounds(ctx context.Context) (uint64, uint64, error) {
	row, err := s.store.Read().GetEventRange(ctx)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, 0, nil
	}
	if err != nil {
		return 0, 0, fmt.Errorf("read event range: %w", err)
	}
	return uint64(row.First), uint64(row.Last), nil
}
