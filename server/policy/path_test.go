package policy_test

import (
	"testing"

	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	"throwbar.dev/throwbar/server/fault"
)

// FuzzPath: a path and a pattern from outside make a rule that decides, or a fault that says what is wrong.
func FuzzPath(f *testing.F) {
	for _, path := range []string{"tabIds", "tabIds[]", "target.url", "a.b.c", ".", "", "[]", "tabIds.x", "url[]"} {
		f.Add(path, "a*")
	}
	f.Fuzz(func(t *testing.T, path, pattern string) {
		b := newBench(t)
		_, _, err := b.Add(t.Context(), "w", "owner", &controlv1.PolicyRule{
			Verdict: deny, Group: "tabs", Arguments: args(path, pattern),
		})
		if err != nil && fault.CodeOf(err) != fault.Invalid {
			t.Errorf("%q=%q: %v", path, pattern, err)
		}
		b.decide(b.call("closeTabs", `{"tabIds":["a","b"]}`, 2, "https://a/"))
		b.decide(b.call("openTab", `{"url":"https://a/"}`, 0))
	})
}
