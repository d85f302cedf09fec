package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"

	"throwbar.dev/throwbar/store/db"
	"throwbar.dev/throwbar/store/storetest"
)

// TestBytesComeBackAsTheyWere writes bytes that a database may take for text, numbers or nothing.
func TestBytesComeBackAsTheyWere(t *testing.T) {
	t.Parallel()
	onEach(t, testBytesComeBackAsTheyWere)
}

func testBytesComeBackAsTheyWere(t *testing.T, engine storetest.Engine) {
	s := running(t, engine, Config{})
	every := make([]byte, 256)
	for n := range every {
		every[n] = byte(n)
	}
	for n, body := range [][]byte{
		{},
		{0},
		{0, 0},
		[]byte("12"), []byte("1e3"), []byte(" 12"), []byte("null"), []byte("\\x00"), []byte("a\x00b"),
		{0xff, 0xfe},
		{0xed, 0xa0, 0x80},
		every, bytes.Repeat(every, 1000),
	} {
		id := fmt.Sprint("v", n)
		do(t, s, func(ctx context.Context, q *db.Queries) error {
			return q.UpsertBrowser(ctx, db.UpsertBrowserParams{DeviceID: id, AsOf: at, Body: body})
		})
		row, err := s.Read().GetBrowser(t.Context(), id)
		check(t, err)
		if row.Body == nil || !bytes.Equal(row.Body, body) {
			t.Errorf("%.40q came back as %.40q, nil: %v", body, row.Body, row.Body == nil)
		}
		if !engine.SQLite() {
			continue
		}
		var kind string
		check(t, s.reader.QueryRowContext(t.Context(), "select typeof(body) from srv_browser where device_id = ?", id).Scan(&kind))
		if kind != "blob" {
			t.Errorf("%.40q is stored as %s", body, kind)
		}
	}
}

// TestNilAndEmpty: nil is nothing, empty is a message with nothing set.
func TestNilAndEmpty(t *testing.T) {
	t.Parallel()
	onEach(t, testNilAndEmpty)
}

func testNilAndEmpty(t *testing.T, engine storetest.Engine) {
	s := running(t, engine, Config{})
	for id, result := range map[string][]byte{"nil": nil, "empty": {}, "full": []byte("result")} {
		do(t, s, func(ctx context.Context, q *db.Queries) error {
			if err := q.InsertCommand(ctx, command(id, 1)); err != nil {
				return err
			}
			if row, err := q.GetCommand(ctx, db.GetCommandParams{Workspace: "default", ID: id}); err != nil || row.Result != nil {
				t.Errorf("%s: result before the end is %q, %v", id, row.Result, err)
			}
			_, err := q.FinishCommand(ctx, db.FinishCommandParams{ID: id, State: "succeeded", EndedAt: at + 1, Result: result})
			return err
		})
		row := getCommand(t, s, id)
		if (row.Result == nil) != (result == nil) || !bytes.Equal(row.Result, result) || row.Error != nil {
			t.Errorf("%s: result is %q, nil: %v", id, row.Result, row.Result == nil)
		}
	}
}

// TestText has names that are no plain words.
func TestText(t *testing.T) {
	t.Parallel()
	onEach(t, testText)
}

func testText(t *testing.T, engine storetest.Engine) {
	s := running(t, engine, Config{})
	for n, name := range []string{"1", "1e3", "0x10", " ", "a'b\"c", "Grüße 👋", "\u2028", "NULL"} {
		id := fmt.Sprint("d", n)
		do(t, s, func(ctx context.Context, q *db.Queries) error {
			return q.InsertDevice(ctx, db.InsertDeviceParams{
				ID: id, Workspace: "default", Name: name, Kind: 1, PairedAt: at, Actions: "[]",
			})
		})
		row, err := s.Read().GetDevice(t.Context(), db.GetDeviceParams{Workspace: "default", ID: id})
		check(t, err)
		if row.Name != name {
			t.Errorf("%q came back as %q", name, row.Name)
		}
	}
}

// TestTextThatIsNone: PostgreSQL holds neither, so SQLite takes neither, and says so in the same way.
func TestTextThatIsNone(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, engine storetest.Engine) {
		s := running(t, engine, Config{})
		for _, name := range []string{"a\x00b", "\x00", "a\xffb", "\xed\xa0\x80"} {
			err := s.Write(t.Context(), Fast, func(ctx context.Context, q *db.Queries) error {
				return q.InsertDevice(ctx, db.InsertDeviceParams{
					ID: "d", Workspace: "default", Name: name, Kind: 1, PairedAt: at, Actions: "[]",
				})
			})
			if !errors.Is(err, ErrRefused) {
				t.Errorf("%q: error is %v, want ErrRefused", name, err)
			}
			if _, err := s.Read().FindCommand(t.Context(), name); !errors.Is(err, ErrRefused) {
				t.Errorf("%q: reading: error is %v, want ErrRefused", name, err)
			}
		}
	})
}
