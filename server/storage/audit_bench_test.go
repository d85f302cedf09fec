package storage_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"throwbar.dev/throwbar/catalog"
	"throwbar.dev/throwbar/gen"
	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	"throwbar.dev/throwbar/server/dispatch"
	"throwbar.dev/throwbar/server/storage"
	"throwbar.dev/throwbar/store"
)

// BenchmarkAudit is what the store takes for a command, its acceptance and its end, with and without the audit record.
func BenchmarkAudit(b *testing.B) {
	known, err := catalog.New(gen.Descriptors)
	if err != nil {
		b.Fatal(err)
	}
	action, err := proto.Marshal(&commandv1.Action{Kind: &commandv1.Action_ActivateTab{
		ActivateTab: &commandv1.ActivateTab{TabId: "k3v9x2mqta_tb1-1"},
	}})
	if err != nil {
		b.Fatal(err)
	}
	for _, off := range []bool{true, false} {
		b.Run(map[bool]string{true: "without", false: "with"}[off], func(b *testing.B) {
			db, err := store.Open(b.Context(), store.Config{Dir: b.TempDir()})
			if err != nil {
				b.Fatal(err)
			}
			ctx, cancel := context.WithCancel(context.WithoutCancel(b.Context()))
			ended := make(chan error, 1)
			go func() { ended <- db.Run(ctx) }()
			b.Cleanup(func() {
				cancel()
				if err := errors.Join(<-ended, db.Close()); err != nil {
					b.Error(err)
				}
			})
			s := storage.New(db, slog.New(slog.DiscardHandler))
			s.Audit(storage.Auditing{Catalogue: known, Off: off})
			for n := range b.N {
				a := accepted(fmt.Sprint(n))
				a.Saved, a.Record.Action, a.Record.Name, a.Record.CreatedAt = nil, action, "activateTab", time.Now()
				a.Record.Deadline = a.Record.CreatedAt.Add(time.Minute)
				end := a.Record
				end.State, end.EndedAt, end.Summary = dispatch.Succeeded, a.Record.CreatedAt, "activated=true"
				if err := errors.Join(s.Accept(b.Context(), []dispatch.Acceptance{a}), s.Finish(b.Context(), []dispatch.End{{Record: end}})); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
