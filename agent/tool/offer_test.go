package tool_test

import (
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"testing"

	"throwbar.dev/throwbar/agent/model"
	"throwbar.dev/throwbar/agent/tool"
	"throwbar.dev/throwbar/agent/tool/schema"
	"throwbar.dev/throwbar/agent/tool/tooltest"
	"throwbar.dev/throwbar/gen"
	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
)

// floor are the tools that every request has.
func floor() []string {
	return []string{"listDevices", "listTabs", "searchTabs", "activateTab", "closeTabs", "openTab", "findTools", "undo"}
}

func profiles() []schema.Profile {
	return []schema.Profile{schema.ProfilePortable, schema.ProfileStrict, schema.ProfileGemini, schema.ProfileLocal}
}

// offered are the names of tools in a request, and about how many tokens they take: a quarter of the bytes is more than any
// tokenizer makes of them.
func offered(tools []model.Tool) (list []string, about int) {
	for _, x := range tools {
		list = append(list, x.Name)
		about += (70 + len(x.Name) + len(x.Description) + len(x.Parameters)) / 4
	}
	return list, about
}

func TestAllToolsOfTheContractFitIntoTheDefaultBudget(t *testing.T) {
	t.Parallel()
	set := load(t, gen.Descriptors)
	for _, profile := range profiles() {
		tools, index := set.View(tool.Access{}).Offered(profile, nil, 0)
		list, about := offered(tools)
		t.Logf("%s: %d tools, about %d tokens", profile, len(list), about)
		if len(list) != 22 || index != "" || slices.Contains(list, "findTools") || !slices.Contains(list, "undo") || slices.Contains(list, "summonAgent") {
			t.Errorf("%s: %q, index %q", profile, list, index)
		}
		for _, x := range tools {
			if x.Strict != (profile == schema.ProfileStrict) {
				t.Errorf("%s: %s strict: %v", profile, x.Name, x.Strict)
			}
		}
	}
}

// T32 of the case table: a contract with more tools than one request carries works, and costs about as much as a small one.
func TestTwoHundredCommandsCostAsMuchAsTwenty(t *testing.T) {
	t.Parallel()
	small := load(t, gen.Descriptors)
	for _, n := range []int{130, 200, 1000} {
		set := load(t, tooltest.Varied(t, n))
		v := set.View(tool.Access{})
		for _, profile := range profiles() {
			_, least := offered(must(small.View(tool.Access{}).Offered(profile, nil, 0)))
			tools, index := v.Offered(profile, nil, 0)
			list, about := offered(tools)
			if !slices.Equal(list, floor()) || index == "" || about > least || len(index) > 800 {
				t.Errorf("%d commands, %s: %d tokens for %q; the small contract takes %d\n%s", n, profile, about, list, least, index)
			}
			if !strings.Contains(tools[6].Description, index) || !strings.Contains(index, fmt.Sprintf("There are %d tools", n+23)) {
				t.Errorf("%d commands: %s", n, tools[6].Description)
			}
			var all []string
			for _, x := range v.Tools() {
				all = append(all, x.Name)
			}
			for _, loaded := range [][]string{all, all[:60], all[len(all)-60:]} {
				tools, _ := v.Offered(profile, loaded, 0)
				list, about := offered(tools)
				if len(list) <= len(floor()) || len(list) > tool.MaxTools || about > tool.DefaultBudget*11/10 {
					t.Errorf("%d commands, %s, %d loaded: %d tools, %d tokens", n, profile, len(loaded), len(list), about)
				}
			}
			if list, _ := offered(must(v.Offered(profile, all, 1_000_000))); len(list) != tool.MaxTools || !slices.Contains(list, "undo") {
				t.Errorf("%d commands, %s, without a budget to speak of: %d tools", n, profile, len(list))
			}
		}
	}
}

func must(tools []model.Tool, _ string) []model.Tool { return tools }

