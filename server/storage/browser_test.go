package storage_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"throwbar.dev/throwbar/server/browser"
	"throwbar.dev/throwbar/server/storage"
	"throwbar.dev/throwbar/store"
)

func TestCopiesOfBrowserStates(t *testing.T) {
	t.Parallel()
	db, err := store.Open(t.Context(), store.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- db.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	s := storage.New(db, slog.New(slog.DiscardHandler))
	asOf := time.UnixMilli(1_700_000_000_123).UTC()
	var want []string
	var copies []browser.Copy
	for n := range 150 {
		id := fmt.Sprintf("d%03d", n)
		copies = append(copies, browser.Copy{Device: id, AsOf: asOf, Body: []byte(id)})
		if n%2 == 0 {
			want = append(want, id)
		}
	}
	if err := s.Keep(t.Context(), copies); err != nil {
		t.Fatal(err)
	}
	for n := range copies {
		copies[n].Body = []byte("newer " + copies[n].Device)
	}
	if err := s.Keep(t.Context(), copies); err != nil {
		t.Fatal(err)
	}
	for n := 1; n < 150; n += 2 {
		if err := s.Drop(t.Context(), []string{copies[n].Device, "unknown"}); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for after := ""; ; after = got[len(got)-1] {
		page, err := s.Copies(t.Context(), after)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 {
			break
		}
		for _, c := range page {
			if string(c.Body) != "newer "+c.Device || !c.AsOf.Equal(asOf) {
				t.Errorf("%s: %q as of %v", c.Device, c.Body, c.AsOf)
			}
			got = append(got, c.Device)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("copies of %v", got)
	}
}
