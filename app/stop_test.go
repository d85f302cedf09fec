package app_test

import (
	"bytes"
	"log/slog"
	"testing"

	"connectrpc.com/connect/v2"

	"throwbar.dev/throwbar/app"
	"throwbar.dev/throwbar/app/apptest"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
)

// TestAStopIsNoFailure ends the streams of a server that is stopped as unavailable, so that their readers come back, and
// logs no error: nothing went wrong.
func TestAStopIsNoFailure(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer // slog's handler writes one record at a time, and it is read when the server has ended
	s := apptest.Start(t, app.Config{Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))})
	approvals, err := approvalsOf(t, s, s.Owner).WatchApprovals(t.Context(), &controlv1.WatchApprovalsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	events, err := s.Commands(t).WatchEvents(t.Context(), &controlv1.WatchEventsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for name, receive := range map[string]func() error{
		"approvals": func() error { _, err := approvals.Receive(); return err },
		"events":    func() error { _, err := events.Receive(); return err },
	} {
		if err := receive(); err != nil { // the first sign of life: the stream stands
			t.Fatalf("%s: %v", name, err)
		}
	}
	s.Stop()
	for err == nil {
		_, err = approvals.Receive()
	}
	if connect.CodeOf(err) != connect.CodeUnavailable {
		t.Errorf("the approvals ended with %v", err)
	}
	for err = nil; err == nil; {
		_, err = events.Receive()
	}
	if connect.CodeOf(err) != connect.CodeUnavailable {
		t.Errorf("the events ended with %v", err)
	}
	if log.Len() > 0 {
		t.Errorf("the log says: %s", log.String())
	}
}