func TestWhatIsOffered(t *testing.T) {
	t.Parallel()
	set := load(t, tooltest.Varied(t, 200))
	names := func(a tool.Access, budget int, loaded ...string) []string {
		list, _ := offered(must(set.View(a).Offered(schema.ProfilePortable, loaded, budget)))
		return list
	}
	with := func(more ...string) []string {
		want := append(floor(), more...)
		slices.Sort(want)
		return want
	}
	for _, row := range []struct {
		name string
		got  []string
		want []string
	}{
		{"what was loaded, by older names too", names(tool.Access{}, 0, "lockRooms86", "tabSwitch", "nope", "muteTabs"), with("lockRooms86", "muteTabs")},
		{"nothing that it does not have", names(tool.Access{Denied: []string{"rooms"}}, 0, "lockRooms86", "summonAgent", "muteTabs"), with("muteTabs")},
		{"a budget below the floor is that of the floor", names(tool.Access{}, 1), floor()},
		{"and the newest loaded", names(tool.Access{}, 1, "pinTabs", "muteTabs"), with("muteTabs")},
		{"the newest is in the floor already", names(tool.Access{}, 1, "pinTabs", "openTab"), floor()},
		{"the floor has nothing that it does not have", names(tool.Access{Denied: []string{"closeTabs", "undo"}}, 0),
			[]string{"activateTab", "findTools", "listDevices", "listTabs", "openTab", "searchTabs"}},
		{"few of many are all offered", names(tool.Access{Only: []string{"devices", "lockRooms86"}}, 0), []string{"listDevices", "lockRooms86"}},
		{"what is granted is a tool like others", names(tool.Access{Only: []string{"none"}, Extra: []string{"readConversation"}}, 0), []string{"readConversation"}},
	} {
		slices.Sort(row.got)
		slices.Sort(row.want)
		if !slices.Equal(row.got, row.want) {
			t.Errorf("%s: %q\nwant %q", row.name, row.got, row.want)
		}
	}
	// Where nobody can look for the others, as many as fit are there.
	tools, index := set.View(tool.Access{Denied: []string{"findTools"}}).Offered(schema.ProfilePortable, nil, 0)
	if list, about := offered(tools); len(list) < 15 || about > tool.DefaultBudget*11/10 || index != "" {
		t.Errorf("without the search: %d tools, %d tokens, index %q", len(list), about, index)
	}
	// Of more than fit the newest are there.
	var loaded []string
	for _, x := range set.Tools() {
		if x.Entry.Family == "letters" || x.Entry.Family == "songs" {
			loaded = append(loaded, x.Name)
		}
	}
	list := names(tool.Access{}, 0, loaded...)
	if !slices.Contains(list, loaded[len(loaded)-1]) || slices.Contains(list, loaded[0]) {
		t.Errorf("the newest of %d: %q", len(loaded), list)
	}
	list = names(tool.Access{}, 0, append(loaded, loaded[0])...)
	if !slices.Contains(list, loaded[0]) {
		t.Errorf("named again it is new: %q", list)
	}
}

// found is the result of a search, as the turn puts it into the history.
func found(t *testing.T, v *tool.View, query string) string {
	t.Helper()
	x, ok := v.Lookup("findTools")
	if !ok || !x.Finds() {
		t.Fatal("there is no search")
	}
	call, err := x.Decode(fmt.Sprintf(`{"query":%q}`, query), true)
	if err != nil {
		t.Fatal(err)
	}
	a := v.Search(call)
	text, err := a.Print(rand.Reader)
	if err != nil || !a.OK {
		t.Fatal(err)
	}
	return text
}

func TestWhatIsLoadedFollowsFromTheHistory(t *testing.T) {
	t.Parallel()
	set := load(t, tooltest.Varied(t, 200))
	v := set.View(tool.Access{})
	history := []model.Message{
		{Role: model.RoleSystem, Text: "rules"},
		{Role: model.RoleUser, Text: "lock the rooms"},
		{Role: model.RoleAssistant, Calls: []model.Call{{ID: "1", Name: "findTools", Arguments: `{"query":"lock rooms"}`}, {ID: "2", Name: "listTabs"}}},
		{Role: model.RoleTool, CallID: "1", Text: found(t, v, "lock rooms")},
		{Role: model.RoleTool, CallID: "2", Text: `{"ok":true,"mark":"x","data":{"tools":[{"name":"printLetters1"}]},"end":"x"}`},
	}
	loaded := set.Loaded(history)
	if n := len(loaded); n < 3 || !strings.HasPrefix(loaded[n-1], "lockRooms") || slices.Contains(loaded, "printLetters1") || slices.Contains(loaded, "findTools") {
		t.Fatalf("loaded: %q", loaded)
	}
	tools, _ := v.Offered(schema.ProfilePortable, loaded, 0)
	if list, _ := offered(tools); !slices.Contains(list, loaded[len(loaded)-1]) {
		t.Errorf("offered: %q", list)
	}
	// A call makes a tool the newest, by whatever name; what nobody has ever heard of is not loaded.
	history = append(history, model.Message{Role: model.RoleAssistant, Calls: []model.Call{{ID: "3", Name: "tabs.open"}, {ID: "4", Name: "nope"}}})
	if loaded = set.Loaded(history); loaded[len(loaded)-1] != "openTab" {
		t.Errorf("loaded: %q", loaded)
	}
	// A result that was cut short still says what it can.
	history[3].Text = history[3].Text[:len(history[3].Text)/2]
	if got := set.Loaded(history); !slices.Contains(got, loaded[len(loaded)-3]) {
		t.Errorf("cut: %q", got)
	}
	// A summary keeps it.
	names := `"loadedTools":["` + strings.Join(loaded, `","`) + `"]`
	kept := []model.Message{{Role: model.RoleUser, Text: "(Summary)\n" + `{"ok":true,"data":{"summary":"The user wants the rooms locked.",` + names + `}}`}}
	if got := set.Loaded(kept); !slices.Equal(got, loaded) {
		t.Errorf("kept %q, want %q", got, loaded)
	}
	if len(set.Loaded(nil)) != 0 {
		t.Error("nothing loaded is something")
	}
	// What another agent says is quoted, so that nothing of it counts, and what an agent or a result says does not either.
	quote, err := tool.Quote(rand.Reader, tool.Speaker{Handle: "abcd"}, names)
	if got := set.Loaded([]model.Message{{Role: model.RoleUser, Text: quote}, {Role: model.RoleTool, CallID: "9", Text: names}}); err != nil || len(got) != 0 {
		t.Errorf("another agent loads %q, %v", got, err)
	}
	var many []string
	for _, x := range set.Tools() {
		many = append(many, x.Name)
	}
	if got := set.Loaded([]model.Message{{Role: model.RoleUser, Text: `"loadedTools":["` + strings.Join(many, `","`) + `"]`}}); len(got) != 100 {
		t.Errorf("%d are loaded", len(got))
	}
}

