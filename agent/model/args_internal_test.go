package model

import (
	"strings"
	"testing"
)

// TestRepeatsAreFast has many objects for one call. With the time growing with its square this would not end.
func TestRepeatsAreFast(t *testing.T) {
	t.Parallel()
	big := `{"x":"` + strings.Repeat("y", 1<<20) + `"}`
	padded := "{" + strings.Repeat(" ", 1<<20) + `"x":1}`
	for name, tt := range map[string]struct {
		pieces []string
		want   string
	}{
		"the same in one piece":              {[]string{strings.Repeat(`{"a":1}`, 1<<16)}, `{"a":1}`},
		"the same":                           {strings.SplitAfter(strings.Repeat(`{"a":1}`, 1<<16), "}"), `{"a":1}`},
		"two":                                {strings.SplitAfter(strings.Repeat(`{"a":1}{"a":2}`, 1<<16), "}"), strings.Repeat(`{"a":1}{"a":2}`, 1<<16)},
		"large, then small":                  {append([]string{big}, strings.SplitAfter(strings.Repeat(`{"a":1}`, 1<<16), "}")...), big + strings.Repeat(`{"a":1}`, 1<<16)},
		"the same with less space":           {append([]string{padded}, strings.SplitAfter(strings.Repeat(`{"x":1}`, 1<<16), "}")...), `{"x":1}`},
		"large, then placeholders in pieces": {append([]string{big}, strings.Split(strings.Repeat(`{}`, 1<<16), "")...), big},
		"placeholders in pieces, then large": {append(strings.Split(strings.Repeat(`{}`, 1<<16), ""), big), big},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var args argText
			for _, piece := range tt.pieces {
				args.add(piece)
			}
			if got := args.text(); got != tt.want {
				t.Errorf("%d bytes, want %d", len(got), len(tt.want))
			}
		})
	}
}
