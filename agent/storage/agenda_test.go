package storage_test

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"throwbar.dev/throwbar/agent/conversation"
	"throwbar.dev/throwbar/agent/model"
	"throwbar.dev/throwbar/agent/storage"
	"throwbar.dev/throwbar/agent/turn"
	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
)

func TestWhatAConversationIsAboutToDo(t *testing.T) {
	t.Parallel()
	onEach(t, testWhatAConversationIsAboutToDo)
}

func testWhatAConversationIsAboutToDo(t *testing.T, s *storage.Storage) {
	c := conversation.Conversation{ID: "abcd-1", Workspace: "w", Open: true, CreatedAt: at(1), UpdatedAt: at(1), Settings: &agentv1.ConversationSettings{}}
	row := conversation.Turn{
		ID: "t1", Conversation: c.ID, State: conversation.TurnRunning, Durable: true, Speaker: agentv1.Speaker_SPEAKER_PERSON, Chain: "c1",
		Choice: &agentv1.ModelChoice{Models: []string{"m"}}, StartedAt: at(2),
	}
	letter := func(id string) conversation.Letter {
		return conversation.Letter{
			Workspace: "w", ID: id, Conversation: c.ID, State: conversation.LetterWaiting, Mode: agentv1.SendMode_SEND_MODE_STEER,
			Sender: &agentv1.Sender{Speaker: agentv1.Speaker_SPEAKER_AGENT, Title: "x\x00"}, Chain: "c1", Choice: row.Choice, Text: "say\x00 " + id,
			Delivery: agentv1.Delivery_DELIVERY_QUEUED, Sequence: 4, CreatedAt: at(3),
		}
	}
	chain := conversation.Chain{ID: "c1", Workspace: "w", Root: c.ID, Authority: "token", Left: 1, CreatedAt: at(2)}
	put := func(change conversation.Change, want error) {
		t.Helper()
		change.Conversation = c
		if err := s.Append(t.Context(), change); !errors.Is(err, want) {
			t.Fatalf("%v, want %v", err, want)
		}
	}
	put(conversation.Change{New: true, Chain: &chain, Begin: &row, Letters: []conversation.Move{
		{Letter: letter("m1"), New: true}, {Letter: letter("m2"), New: true},
	}, Outputs: []turn.Output{{CallID: "call", Text: "whole\x00"}}, Messages: []model.Message{{Role: model.RoleUser, Text: "old"}}}, nil)

	state, err := s.State(t.Context(), "w", c.ID)
	if err != nil || !reflect.DeepEqual(*state.Running, row) && !proto.Equal(state.Running.Choice, row.Choice) || len(state.Waiting) != 2 {
		t.Fatalf("%+v, %v", state, err)
	}
	for i, id := range []string{"m1", "m2"} {
		want := letter(id)
		want.N = int64(i + 1)
		got := state.Waiting[i]
		if !proto.Equal(got.Sender, want.Sender) || !proto.Equal(got.Choice, want.Choice) {
			t.Errorf("%+v", got)
		}
		got.Sender, got.Choice, want.Sender, want.Choice = nil, nil, nil, nil
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
	// Nothing of a change is stored if a part of it cannot be.
	put(conversation.Change{Letters: []conversation.Move{{Letter: letter("m3"), New: true}, {Letter: letter("m1"), New: true}}}, conversation.ErrKnown)
	if _, err := s.Letter(t.Context(), "w", "m3"); !errors.Is(err, conversation.ErrNoRow) {
		t.Errorf("half a change: %v", err)
	}
	second := row
	second.ID = "t2"
	if err := s.Append(t.Context(), conversation.Change{Conversation: c, Begin: &second}); err == nil {
		t.Error("two turns run")
	}
	// The end of one and the beginning of the next are one step, which its chain pays.
	ended, taken := row, letter("m1")
	ended.State, ended.End, ended.EndedAt, ended.Spent = conversation.TurnEnded, agentv1.TurnEnd_TURN_END_LIMIT, at(9), turn.Spent{Rounds: 3, Tokens: 4, Millis: 5}
	taken.State, taken.Turn, taken.Text = conversation.LetterTaken, "t2", ""
	next := conversation.Change{Turn: &ended, Begin: &second, Spend: "c1", Letters: []conversation.Move{{Letter: taken}}}
	put(next, nil)
	third := row
	third.ID = "t3"
	put(conversation.Change{Begin: &third, Spend: "c1"}, conversation.ErrExhausted)
	if got, err := s.Chain(t.Context(), "w", "t2"); err != nil || got.Left != 0 || got.Authority != "token" {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := s.Chain(t.Context(), "other", "t2"); !errors.Is(err, conversation.ErrNoRow) {
		t.Errorf("foreign: %v", err)
	}
	if err := s.Append(t.Context(), conversation.Change{Conversation: c, Turn: &ended}); err == nil {
		t.Error("a turn ended twice")
	}
	if err := s.Append(t.Context(), conversation.Change{Conversation: c, Letters: []conversation.Move{{Letter: taken}}}); err == nil {
		t.Error("a message was taken twice")
	}
	if got, err := s.Letter(t.Context(), "w", "m1"); err != nil || got.State != conversation.LetterTaken || got.Turn != "t2" || got.Text != "" || got.Delivery != taken.Delivery {
		t.Errorf("%+v, %v", got, err)
	}
	// The history begins anew; an output that comes again takes the place of the first.
	put(conversation.Change{Restart: true, Messages: []model.Message{{Role: model.RoleUser, Text: "summary"}}, Outputs: []turn.Output{{CallID: "call", Text: "again"}}}, nil)
	if got, err := s.Messages(t.Context(), c.ID); err != nil || len(got) != 1 || got[0].Text != "summary" {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := s.Output(t.Context(), c.ID, "call"); err != nil || got != "again" {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := s.Output(t.Context(), c.ID, "other"); !errors.Is(err, conversation.ErrNoRow) {
		t.Errorf("no output: %v", err)
	}
	if refs, err := s.Unfinished(t.Context()); err != nil || !slices.Equal(refs, []conversation.Ref{{Workspace: "w", ID: c.ID}}) {
		t.Errorf("%v, %v", refs, err)
	}
}

// The states in Go, in the tables and in the documentation are the same.
func TestTheStatesAreThoseOfTheTables(t *testing.T) {
	t.Parallel()
	turns, letters := map[string][]string{}, map[string][]string{}
	for from, to := range conversation.TurnState("").Transitions() {
		turns[string(from)] = nil
		for _, state := range to {
			turns[string(from)] = append(turns[string(from)], string(state))
		}
	}
	for from, to := range conversation.LetterState("").Transitions() {
		letters[string(from)] = nil
		for _, state := range to {
			letters[string(from)] = append(letters[string(from)], string(state))
		}
	}
	docs, err := os.ReadFile("../../docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	for table, want := range map[string]map[string][]string{"agt_turn": turns, "agt_queue": letters} {
		for _, engine := range []string{"sqlite", "postgres"} {
			sql, err := os.ReadFile("../../store/migrations/" + engine + "/00007_agents.sql")
			if err != nil {
				t.Fatal(err)
			}
			m := regexp.MustCompile(table + `_state check \(state in \(([^)]*)\)\)`).FindStringSubmatch(string(sql))
			if m == nil {
				t.Fatalf("%s has no states in %s", table, engine)
			}
			states := strings.Split(strings.ReplaceAll(m[1], "'", ""), ", ")
			if len(states) != len(want) {
				t.Errorf("%s of %s has %q, want %v", table, engine, states, want)
			}
			for _, state := range states {
				if _, ok := want[state]; !ok {
					t.Errorf("%s of %s has the state %s", table, engine, state)
				}
			}
		}
		for from, to := range want {
			for _, state := range to {
				if line := fmt.Sprintf("`%s` → `%s`", from, state); !strings.Contains(string(docs), line) {
					t.Errorf("docs/architecture.md does not say %s of %s", line, table)
				}
			}
		}
	}
}
