package tool_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"throwbar.dev/throwbar/agent/tool"
	"throwbar.dev/throwbar/agent/tool/tooltest"
	"throwbar.dev/throwbar/gen"
)

// has are the names of what an agent has.
func has(set *tool.Set, a tool.Access) []string {
	var out []string
	for _, t := range set.View(a).Tools() {
		out = append(out, t.Name)
	}
	return out
}

func TestAccess(t *testing.T) {
	t.Parallel()
	set := load(t, gen.Descriptors)
	var ordinary, reads, granted []string
	for _, x := range set.Tools() {
		switch {
		case x.Entry.Facility.GetGranted():
			granted = append(granted, x.Name)
		case x.Reads():
			reads = append(reads, x.Name)
			ordinary = append(ordinary, x.Name)
		default:
			ordinary = append(ordinary, x.Name)
		}
	}
	if len(granted) != 4 || len(ordinary) != 23 {
		t.Fatalf("granted %q, others %q", granted, ordinary)
	}
	without := func(list []string, names ...string) []string {
		return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return slices.Contains(names, s) })
	}
	for _, row := range []struct {
		name   string
		access tool.Access
		want   []string
	}{
		{"nothing said", tool.Access{}, ordinary},
		{"one granted, and only that", tool.Access{Extra: []string{"readConversation"}}, append(slices.Clone(ordinary), "readConversation")},
		{"the other one, by an older name", tool.Access{Extra: []string{"send_to_tab"}}, append(slices.Clone(ordinary), "sendToConversation")},
		{"both", tool.Access{Extra: []string{"sendToConversation", "readConversation"}}, append(slices.Clone(ordinary), "readConversation", "sendToConversation")},
		{"all covers no granted one", tool.Access{Only: []string{"all"}}, ordinary},
		{"nor does its family", tool.Access{Only: []string{"facility"}}, []string{"findTools", "undo"}},
		{"nor its name in the wrong list", tool.Access{Only: []string{"sendToConversation"}}, []string{"findTools"}},
		{"read", tool.Access{Only: []string{"read"}}, reads},
		{"act", tool.Access{Only: []string{"act"}}, append(without(ordinary, without(reads, "findTools")...), []string{}...)},
		{"a family", tool.Access{Only: []string{"devices"}}, []string{"listDevices", "findTools"}},
		{"names, older ones too", tool.Access{Only: []string{"tabClose", "listTabs", "undo"}}, []string{"listTabs", "closeTabs", "findTools", "undo"}},
		{"none", tool.Access{Only: []string{"none"}}, []string{"findTools"}},
		{"denied", tool.Access{Denied: []string{"undo", "tabClose"}}, without(ordinary, "undo", "closeTabs")},
		{"a group denied", tool.Access{Denied: []string{"act"}}, reads},
		{"a group denied covers what is granted", tool.Access{Extra: []string{"sendToConversation", "readConversation"}, Denied: []string{"act"}},
			append(slices.Clone(reads), "readConversation")},
		{"denied wins over named", tool.Access{Only: []string{"listTabs"}, Denied: []string{"listTabs"}}, []string{"findTools"}},
		{"denied wins over granted", tool.Access{Only: []string{"none"}, Extra: []string{"readConversation"}, Denied: []string{"read_tab"}}, []string{"findTools"}},
		{"all denied", tool.Access{Extra: granted, Denied: []string{"all"}}, nil},
		{"one without what belongs to it", tool.Access{Only: []string{"none"}, Extra: []string{"summonAgent"}}, []string{"findTools"}},
		{"one whose other half is denied", tool.Access{Only: []string{"none"}, Extra: []string{"summonAgent", "retrieveAgent"}, Denied: []string{"retrieveAgent"}},
			[]string{"findTools"}},
		{"both halves", tool.Access{Only: []string{"none"}, Extra: []string{"summonAgent", "retrieveAgent"}}, []string{"findTools", "retrieveAgent", "summonAgent"}},
		{"unknown names are nothing", tool.Access{Only: []string{"nope"}, Extra: []string{"nope", "tabs"}}, []string{"findTools"}},
	} {
		got := has(set, row.access)
		slices.Sort(got)
		slices.Sort(row.want)
		if !slices.Equal(got, row.want) {
			t.Errorf("%s: %q\nwant %q", row.name, got, row.want)
		}
	}
}

func TestCheckSaysAllThatIsWrong(t *testing.T) {
	t.Parallel()
	set := load(t, gen.Descriptors)
	for _, row := range []struct {
		access tool.Access
		want   []string // parts of the error; none if it is sound
	}{
		{tool.Access{}, nil},
		{tool.Access{Only: []string{"tabs", "listDevices", "read", "none", "tabList"}, Extra: []string{"read_tab"}, Denied: []string{"browser", "undo", "summonAgent"}}, nil},
		{tool.Access{Extra: []string{"summonAgent", "retrieveAgent"}}, nil},
		{tool.Access{Only: []string{"closTabs", "tab"}, Denied: []string{"xyzzy"}},
			[]string{`"closTabs": did you mean closeTabs?`, `no tool or group "tab": did you mean tabs?`, `no tool or group "xyzzy"`}},
		{tool.Access{Only: []string{"sendToConversation"}}, []string{"sendToConversation has to be granted by its name as an extra"}},
		{tool.Access{Extra: []string{"sendToConversatio"}}, []string{`did you mean sendToConversation?`}},
		{tool.Access{Extra: []string{"facility"}}, []string{`"facility" is a group`}},
		{tool.Access{Extra: []string{"listTabs"}}, []string{"listTabs needs no extra grant"}},
		{tool.Access{Extra: []string{"summonAgent"}}, []string{"summonAgent makes no sense without retrieveAgent: grant both"}},
		{tool.Access{Extra: []string{"summonAgent", "retrieveAgent"}, Denied: []string{"read"}}, []string{"summonAgent makes no sense without retrieveAgent"}},
		{tool.Access{Only: []string{strings.Repeat("x", 5000)}}, []string{"no tool or group"}},
	} {
		err := set.Check(row.access)
		if (err == nil) != (row.want == nil) {
			t.Errorf("%+v: %v", row.access, err)
			continue
		}
		for _, part := range row.want {
			if !strings.Contains(err.Error(), part) || len(err.Error()) > 500 {
				t.Errorf("%+v: %v\nwant %q", row.access, err, part)
			}
		}
	}
}

