package dispatch_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"throwbar.dev/throwbar/server/dispatch"
)

func TestTheDiagramShowsTheTable(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../../docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(raw), "<!-- states:begin -->")
	block, _, ok := strings.Cut(rest, "<!-- states:end -->")
	if !ok {
		t.Fatal("docs/architecture.md has no diagram of states")
	}
	drawn := map[dispatch.State][]dispatch.State{}
	for line := range strings.SplitSeq(block, "\n") {
		from, to, ok := strings.Cut(line, "->")
		if !ok {
			continue
		}
		var states []dispatch.State
		for _, s := range strings.Fields(to) {
			states = append(states, dispatch.State(s))
		}
		drawn[dispatch.State(strings.TrimSpace(from))] = states
	}
	table := dispatch.Transitions()
	if len(drawn) != len(table) {
		t.Errorf("%d states are drawn, the table has %d", len(drawn), len(table))
	}
	for from, want := range table {
		if got := drawn[from]; !slices.Equal(sorted(got), sorted(want)) {
			t.Errorf("%s goes to %v in the docs, to %v in the table", from, got, want)
		}
	}
}

func sorted(s []dispatch.State) []dispatch.State {
	s = slices.Clone(s)
	slices.Sort(s)
	return slices.Compact(s)
}

func TestTheDatabaseAllowsTheTable(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../store/migrations/sqlite/*.sql")
	if err != nil || len(files) == 0 {
		t.Fatalf("no migrations: %v", err)
	}
	var sql strings.Builder
	for _, f := range files {
		raw, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		sql.Write(raw)
	}
	list := func(pattern string) []dispatch.State {
		m := regexp.MustCompile(`(?s)` + pattern).FindStringSubmatch(sql.String())
		if m == nil {
			t.Fatalf("no check like %s", pattern)
		}
		var out []dispatch.State
		for _, q := range regexp.MustCompile(`'([a-z_]+)'`).FindAllStringSubmatch(m[1], -1) {
			out = append(out, dispatch.State(q[1]))
		}
		return sorted(out)
	}
	var all, ends []dispatch.State
	for s := range dispatch.Transitions() {
		all = append(all, s)
		if s.Ended() {
			ends = append(ends, s)
		}
	}
	if got := list(`srv_command_state check \(state in \((.*?)\)\)`); !slices.Equal(got, sorted(all)) {
		t.Errorf("the check allows %v, the table has %v", got, sorted(all))
	}
	if got := list(`\(ended_at > 0\) = \(state in \((.*?)\)\)`); !slices.Equal(got, sorted(ends)) {
		t.Errorf("the check ends at %v, the table at %v", got, sorted(ends))
	}
}
