package store

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"throwbar.dev/throwbar/store/db"
	"throwbar.dev/throwbar/store/dump"
	"throwbar.dev/throwbar/store/storetest"
)

// filled gives a store with rows in every table: many, and some that are hard to carry.
func filled(t *testing.T, engine storetest.Engine) *Store {
	t.Helper()
	s := running(t, engine, Config{})
	seed(t, s)
	every := make([]byte, 256)
	for n := range every {
		every[n] = byte(n)
	}
	do(t, s, func(ctx context.Context, q *db.Queries) error {
		for n, name := range []string{"1", "null", "a'b\"c\\", "Grüße 👋 <b>&\u2028", " ", "\x7f\x01\t\n", "ä", "z", "Z"} {
			if err := q.InsertDevice(ctx, db.InsertDeviceParams{
				ID: name, Workspace: "w", Name: name, Kind: 1<<62 + int64(n), PairedAt: at, Actions: "[]",
			}); err != nil {
				return err
			}
			if err := q.UpsertBrowser(ctx, db.UpsertBrowserParams{DeviceID: name, AsOf: at, Body: bytes.Repeat(every, n*5)}); err != nil {
				return err
			}
		}
		for id, result := range map[string][]byte{"nil": nil, "empty": {}} {
			if err := q.InsertCommand(ctx, command(id, 1)); err != nil {
				return err
			}
			if _, err := q.FinishCommand(ctx, db.FinishCommandParams{ID: id, State: "succeeded", EndedAt: at + 1, Result: result}); err != nil {
				return err
			}
		}
		return nil
	})
	return s
}

func exported(t *testing.T, s *Store) ([]byte, []dump.Sum) {
	t.Helper()
	var out bytes.Buffer
	sums, err := s.Export(t.Context(), &out)
	check(t, err)
	return out.Bytes(), sums
}

// TestRoundTrip carries a database from SQLite to PostgreSQL and back: the three exports are the same to the byte.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	file, sums := exported(t, filled(t, onSQLite()))
	if len(sums) < 9 || slices.ContainsFunc(sums, func(s dump.Sum) bool { return s.Rows == 0 }) {
		t.Fatalf("not every table has rows: %v", sums)
	}
	engines := postgres.Engines()
	for _, engine := range []storetest.Engine{engines[1], engines[0], engines[1]} {
		config := place(t, engine, Config{})
		into, err := Open(t.Context(), config)
		check(t, err)
		got, err := into.Import(t.Context(), bytes.NewReader(file))
		check(t, err)
		if !slices.Equal(got, sums) {
			t.Errorf("into %s: sums are %v, want %v", engine.Name, got, sums)
		}
		if err := into.Run(t.Context()); err == nil {
			t.Error("a store runs after its import")
		}
		check(t, into.Close())
		s := running(t, engine, config)
		again, _ := exported(t, s)
		if !bytes.Equal(again, file) {
			t.Errorf("out of %s comes another file", engine.Name)
		}
		// It is a database to go on with.
		check(t, s.Write(t.Context(), Fast, func(ctx context.Context, q *db.Queries) error {
			seq, err := q.InsertEvent(ctx, event("next", 1))
			if seq != 61 {
				t.Errorf("on %s the next event has the number %d", engine.Name, seq)
			}
			return err
		}))
	}
}

// refusedFiles are exports that are not as they were written, and some of the words of the error.
func refusedFiles(t *testing.T, file []byte) map[string]struct {
	file []byte
	want error
} {
	t.Helper()
	zip, err := gzip.NewReader(bytes.NewReader(file))
	check(t, err)
	text, err := io.ReadAll(zip)
	check(t, err)
	pack := func(text string) []byte {
		var out bytes.Buffer
		w := gzip.NewWriter(&out)
		_, err := io.WriteString(w, text)
		check(t, errors.Join(err, w.Close()))
		return out.Bytes()
	}
	lines := strings.SplitAfter(string(text), "\n")
	row := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, "[") })
	without := slices.Concat(lines[:row], lines[row+1:])
	twice := slices.Concat(lines[:row], lines[row:row+1], lines[row:])
	type c = struct {
		file []byte
		want error
	}
	return map[string]c{
		"cut off":         {file[:len(file)-20], dump.ErrDamaged},
		"half":            {file[:len(file)/2], dump.ErrDamaged},
		"no trailer":      {pack(strings.Join(lines[:len(lines)-2], "")), dump.ErrDamaged},
		"a row less":      {pack(strings.Join(without, "")), dump.ErrDamaged},
		"a row twice":     {pack(strings.Join(twice, "")), nil},
		"another value":   {pack(strings.Replace(string(text), "default", "defauIt", 1)), nil},
		"more at the end": {pack(string(text) + "[]\n"), dump.ErrDamaged},
		"two files":       {slices.Concat(file, file), dump.ErrDamaged},
		"another table":   {pack(strings.ReplaceAll(string(text), "srv_saved", "srv_other")), dump.ErrDamaged},
		"newer format":    {pack(strings.Replace(string(text), `"format":1`, `"format":2`, 1)), dump.ErrNewer},
		"newer schema":    {pack(strings.Replace(string(text), `"schema":`, `"schema":9`, 1)), dump.ErrNewer},
		"no export":       {pack("{}\n"), dump.ErrDamaged},
		"no gzip":         {text, dump.ErrDamaged},
		"nothing":         {nil, dump.ErrDamaged},
	}
}

// TestBadFilesImportNothing: also where the fault comes last, after all rows.
func TestBadFilesImportNothing(t *testing.T) {
	t.Parallel()
	file, _ := exported(t, filled(t, onSQLite()))
	onEach(t, func(t *testing.T, engine storetest.Engine) {
		config := place(t, engine, Config{})
		empty, _ := exported(t, opened(t, engine, Config{}))
		for name, c := range refusedFiles(t, file) {
			s, err := Open(t.Context(), config)
			check(t, err)
			_, err = s.Import(t.Context(), bytes.NewReader(c.file))
			if err == nil || c.want != nil && !errors.Is(err, c.want) {
				t.Errorf("%s: error is %v, want %v", name, err, c.want)
			}
			after, _ := exported(t, s)
			if !bytes.Equal(after, empty) {
				t.Errorf("%s: something was imported", name)
			}
			check(t, s.Close())
		}
		flips := 12
		s := opened(t, engine, config)
		for n := range flips { // every part of the file, from the header on
			bad := bytes.Clone(file)
			bad[10+n*(len(bad)-10)/flips] ^= 4
			tx, err := s.writer.session.begin(Fast)
			check(t, err)
			if _, err := s.fill(t.Context(), tx, bytes.NewReader(bad)); err == nil {
				t.Errorf("flip %d was not noticed", n)
			}
			s.writer.session.rollback()
		}
	})
}

func TestImportNeedsAnEmptyDatabase(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, engine storetest.Engine) {
		config := place(t, engine, Config{})
		s, err := Open(t.Context(), config)
		check(t, err)
		stop := run(t, s)
		check(t, s.Write(t.Context(), Fast, both("a")))
		before, _ := exported(t, s)
		if _, err := s.Import(t.Context(), bytes.NewReader(before)); err == nil {
			t.Error("import beside a writer")
		}
		stop()
		check(t, s.Close())
		s = opened(t, engine, config)
		if _, err := s.Import(t.Context(), bytes.NewReader(before)); !errors.Is(err, ErrNotEmpty) {
			t.Errorf("error is %v, want ErrNotEmpty", err)
		}
		after, _ := exported(t, s)
		if !bytes.Equal(after, before) {
			t.Error("the database has changed")
		}
	})
}