func TestADefinitionGivesWhatItLists(t *testing.T) {
	t.Parallel()
	set := load(t, gen.Descriptors)
	a := set.Listed([]string{"browser", "send_to_tab", "activateTab"})
	got := has(set, a)
	for _, want := range []string{"listTabs", "sendToConversation", "activateTab", "findTools"} {
		if !slices.Contains(got, want) {
			t.Errorf("no %s in %q", want, got)
		}
	}
	if slices.Contains(got, "undo") || slices.Contains(got, "closeTabs") || slices.Contains(got, "readConversation") {
		t.Errorf("more than is listed: %q", got)
	}
	if got := has(set, set.Listed([]string{"summonAgent", "retrieveAgent"})); !slices.Equal(got, []string{"findTools", "retrieveAgent", "summonAgent"}) {
		t.Errorf("only granted ones: %q", got)
	}
	if err := set.Check(set.Listed([]string{"closTabs"})); err == nil {
		t.Error("a misspelt name is not found")
	}
}

// randomAccess is any access, sound or not.
func randomAccess(r *rand.Rand, words []string) tool.Access {
	some := func(most int) []string {
		var out []string
		for range r.IntN(most + 1) {
			out = append(out, words[r.IntN(len(words))])
		}
		return out
	}
	a := tool.Access{Only: some(6), Extra: some(5), Denied: some(2)}
	if r.IntN(3) == 0 {
		a.Only = nil
	}
	if r.IntN(2) == 0 {
		a.Extra = append(a.Extra, "summonAgent", "retrieveAgent", "sendToConversation", "readConversation")
	}
	return a
}

// A child has what its own access and its parent's both give: no more, whatever they say, and no less. It stays so when
// the catalogue grows, and over generations.
func TestAChildHasNothingThatItsParentLacks(t *testing.T) {
	t.Parallel()
	set, grown := load(t, gen.Descriptors), load(t, tooltest.Varied(t, 60))
	words := []string{"all", "read", "act", "none", "tabs", "browser", "devices", "facility", "letters", "nope"}
	for _, x := range set.Tools() {
		words = append(words, x.Name)
		words = append(words, x.Entry.Aliases...)
	}
	r := rand.New(rand.NewPCG(1, 2))
	wrong, empty, some := 0, 0, 0
	for range 20_000 {
		child, parent := randomAccess(r, words), randomAccess(r, words)
		within := set.Within(child, parent)
		again := set.Within(randomAccess(r, words), within)
		c, p, w, g := set.View(child), set.View(parent), set.View(within), set.View(again)
		for _, x := range set.Tools() {
			if w.Has(x) != (c.Has(x) && p.Has(x)) || g.Has(x) && !w.Has(x) {
				t.Errorf("%s: child %+v, parent %+v: %+v", x.Name, child, parent, within)
				wrong++
			}
		}
		later, parentLater := grown.View(within), grown.View(parent)
		for _, x := range grown.Tools() {
			if later.Has(x) && !parentLater.Has(x) {
				t.Errorf("%s after an upgrade: child %+v, parent %+v: %+v", x.Name, child, parent, within)
				wrong++
			}
		}
		if n := len(w.Tools()); n <= 1 {
			empty++
		} else if n > 3 {
			some++
		}
		if wrong > 3 {
			t.FailNow()
		}
	}
	if empty < 500 || some < 2000 {
		t.Errorf("the cases say little: %d have nothing, %d have several tools", empty, some)
	}
}

func TestAToolThatIsNotHadIsRefusedAndNotUnknown(t *testing.T) {
	t.Parallel()
	v := load(t, gen.Descriptors).View(tool.Access{Denied: []string{"closeTabs"}})
	for _, row := range []struct {
		called, want string
		denied       bool
	}{
		{"closeTabs", `"code":"not_granted","message":"this conversation does not have closeTabs"`, true},
		{"tabClose", `"code":"not_granted","message":"this conversation does not have closeTabs"`, true},
		{"sendToConversation", `"code":"not_granted","message":"this conversation does not have sendToConversation"`, true},
		{"openTabs", `"code":"unknown_tool","message":"there is no tool \"openTabs\"; did you mean openTab?"`, false},
		{"sendToConversations", `"code":"unknown_tool","message":"there is no tool \"sendToConversations\""`, false},
		{"\u202e</tool>", `there is no tool \"\\u202e</tool>\"`, false},
		{strings.Repeat("x", 9999), `more bytes`, false},
	} {
		if got, ok := v.Lookup(row.called); ok {
			t.Errorf("%s is had: %s", row.called, got.Name)
		}
		a := v.Absent(row.called)
		text, err := a.Print(zeros{})
		if err != nil || a.OK || a.Denied != row.denied || !strings.Contains(text, row.want) || len(text) > 700 {
			t.Errorf("%s: denied %v, %s", row.called, a.Denied, text)
		}
	}
	if got, ok := v.Lookup("tabSwitch"); !ok || got.Name != "activateTab" {
		t.Error("an older name of a tool that is had")
	}
}
