package history_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"throwbar.dev/throwbar/agent/history"
	"throwbar.dev/throwbar/agent/history/historytest"
	"throwbar.dev/throwbar/agent/model"
	"throwbar.dev/throwbar/agent/model/modeltest"
)

func user(text string) model.Message { return model.Message{Role: model.RoleUser, Text: text} }

func system(text string) model.Message { return model.Message{Role: model.RoleSystem, Text: text} }

func says(text string, calls ...string) model.Message {
	m := model.Message{Role: model.RoleAssistant, Text: text}
	for _, id := range calls {
		m.Calls = append(m.Calls, model.Call{ID: id, Name: "searchTabs", Arguments: `{"query":"x"}`})
	}
	return m
}

func answers(id, text string, images ...string) model.Message {
	return model.Message{Role: model.RoleTool, CallID: id, Text: text, Images: images}
}

func newProvider(tb testing.TB, config modeltest.Config) *historytest.Provider {
	tb.Helper()
	if config.Rule == nil {
		config.Rule = modeltest.Text("ok")
	}
	p, err := historytest.NewProvider(config)
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

func TestFit(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name     string
		in, want []model.Message
	}{
		{"nothing", nil, nil},
		{"no fault", []model.Message{system("s"), user("a"), says("b", "1"), answers("1", "x"), says("c"), user("d")},
			[]model.Message{system("s"), user("a"), says("b", "1"), answers("1", "x"), says("c"), user("d")}},
		{"several messages waited", []model.Message{user("a"), says("b"), user("c"), user("d"), user("e")},
			[]model.Message{user("a"), says("b"), user("c\n\n(Next message:)\nd\n\n(Next message:)\ne")}},
		{"a turn without an answer", []model.Message{user("a"), user("b")}, []model.Message{user("a\n\n(Next message:)\nb")}},
		{"an interrupted call, and nobody asks", []model.Message{user("a"), says("", "1")}, []model.Message{user("a"), says("", "1"), answers("1", model.Interrupted)}},
		{"an answer that was cut off, and nobody asks", []model.Message{user("a"), says("b")}, []model.Message{user("a"), says("b"), user("(Go on from here.)")}},
		{"no user", []model.Message{says("b"), user("c")}, []model.Message{user("(The conversation goes on from here.)"), says("b"), user("c")}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			before := slices.Clone(tt.in)
			got, plan := history.Fit(tt.in, history.Limits{})
			if !reflect.DeepEqual(got, tt.want) && len(got)+len(tt.want) > 0 {
				t.Errorf("got\n%+v\nwant\n%+v", got, tt.want)
			}
			if !reflect.DeepEqual(tt.in, before) {
				t.Error("Fit changed its argument")
			}
			if plan.Over || plan.Tokens != new(history.Estimator).Messages(got) {
				t.Errorf("%+v", plan)
			}
		})
	}
}

func TestImagesThatAModelSees(t *testing.T) {
	t.Parallel()
	image := func(n int) string {
		return "data:image/png;base64," + strings.Repeat("A", 4*n)
	}
	in := []model.Message{user("show me"), says("", "1", "2"), answers("1", "the first", image(1)), answers("2", "", image(2)), says("there")}
	for i := range 7 {
		id := fmt.Sprint("m", i)
		in = append(in, user("more"), says("", id), answers(id, "more", image(3+i)))
	}
	shown, plan := history.Fit(in, history.Limits{Images: true})
	if plan.Images != 6 || plan.OfImages != 9 {
		t.Errorf("%+v", plan)
	}
	var seen []string
	for _, m := range shown {
		if seen = append(seen, m.Images...); len(m.Images) > 0 && m.Role != model.RoleUser {
			t.Errorf("an image in a message of %s", m.Role)
		}
	}
	if want := []string{image(4), image(5), image(6), image(7), image(8), image(9)}; !slices.Equal(seen, want) {
		t.Errorf("%d images, not the newest ones", len(seen))
	}
	if shown[2].Text != "the first\n(an image was here; only the newest ones are shown)" || shown[3].Text != "(an image was here; only the newest ones are shown)" {
		t.Errorf("%+v", shown[2:4])
	}
	blind, plan := history.Fit(in, history.Limits{})
	if plan.Images != 0 || plan.OfImages != 9 || len(blind) >= len(shown) {
		t.Errorf("%+v", plan)
	}
	for _, m := range blind {
		if len(m.Images) > 0 {
			t.Error("an image for a model that cannot see")
		}
	}
	if blind[2].Text != "the first\n(an image was here, which this model cannot see)" {
		t.Errorf("%+v", blind[2])
	}
	p := newProvider(t, modeltest.Config{})
	for _, messages := range [][]model.Message{shown, blind} {
		if err := p.Strict(messages); err != nil {
			t.Error(err)
		}
	}
}

