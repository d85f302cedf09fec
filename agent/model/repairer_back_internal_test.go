package model

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/http"
	"testing"
)

// returned is what a Repairer and a client gave once, and what was in it.
type returned struct {
	messages      []Message
	said          string
	wire, written []byte
}

// good adds a turn without a fault.
func (g *grower) good() {
	answer := Message{Role: RoleAssistant}
	var results []Message
	for range 1 + g.IntN(2) {
		g.calls++
		id := fmt.Sprint("good_", g.calls)
		answer.Calls = append(answer.Calls, Call{ID: id, Name: "f", Arguments: "{}"})
		results = append(results, Message{Role: RoleTool, CallID: id, Text: fmt.Sprint("did ", g.calls)})
	}
	g.messages = append(append(append(g.messages, Message{Role: RoleUser, Text: "do"}), answer), results...)
}

// TestAChangeNearTheEndIsLookedAtAlone lets histories grow in which something near the end becomes another, as when an old result is
// cut. What is repaired and written down is what it is without a memory, byte for byte; what was given out before stays as it
// was; what is before the change is not looked at again; and no more is kept than of a history that was never another.
func TestAChangeNearTheEndIsLookedAtAlone(t *testing.T) {
	t.Parallel()
	c, err := New(Config{BaseURL: "http://h/v1", Model: "m", HTTPClient: http.DefaultClient})
	if err != nil {
		t.Fatal(err)
	}
	written := func(messages []Message, known *Repairer) []byte {
		out, err := c.messages(Request{Messages: messages, Known: known})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	back, mended, kept := 0, 0, 0
	for seed := range uint64(40) {
		g := grower{Rand: rand.New(rand.NewPCG(seed, 31))}
		var r Repairer
		var given []returned
		for step := range 30 {
			if g.IntN(12) == 0 {
				g.step()
			} else {
				g.good()
			}
			n := len(g.messages)
			changed := n > 0 && g.IntN(2) == 0
			if changed {
				g.messages = deepCopy(g.messages)
				m := &g.messages[n-1-g.IntN(min(n, 6))]
				m.Text += " (cut)"
				if len(m.Calls) > 0 && g.IntN(4) == 0 {
					m.Calls[0].Extra = []byte([]string{`{"throwbar_from":"http://h/v1"}`, `{"throwbar_from":"http://other/v1"}`}[g.IntN(2)])
				}
			}
			was, wired := r.lint, r.wired()
			got, want := r.Repair(g.messages), Repair(deepCopy(g.messages))
			if a, b := fmt.Sprintf("%q", got), fmt.Sprintf("%q", want); a != b {
				t.Fatalf("seed %d, step %d: repaired to\n%s\nwant\n%s", seed, step, a, b)
			}
			if r.lint == was && changed {
				back++
				if r.made {
					mended++
				}
				if r.wired() > 0 {
					kept++
				} else if wired > 0 {
					t.Fatalf("seed %d, step %d: what was written down is written down again", seed, step)
				}
			}
			wire := written(got, &r)
			if want := written(want, nil); !bytes.Equal(wire, want) {
				t.Fatalf("seed %d, step %d: written down as\n%s\nwant\n%s", seed, step, wire, want)
			}
			given = append(given, returned{got, fmt.Sprintf("%q", got), wire, bytes.Clone(wire)})
			var fresh Repairer
			written(fresh.Repair(g.messages), &fresh)
			if r.Size() > 2*fresh.Size()+4096 {
				t.Fatalf("seed %d, step %d: %d bytes are kept, and %d of the same history at once", seed, step, r.Size(), fresh.Size())
			}
		}
		for i, was := range given {
			if fmt.Sprintf("%q", was.messages) != was.said || !bytes.Equal(was.wire, was.written) {
				t.Fatalf("seed %d: what was given out at step %d is another now", seed, i)
			}
		}
	}
	t.Logf("%d of 1200 went back, %d of them after faults, %d to what was written down", back, mended, kept)
	if back < 150 || mended < 50 || kept < 80 {
		t.Errorf("%d of 1200 went back, %d of them after faults, %d to what was written down", back, mended, kept)
	}
}

// TestGoingBackFromAnywhere takes a history that is good, makes each of its messages another, one after the other, and lets it
// end there: what comes of it is what comes of it without a memory.
func TestGoingBackFromAnywhere(t *testing.T) {
	t.Parallel()
	call := func(ids ...string) Message {
		m := Message{Role: RoleAssistant}
		for _, id := range ids {
			m.Calls = append(m.Calls, Call{ID: id, Name: "f", Arguments: "{}"})
		}
		return m
	}
	whole := []Message{
		{Role: RoleSystem, Text: "rules"}, {Role: RoleUser, Text: "do"}, call("a", "b"),
		{Role: RoleTool, CallID: "a", Text: "1"}, {Role: RoleTool, CallID: "b", Text: "2"},
		call("c"), {Role: RoleTool, CallID: "c", Text: "3"}, {Role: RoleAssistant, Text: "done"}, {Role: RoleUser, Text: "more"},
	}
	endings := [][]Message{
		nil, {{Role: RoleUser, Text: "other"}}, {{Role: RoleTool, CallID: "b", Text: "another"}}, {call("c")}, {{Role: RoleSystem, Text: "more rules"}},
		{call("b"), {Role: RoleTool, CallID: "b", Text: "again"}}, {{Role: RoleAssistant, Text: "said"}},
	}
	for _, first := range [][]Message{nil, {{Role: RoleTool, CallID: "lost", Text: "0"}}} { // without a fault, and with one
		whole := append(deepCopy(first), whole...)
		for at := range whole {
			for i, ending := range endings {
				var r Repairer
				r.Repair(whole[:len(whole)/2])
				r.Repair(whole)
				for _, history := range [][]Message{append(deepCopy(whole[:at]), ending...), whole} { // there, and on again
					if got, want := fmt.Sprintf("%q", r.Repair(history)), fmt.Sprintf("%q", Repair(deepCopy(history))); got != want {
						t.Errorf("%d messages, then ending %d: repaired to\n%s\nwant\n%s", at, i, got, want)
					}
				}
			}
		}
	}
}
