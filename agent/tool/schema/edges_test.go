package schema_test

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/types/dynamicpb"

	"throwbar.dev/throwbar/agent/tool/args"
	"throwbar.dev/throwbar/agent/tool/schema"
	"throwbar.dev/throwbar/agent/tool/tooltest"
)

// TestRulesThatLeaveWhatIsNotOffered: the zero that means nothing and deprecated values are told where they are all that the
// rules allow, and can be written as they are told.
func TestRulesThatLeaveWhatIsNotOffered(t *testing.T) {
	t.Parallel()
	md := tooltest.Message(t, `enum Color { option allow_alias=true; COLOR_UNSPECIFIED=0; COLOR_RED=1; COLOR_OLD=2 [deprecated=true]; COLOR_AGED=2; }
		message In { Color a=1 [`+v+`.enum.const=0]; Color b=2 [`+v+`.enum={in:[2]}]; repeated Color c=3 [`+v+`.repeated.items.enum={in:[0,1]}]; }`)
	o, _ := schema.Of(md, comment)
	for _, profile := range profiles() {
		raw := string(schema.Print(profile, o))
		null := ""
		if profile == schema.ProfileStrict {
			null = ",null"
		}
		for _, want := range []string{`"enum":["unspecified"` + null + `]`, `"enum":["old"]`, `"enum":["red"]`} {
			if !strings.Contains(raw, want) {
				t.Errorf("%s: %s\nhas no %s", profile, raw, want)
			}
		}
		if faults := schema.Lint(profile, []byte(raw)); len(faults) > 0 {
			t.Errorf("%s: %v", profile, faults)
		}
	}
	if _, err := args.Decode(`{"a":"unspecified","b":"old","c":["red"]}`, dynamicpb.NewMessage(md), args.Options{Strict: true}); err != nil {
		t.Error(err)
	}
}

// T11 and T13 with names that are alike: each message has a definition of its own.
func TestDefinitionsAreNamedApart(t *testing.T) {
	t.Parallel()
	o, _ := schema.Of(tooltest.Message(t, `message P { message A { A a=1; } } message Q { message A { string x=1; A a=2; } } message A2 { int32 y=1; A2 z=2; }
		message In { P.A a=1; Q.A b=2; A2 c=3; }`), comment)
	raw := schema.Print(schema.ProfileStrict, o)
	if faults := schema.Lint(schema.ProfileStrict, raw); len(faults) > 0 {
		t.Errorf("%v\n%s", faults, raw)
	}
	for _, want := range []string{`"A":{"type":"object","properties":{"a":`, `"A2":{"type":"object","properties":{"x":`, `"A22":{"type":"object","properties":{"y":`} {
		if !strings.Contains(string(raw), want) {
			t.Errorf("%s\nhas no %s", raw, want)
		}
	}
}
