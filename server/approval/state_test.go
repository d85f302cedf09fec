package approval_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	"throwbar.dev/throwbar/server/approval"
)

func read(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func TestTheDiagramShowsTheTable(t *testing.T) {
	t.Parallel()
	_, rest, _ := strings.Cut(read(t, "../../docs/architecture.md"), "<!-- approval:begin -->")
	block, _, ok := strings.Cut(rest, "<!-- approval:end -->")
	if !ok {
		t.Fatal("docs/architecture.md has no diagram of an approval")
	}
	var drawn, want []string
	for line := range strings.SplitSeq(block, "\n") {
		if from, to, ok := strings.Cut(strings.TrimSpace(line), " --> "); ok {
			drawn = append(drawn, from+" "+to)
		}
	}
	for from, all := range approval.Transitions() {
		for _, to := range all {
			want = append(want, string(from)+" "+string(to))
		}
	}
	slices.Sort(drawn)
	slices.Sort(want)
	if !slices.Equal(drawn, want) {
		t.Errorf("the docs draw %v, the table has %v", drawn, want)
	}
}

func TestTheDatabaseAllowsTheTable(t *testing.T) {
	t.Parallel()
	for _, engine := range []string{"sqlite", "postgres"} {
		sql := read(t, "../../store/migrations/"+engine+"/00004_approvals.sql")
		list := func(pattern string) []string {
			m := regexp.MustCompile(`(?s)` + pattern).FindStringSubmatch(sql)
			if m == nil {
				t.Fatalf("%s has no check like %s", engine, pattern)
			}
			var out []string
			for _, q := range regexp.MustCompile(`'([a-z_]+)'`).FindAllStringSubmatch(m[1], -1) {
				out = append(out, q[1])
			}
			slices.Sort(out)
			return out
		}
		var all, decided []string
		for s := range approval.Transitions() {
			all = append(all, string(s))
			if s != approval.Pending {
				decided = append(decided, string(s))
			}
			if s.Proto() == controlv1.ApprovalState_APPROVAL_STATE_UNSPECIFIED || approval.Void.CanGo(s) || s.CanGo(approval.Pending) {
				t.Errorf("%s has no place in the contract, or goes where nothing goes", s)
			}
		}
		slices.Sort(all)
		slices.Sort(decided)
		if got := list(`srv_approval_state check \(state in \((.*?)\)\)`); !slices.Equal(got, all) {
			t.Errorf("%s allows %v, the table has %v", engine, got, all)
		}
		if got := list(`\(decided_at > 0\) = \(state in \((.*?)\)\)`); !slices.Equal(got, decided) {
			t.Errorf("%s decides at %v, the table at %v", engine, got, decided)
		}
	}
}
