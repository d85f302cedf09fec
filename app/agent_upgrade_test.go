package app_test

import (
	"database/sql"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/pressly/goose/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"throwbar.dev/throwbar/agent/model/modeltest"
	"throwbar.dev/throwbar/app"
	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
	"throwbar.dev/throwbar/gen/go/throwbar/agent/v1/agentv1connect"
	"throwbar.dev/throwbar/server/auth"
	"throwbar.dev/throwbar/store/storetest"
)

// Conversations that a server wrote before it kept turns, queues and chains are all there, and one whose turn that server
// did not end answers the next message.
func TestConversationsFromBeforeTurnsWereKept(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, cfg app.Config) {
		const before = 6
		cfg.DataDir = t.TempDir()
		fillOld(t, cfg, before)
		s, scripted := withModel(t, cfg, modeltest.Text("I do not know whether it opened."))
		agents := agentv1connect.NewAgentServiceClient(s.Client(t, s.Owner, nil))
		list, err := agents.ListConversations(t.Context(), &agentv1.ListConversationsRequest{})
		if err != nil || len(list.GetConversations()) != 2 {
			t.Fatalf("%v, %v", list, err)
		}
		for _, c := range list.GetConversations() {
			if c.GetHandle() == "" || c.GetArchived() || c.GetWakesLeft() != 6 || c.GetStatus() == agentv1.ConversationStatus_CONVERSATION_STATUS_RUNNING {
				t.Errorf("%v", c)
			}
		}
		id := oldOpen
		events := say(t, agents, &agentv1.ChatRequest{ConversationId: &id, Message: "go on"})
		if ended(events) != agentv1.TurnEnd_TURN_END_ANSWERED {
			t.Fatalf("%v", events)
		}
		if got := scripted.Last().Result("openTab"); got == "" {
			t.Error("the call has no result")
		}
		all, err := agents.ListEvents(t.Context(), &agentv1.ListEventsRequest{ConversationId: oldOpen})
		if err != nil {
			t.Fatal(err)
		}
		for i, e := range all.GetEvents() {
			if e.GetSequence() != uint64(i+1) {
				t.Errorf("event %d has number %d", i+1, e.GetSequence())
			}
		}
		if got, err := agents.GetConversation(t.Context(), &agentv1.GetConversationRequest{ConversationId: oldDone[:4]}); err != nil ||
			got.GetConversation().GetSequence() != 1 || got.GetConversation().GetTitle() != "done" {
			t.Errorf("%v, %v", got, err)
		}
	})
}

const (
	oldOpen = "11111111-0000-4000-8000-000000000000" // its turn was cut off
	oldDone = "22222222-0000-4000-8000-000000000000"
)

// fillOld makes a database of an older version with two conversations.
func fillOld(t *testing.T, cfg app.Config, version int64) {
	t.Helper()
	dialect, folder := goose.DialectSQLite3, "sqlite"
	var pool *sql.DB
	if cfg.Store.URL != "" {
		dialect, folder, pool = goose.DialectPostgres, "postgres", storetest.Open(t, cfg.Store.URL)
	} else {
		var err error
		if pool, err = sql.Open("sqlite3", filepath.Join(cfg.DataDir, "throwbar.db")); err != nil {
			t.Fatal(err)
		}
	}
	provider, err := goose.NewProvider(dialect, pool, os.DirFS(filepath.Join("..", "store", "migrations", folder)), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := provider.UpTo(t.Context(), version); err != nil {
		t.Fatal(err)
	}
	exec := func(query string, args ...any) {
		t.Helper()
		if _, err := pool.ExecContext(t.Context(), query, args...); err != nil {
			t.Fatal(err)
		}
	}
	now := time.Now().UnixMilli()
	for id, title := range map[string]string{oldOpen: "open", oldDone: "done"} {
		exec("insert into agt_conversation (id, workspace, title, open, created_at, updated_at) values ($1, $2, $3, true, $4, $4)",
			id, auth.DefaultWorkspace, title, now)
	}
	event := func(id string, seq int64, e *agentv1.Event) {
		t.Helper()
		e.Sequence, e.Time, e.ConversationId, e.TurnId = uint64(seq), timestamppb.Now(), id, "t"
		body, err := proto.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		exec("insert into agt_event (conversation_id, seq, time, turn_id, body) values ($1, $2, $3, 't', $4)", id, seq, now, body)
	}
	event(oldOpen, 1, &agentv1.Event{Kind: &agentv1.Event_TurnStarted{TurnStarted: &agentv1.TurnStarted{Model: "old"}}})
	event(oldOpen, 2, &agentv1.Event{Kind: &agentv1.Event_Message{Message: &agentv1.Message{Role: agentv1.Role_ROLE_USER, Text: "open it"}}})
	event(oldOpen, 3, &agentv1.Event{Kind: &agentv1.Event_ToolCall{ToolCall: &agentv1.ToolCall{CallId: "c1", Name: "openTab", Arguments: "{}"}}})
	event(oldDone, 1, &agentv1.Event{Kind: &agentv1.Event_TurnEnded{TurnEnded: &agentv1.TurnEnded{Reason: agentv1.TurnEnd_TURN_END_ANSWERED}}})
	for n, body := range []string{
		`{"role":"user","text":"open it"}`,
		`{"role":"assistant","calls":[{"id":"c1","name":"openTab","arguments":"{\"deviceId\":\"d\",\"url\":\"https://a.example/\"}"}]}`,
	} {
		exec("insert into agt_message (conversation_id, n, body) values ($1, $2, $3)", oldOpen, n+1, []byte(body))
	}
	if cfg.Store.URL == "" {
		if err := pool.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