// TestNoImageIsInAText is situation E: nothing of an image gets into a text, however large it is or how many there are.
func TestNoImageIsInAText(t *testing.T) {
	t.Parallel()
	big := "data:image/png;base64," + strings.Repeat("QUJD", 1<<20)
	half := "data:image/png;base64," + strings.Repeat("QUJD", 600<<10)
	in := []model.Message{user("x"), says("", "1"), answers("1", "kept", big, half, half, half)}
	shown, plan := history.Fit(in, history.Limits{Images: true})
	if plan.Images != 2 || plan.OfImages != 4 {
		t.Errorf("%+v", plan)
	}
	for _, m := range shown {
		if strings.Contains(m.Text, "QUJD") || strings.Contains(m.Text, "base64") {
			t.Errorf("an image in the text of %s", m.Role)
		}
	}
	if !strings.HasPrefix(shown[2].Text, "kept\n") || !strings.Contains(shown[2].Text, "4.0 MB") {
		t.Errorf("%q", shown[2].Text)
	}
	if err := newProvider(t, modeltest.Config{}).Strict(shown); err != nil {
		t.Error(err)
	}
}

func TestOldResultsAreCutFirst(t *testing.T) {
	t.Parallel()
	long := `{"ok":true,"mark":"abcdef","data":"` + strings.Repeat("word ", 3000) + `","end":"abcdef"}`
	var in []model.Message
	for i := range 6 {
		id := fmt.Sprint("c", i)
		in = append(in, user("go on"), says("", id), answers(id, long))
	}
	plenty, plan := history.Fit(in, history.Limits{Context: 200_000})
	if plan.Shortened != 0 || !reflect.DeepEqual(plenty, in) {
		t.Errorf("there is room, and %d results were cut", plan.Shortened)
	}
	scarce, plan := history.Fit(in, history.Limits{Context: 30_000})
	if plan.Shortened != 5 || plan.Over {
		t.Errorf("%+v", plan)
	}
	if scarce[len(scarce)-1].Text != long {
		t.Error("the newest result was cut")
	}
	old := scarce[2].Text
	if len(old) > 1600 || !strings.HasPrefix(old, `{"ok":true,"mark":"abcdef"`) || !strings.HasSuffix(old, `"end":"abcdef"}`) || !strings.Contains(old, "bytes left out") {
		t.Errorf("%q", old)
	}
	// The next request begins as this one does, so that the provider's cache is of use.
	next, _ := history.Fit(append(slices.Clone(in), says("done"), user("and now?")), history.Limits{Context: 30_000})
	if !reflect.DeepEqual(next[:len(scarce)], scarce) {
		t.Error("what was shown before is shown differently now")
	}
}

// TestAnythingFits breaks conversations at random: whatever they are, what a model is shown of them is accepted.
func TestAnythingFits(t *testing.T) {
	t.Parallel()
	p := newProvider(t, modeltest.Config{})
	for seed := range uint64(150) {
		r := rand.New(rand.NewPCG(seed, 3))
		talk := historytest.Talk{Random: r, Long: 4000}
		in := historytest.Mangle(r, talk.Conversation(3+r.IntN(20)))
		if r.IntN(2) == 0 {
			in = append([]model.Message{system("rules")}, in...)
		}
		limits := history.Limits{Context: []int{0, 3000, 30_000}[r.IntN(3)], Images: r.IntN(2) == 0}
		shown, _ := history.Fit(in, limits)
		if len(shown) == 0 {
			continue
		}
		if err := model.Lint(shown); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if err := p.Strict(shown); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for i := 1; i < len(shown); i++ {
			if shown[i].Role == model.RoleUser && shown[i-1].Role == model.RoleUser {
				t.Fatalf("seed %d: two messages of the user in a row", seed)
			}
		}
		if again, _ := history.Fit(shown, limits); !reflect.DeepEqual(again, shown) {
			t.Fatalf("seed %d: not idempotent", seed)
		}
	}
}
