package model_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"throwbar.dev/throwbar/agent/history/historytest"
	"throwbar.dev/throwbar/agent/model"
	"throwbar.dev/throwbar/agent/model/modeltest"
)

// sound demands of a repaired history all that is promised of one.
func sound(tb testing.TB, p *historytest.Provider, broken []model.Message) {
	tb.Helper()
	got := model.Repair(broken)
	if err := model.Lint(got); err != nil {
		tb.Fatalf("Lint: %v\nof %+v", err, broken)
	}
	if again := model.Repair(got); !reflect.DeepEqual(again, got) {
		tb.Fatalf("Repair is not idempotent:\n%+v\n%+v", got, again)
	}
	if n := len(got); n > 0 && (got[n-1].Role == model.RoleUser || got[n-1].Role == model.RoleTool) {
		if err := p.Strict(got); err != nil {
			tb.Fatalf("the provider: %v\nof %+v", err, broken)
		}
	}
	var said []string
	for _, m := range got {
		if m.Role == model.RoleUser {
			said = append(said, m.Text)
		}
	}
	for _, m := range broken {
		if want := fit(m.Text); m.Role == model.RoleUser && strings.TrimSpace(want) != "" {
			if !slices.ContainsFunc(said, func(s string) bool { return strings.HasPrefix(s, want) }) {
				tb.Fatalf("the user's %q is lost", m.Text)
			}
		}
	}
	noInvention(tb, broken, got)
}

// fit is a text without what no later edge takes.
func fit(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "")
}

// noInvention demands that each result is one that was there, of a call with that id, or says that nothing is known.
func noInvention(tb testing.TB, broken, got []model.Message) {
	tb.Helper()
	there := map[string]bool{}
	calls := map[string]bool{}
	for _, m := range broken {
		if m.Role == model.RoleTool {
			there[fit(m.Text)] = true
		}
		for _, c := range m.Calls {
			calls[strings.TrimSpace(c.ID)] = true
		}
	}
	for _, m := range got {
		remark := strings.HasPrefix(m.Text, "(") || strings.Contains(m.Text, "\n(an image was here")
		if m.Role == model.RoleTool && m.Text != model.Interrupted && !there[m.Text] && !remark {
			tb.Fatalf("a result that was never there: %q", m.Text)
		}
		if m.Role == model.RoleAssistant && len(m.Calls) > 0 && len(calls) == 0 {
			tb.Fatal("a call that was never there")
		}
	}
}

func newProvider(tb testing.TB) *historytest.Provider {
	tb.Helper()
	p, err := historytest.NewProvider(modeltest.Config{Rule: modeltest.Text("ok")})
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

// TestEveryCutOfAConversationIsAccepted cuts realistic conversations at every message, and between the results of parallel
// calls: what an abort or a crash at that moment leaves, approvals that were pending included, since a call that waits for a
// person is one without a result.
func TestEveryCutOfAConversationIsAccepted(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	for seed := range uint64(4) {
		talk := historytest.Talk{Random: rand.New(rand.NewPCG(seed, 7))}
		whole := talk.Conversation(24)
		if err := model.Lint(whole); err != nil && !strings.Contains(err.Error(), "does not have") { // images on results
			t.Fatalf("the generator: %v", err)
		}
		for _, prefix := range historytest.Prefixes(whole) {
			sound(t, p, prefix)
			sound(t, p, append(prefix, model.Message{Role: model.RoleUser, Text: "go on"}))
		}
	}
}

// TestAnyMangledHistoryIsAccepted breaks conversations at random. More seeds: THROWBAR_HISTORY_SEEDS=200000.
func TestAnyMangledHistoryIsAccepted(t *testing.T) {
	t.Parallel()
	seeds := uint64(300)
	if n, err := strconv.ParseUint(os.Getenv("THROWBAR_HISTORY_SEEDS"), 10, 64); err == nil {
		seeds = n
	}
	p := newProvider(t)
	for seed := range seeds {
		r := rand.New(rand.NewPCG(seed, 8))
		talk := historytest.Talk{Random: r}
		sound(t, p, append(historytest.Mangle(r, talk.Conversation(4+r.IntN(16))), model.Message{Role: model.RoleUser, Text: "go on"}))
	}
}

// TestALateResultNeverAnswersAnotherCall lets a model use the same few ids in each round, stops calls, and lets results be
// lost, come late or come twice. Whatever is told of a call is what happened to it.
func TestALateResultNeverAnswersAnotherCall(t *testing.T) {
	t.Parallel()
	told := 0
	for seed := range uint64(4000) {
		r := rand.New(rand.NewPCG(seed, 9))
		truth := map[string]string{} // arguments of a call by its result
		var in, late []model.Message
		for round := range 2 + r.IntN(6) {
			in = append(in, model.Message{Role: model.RoleUser, Text: "go on"})
			answer, results := model.Message{Role: model.RoleAssistant}, []model.Message(nil)
			for i := range 1 + r.IntN(2) {
				id, name := fmt.Sprint("call_", i), fmt.Sprintf(`{"n":"%d.%d"}`, round, i)
				answer.Calls = append(answer.Calls, model.Call{ID: id, Name: "f", Arguments: name})
				truth["did "+name] = name
				results = append(results, model.Message{Role: model.RoleTool, CallID: id, Text: "did " + name})
			}
			in = append(in, answer)
			for _, m := range results {
				stopped := model.Message{Role: m.Role, CallID: m.CallID, Text: model.Interrupted}
				switch r.IntN(6) {
				case 0: // it comes later, or never
					late = append(late, m)
				case 1:
					in, late = append(in, stopped), append(late, m)
				case 2:
					in = append(in, m, m)
				case 3:
					in = append(in, m)
					late = append(late, m)
				default:
					in = append(in, m)
				}
				if len(late) > 0 && r.IntN(3) == 0 {
					at := r.IntN(len(late))
					in = append(in, late[at])
					late = slices.Delete(late, at, at+1)
				}
			}
		}
		calls := map[string]string{}
		for _, m := range model.Repair(in) {
			for _, c := range m.Calls {
				calls[c.ID] = c.Arguments
			}
			if m.Role != model.RoleTool || m.Text == model.Interrupted {
				continue
			}
			if told++; truth[m.Text] != calls[m.CallID] {
				t.Fatalf("seed %d: call %s is told %q:\n%+v", seed, calls[m.CallID], m.Text, in)
			}
		}
	}
	if told < 4000 {
		t.Errorf("only %d results are told", told)
	}
}

func FuzzRepair(f *testing.F) {
	f.Add(uint64(1), uint64(2), "call_1", "{}", "x")
	f.Add(uint64(3), uint64(4), "", `{"a":"\ud83d"}`, "\xed\xa0\xbd")
	f.Add(uint64(5), uint64(6), "i\x00", "\x00", " \x00")
	f.Fuzz(func(t *testing.T, seed, mangling uint64, id, arguments, text string) {
		r := rand.New(rand.NewPCG(seed, mangling))
		talk := historytest.Talk{Random: r}
		in := historytest.Mangle(r, talk.Conversation(6))
		in = append(in,
			model.Message{Role: model.RoleUser, Text: text},
			model.Message{Role: model.RoleAssistant, Text: text, Calls: []model.Call{{ID: id, Name: text, Arguments: arguments}}},
			model.Message{Role: model.RoleTool, CallID: id, Text: text, Images: []string{text}})
		sound(t, newProvider(t), in)
	})
}
