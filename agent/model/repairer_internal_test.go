package model

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/http"
	"reflect"
	"slices"
	"testing"
)

// grower makes a history that grows as those of turns do, and now and then as none should.
type grower struct {
	*rand.Rand
	calls    int
	late     []Message // results that have not come
	messages []Message
}

// step changes the history.
func (g *grower) step() {
	switch n := len(g.messages); {
	case n > 0 && g.IntN(16) == 0: // it begins anew, as after a summary
		g.messages = []Message{{Role: RoleUser, Text: "summary"}}
	case n > 0 && g.IntN(10) == 0:
		g.messages = g.messages[:g.IntN(n)]
	case n > 0 && g.IntN(10) == 0:
		g.other(n)
	case g.IntN(6) == 0:
		g.messages = append(g.messages, randomHistory(g.Rand)...)
	default:
		g.turn()
	}
}

// other makes something of before another.
func (g *grower) other(n int) {
	g.messages = deepCopy(g.messages)
	m := &g.messages[g.IntN(n)]
	switch g.IntN(5) {
	case 0:
		m.Text += "x"
	case 1:
		m.Images = append(m.Images, png)
	case 2:
		m.Calls = append(m.Calls, Call{ID: "1", Name: "f", Arguments: "{}"})
	case 3:
		m.Role = RoleUser
	default:
		*m = Message{Role: RoleAssistant, Text: "a", Reasoning: "r"}
	}
}

// turn adds a question, and an answer with calls and results, of which some come late, twice, never or under an old id.
func (g *grower) turn() {
	g.messages = append(g.messages, Message{Role: RoleUser, Text: fmt.Sprint("do ", g.calls)})
	if g.IntN(8) == 0 {
		g.messages = append(g.messages, Message{Role: RoleUser, Text: []string{"", " ", "look"}[g.IntN(3)], Images: []string{png}})
	}
	answer := Message{Role: RoleAssistant, Reasoning: []string{"", "why"}[g.IntN(2)]}
	var results []Message
	for range 1 + g.IntN(3) {
		g.calls++
		id := fmt.Sprint("call_", g.calls)
		if g.IntN(8) == 0 {
			id = []string{"1", fmt.Sprint("call_", g.IntN(g.calls))}[g.IntN(2)]
		}
		answer.Calls = append(answer.Calls, Call{ID: id, Name: "f", Arguments: fmt.Sprintf(`{"n":%d}`, g.calls)})
		results = append(results, Message{Role: RoleTool, CallID: id, Text: fmt.Sprint("did ", g.calls)})
	}
	switch g.IntN(12) {
	case 0:
		g.late, results = append(g.late, results[0]), results[1:]
	case 1:
		g.Shuffle(len(results), func(i, j int) { results[i], results[j] = results[j], results[i] })
	case 2:
		results[0].Images = []string{png}
	case 3:
		results = append(results, g.late...)
	case 4:
		results = append(results, results[0])
	}
	g.messages = append(append(g.messages, answer), results...)
}

// TestWhatIsRememberedChangesNothing lets histories grow, good ones and bad ones, and repairs them with and without a memory of
// how they were before: the requests are the same, byte for byte. The memory is of use: good messages after whatever history
// are not looked at together with that again.
func TestWhatIsRememberedChangesNothing(t *testing.T) {
	t.Parallel()
	c, err := New(Config{BaseURL: "http://h/v1", Model: "m", HTTPClient: http.DefaultClient, Switches: Switches{ReasoningEcho: EchoAlways}})
	if err != nil {
		t.Fatal(err)
	}
	request := func(messages []Message) []byte {
		body, err := c.encode(Request{Messages: append(slices.Clip(messages), Message{Role: RoleUser, Text: "end"})})
		if err != nil {
			t.Fatal(err)
		}
		return body
	}
	fast, mended := 0, 0
	for seed := range uint64(200) {
		g := grower{Rand: rand.New(rand.NewPCG(seed, 11))}
		var r Repairer
		for step := range 30 {
			g.step()
			was := r.lint
			before := deepCopy(g.messages)
			got, want := r.Repair(g.messages), Repair(before)
			if err := Lint(got); err != nil {
				t.Fatalf("seed %d, step %d: %v", seed, step, err)
			}
			if a, b := request(got), request(want); !bytes.Equal(a, b) {
				t.Fatalf("seed %d, step %d:\n%s\nwant\n%s", seed, step, a, b)
			}
			if r.lint == was {
				fast++
				if r.made {
					mended++
				}
			}
			// Whose memory it was does what it likes with it.
			if n := len(g.messages); n > 0 && g.IntN(3) == 0 {
				whole := deepCopy(g.messages)
				m := &g.messages[g.IntN(n)]
				if g.IntN(2) == 0 {
					m.Text = "spoilt"
				}
				for i := range m.Calls {
					m.Calls[i] = Call{ID: "spoilt"}
				}
				for i := range m.Images {
					m.Images[i] = "spoilt"
				}
				if g.IntN(2) == 0 { // and shows it again, or what was there before
					g.messages = whole
				}
			}
		}
	}
	t.Logf("%d of 6000 went on, %d of them after faults", fast, mended)
	if fast < 1000 || mended < 500 {
		t.Errorf("%d went on, %d of them after faults", fast, mended)
	}
}

// TestOnlyTheSameMessageIsEqual changes each field of a message.
func TestOnlyTheSameMessageIsEqual(t *testing.T) {
	t.Parallel()
	whole := func() Message {
		return Message{Role: RoleAssistant, Text: "t", Images: []string{"i"}, Reasoning: "r", Profile: "strict", CallID: "c", Calls: []Call{
			{ID: "1", Name: "n", Arguments: "{}", Extra: []byte(`{"e":1}`)},
		}}
	}
	if m, c := reflect.TypeFor[Message]().NumField(), reflect.TypeFor[Call]().NumField(); m != 7 || c != 4 {
		t.Errorf("a message has %d fields and a call %d: has Equal heard of all?", m, c)
	}
	one, other := whole(), whole()
	if !one.Equal(&other) {
		t.Error("the same is not equal")
	}
	for i, change := range []func(*Message){
		func(m *Message) { m.Role = RoleUser }, func(m *Message) { m.Text = "u" }, func(m *Message) { m.Images[0] = "j" },
		func(m *Message) { m.Images = nil }, func(m *Message) { m.Reasoning = "" }, func(m *Message) { m.CallID = "d" },
		func(m *Message) { m.Profile = "" },
		func(m *Message) { m.Calls = nil }, func(m *Message) { m.Calls = append(m.Calls, m.Calls[0]) }, func(m *Message) { m.Calls[0].ID = "2" },
		func(m *Message) { m.Calls[0].Name = "o" }, func(m *Message) { m.Calls[0].Arguments = "{ }" }, func(m *Message) { m.Calls[0].Extra[5] = '2' },
	} {
		other := whole()
		if change(&other); one.Equal(&other) || other.Equal(&one) {
			t.Errorf("change %d is not seen", i)
		}
	}
}
