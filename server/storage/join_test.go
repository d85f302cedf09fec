package storage_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"throwbar.dev/throwbar/server/dispatch"
	"throwbar.dev/throwbar/server/storage"
)

// What a request became is found by its principal and its id, in its own workspace only, ended or not.
func TestWhatARequestBecameIsFound(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, s *storage.Storage) {
		at := time.Now().Truncate(time.Millisecond)
		var rows []dispatch.Acceptance
		for i, r := range []dispatch.Record{
			{Workspace: "w", Principal: "p", Request: "key"},
			{Workspace: "w", Principal: "p", Request: "key", Device: "desk"},
			{Workspace: "w", Principal: "p", Request: "other"},
			{Workspace: "w", Principal: "q", Request: "key"},
			{Workspace: "x", Principal: "p", Request: "key"},
			{Workspace: "w", Principal: "p"},
		} {
			r.ID, r.Group, r.Name, r.Action, r.State = fmt.Sprint("c", i), "g", "closeTabs", []byte("a"), dispatch.Accepted
			r.CreatedAt, r.Deadline = at.Add(time.Duration(i)*time.Millisecond), at.Add(time.Minute)
			if r.Device == "" {
				r.Device = "lap"
			}
			rows = append(rows, dispatch.Acceptance{Record: r})
		}
		if err := s.Accept(t.Context(), rows); err != nil {
			t.Fatal(err)
		}
		end := rows[0].Record
		end.State, end.EndedAt, end.Summary = dispatch.Succeeded, at.Add(time.Second), "closedCount=1"
		if err := s.Finish(t.Context(), []dispatch.End{{Record: end}}); err != nil {
			t.Fatal(err)
		}
		for want, filter := range map[string]dispatch.Filter{
			"[c1 c0]": {Workspace: "w", Principal: "p", Request: "key", Limit: 10},
			"[c1]":    {Workspace: "w", Principal: "p", Request: "key", Limit: 1},
			"[c3]":    {Workspace: "w", Principal: "q", Request: "key", Limit: 10},
			"[c4]":    {Workspace: "x", Principal: "p", Request: "key", Limit: 10},
			"[]":      {Workspace: "w", Principal: "p", Request: "none", Limit: 10},
		} {
			got, err := s.List(t.Context(), filter)
			if err != nil {
				t.Fatal(err)
			}
			var ids []string
			for _, r := range got {
				ids = append(ids, r.ID)
			}
			if fmt.Sprint(ids) != want {
				t.Errorf("%+v: %q, want %s", filter, ids, want)
			}
			if slices.Contains(ids, "c0") && got[1].State != dispatch.Succeeded {
				t.Errorf("ended: %+v", got[1])
			}
		}
	})
}