func TestASearchFindsWhatIsMeant(t *testing.T) {
	t.Parallel()
	small, large := load(t, gen.Descriptors), load(t, tooltest.Varied(t, 1000))
	for query, want := range map[string]string{
		"close tabs": "closeTabs", "closing some of the open tabs": "closeTabs", "tabClose": "closeTabs", "mute": "muteTabs", "sound muted": "muteTabs",
		"bring back closed tabs": "undo", "undo": "undo", "which devices are online": "listDevices", "group": "groupTabs", "MOVE_TABS": "moveTabs",
		"count domains": "countByDomain", "saved": "saveTabs", "tabs.open": "openTab", "focus window": "activateTab",
	} {
		for _, set := range []*tool.Set{small, large} {
			rows := set.View(tool.Access{}).Find(query).(*agentv1.FindTools_Result).GetTools() //nolint:forcetypeassert // a panic fails the test
			if at := slices.IndexFunc(rows, func(f *agentv1.FoundTool) bool { return f.GetName() == want }); at < 0 || at > 4 || len(rows) > 12 {
				t.Errorf("%q of %d tools: %v", query, len(set.Tools()), rows)
			}
		}
	}
	find := func(set *tool.Set, a tool.Access, query string) []*agentv1.FoundTool {
		return set.View(a).Find(query).(*agentv1.FindTools_Result).GetTools() //nolint:forcetypeassert // a panic fails the test
	}
	if rows := find(large, tool.Access{}, "xyzzy plugh"); len(rows) != 0 {
		t.Errorf("nonsense finds %v", rows)
	}
	if rows := find(large, tool.Access{}, "letters1"); len(rows) != 12 || !strings.Contains(rows[0].GetName(), "Letters") {
		t.Errorf("a group: %v", rows)
	}
	if rows := find(large, tool.Access{}, "group:letters1"); len(rows) != 12 || !strings.Contains(rows[0].GetName(), "Letters2") {
		t.Errorf("a group by the name of its row: %v", rows)
	}
	rows := find(large, tool.Access{}, "  ")
	if len(rows) < 50 || rows[0].GetName() != "group:browser" || !strings.Contains(rows[0].GetSummary(), "6 tools: countByDomain, ") {
		t.Errorf("without words: %d rows, %v", len(rows), rows[:2])
	}
	if rows := find(small, tool.Access{Only: []string{"browser"}}, ""); len(rows) != 6 || rows[0].GetName() != "countByDomain" || rows[0].GetSummary() == "" {
		t.Errorf("without words, few: %v", rows)
	}
	if rows := find(small, tool.Access{Denied: []string{"closeTabs"}}, "closeTabs send message conversation"); slices.ContainsFunc(rows, func(f *agentv1.FoundTool) bool {
		return f.GetName() == "closeTabs" || f.GetName() == "sendToConversation" || f.GetName() == "findTools"
	}) {
		t.Errorf("it finds what it does not have: %v", rows)
	}
}

// Whatever is printed once is not printed again: a request of a thousand tools costs little.
func BenchmarkOffered(b *testing.B) {
	set := load(b, tooltest.Varied(b, 1000))
	for b.Loop() {
		if tools, _ := set.View(tool.Access{}).Offered(schema.ProfilePortable, []string{"lockRooms86"}, 0); len(tools) != len(floor())+1 {
			b.Fatal(len(tools))
		}
	}
}

func TestSchemasArePrintedOnce(t *testing.T) {
	t.Parallel()
	set := load(t, tooltest.Varied(t, 1000))
	v := set.View(tool.Access{})
	first := must(v.Offered(schema.ProfilePortable, nil, 1_000_000))
	again := must(v.Offered(schema.ProfilePortable, nil, 1_000_000))
	for i := range first {
		if &again[i].Parameters[0] != &first[i].Parameters[0] {
			t.Fatalf("the schema of %s was printed again", first[i].Name)
		}
	}
	strict := must(v.Offered(schema.ProfileStrict, nil, 1_000_000))
	if string(strict[0].Parameters) == string(first[0].Parameters) {
		t.Error("one profile has what was printed for another")
	}
}
