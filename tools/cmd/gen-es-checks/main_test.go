package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"buf.build/gen/go/bufbuild/protovalidate/protocolbuffers/go/buf/validate"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
)

const image = "../../../gen/descriptors.binpb"

// TestCommittedOutputIsCurrent runs the generator on the committed image.
func TestCommittedOutputIsCurrent(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := run(image, dir); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"checks.ts", "checks.json"} {
		got, err := os.ReadFile(filepath.Join(dir, name)) //nolint:gosec // a path of this test
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(filepath.Join("../../../gen/es/throwbar/command/v1", name)) //nolint:gosec // as above
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != string(want) {
			t.Errorf("%s is out of date: run make gen", name)
		}
	}
}

// withRules is the committed image with other rules on OpenTab.url.
func withRules(t *testing.T, rules *validate.FieldRules) []byte {
	t.Helper()
	data, err := os.ReadFile(image)
	if err != nil {
		t.Fatal(err)
	}
	set := &descriptorpb.FileDescriptorSet{}
	if err := proto.Unmarshal(data, set); err != nil {
		t.Fatal(err)
	}
	for _, file := range set.GetFile() {
		for _, m := range file.GetMessageType() {
			if m.GetName() == "OpenTab" {
				proto.SetExtension(m.GetField()[0].GetOptions(), validate.E_Field, rules)
			}
		}
	}
	out, err := proto.Marshal(set)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func stringRules(r *validate.StringRules) *validate.FieldRules {
	return &validate.FieldRules{Type: &validate.FieldRules_String_{String_: r}}
}

func TestRulesThatCannotBeExpressedStopTheGeneration(t *testing.T) {
	t.Parallel()
	for name, rules := range map[string]*validate.FieldRules{
		"string.email":    stringRules(&validate.StringRules{WellKnown: &validate.StringRules_Email{Email: true}}),
		"(?i)":            stringRules(&validate.StringRules{Pattern: proto.String("(?i)^a$")}),
		"escapes":         stringRules(&validate.StringRules{Pattern: proto.String(`^\d+$`)}),
		"CEL":             {Cel: []*validate.Rule{{Id: proto.String("x"), Expression: proto.String("true")}}},
		"IGNORE_ALWAYS":   {Ignore: validate.Ignore_IGNORE_ALWAYS.Enum()},
		"teach them":      {Type: &validate.FieldRules_Duration{Duration: &validate.DurationRules{}}},
		"is not the same": stringRules(&validate.StringRules{Pattern: proto.String("^.$")}),
	} {
		action, err := findAction(withRules(t, rules))
		if err == nil {
			_, err = readTables(action)
		}
		if err == nil || !strings.Contains(err.Error(), "OpenTab.url") {
			t.Errorf("%s: the generator says %v, want an error that names the field", name, err)
		}
	}
}

func TestEachRuleThatIsExpressedHasACaseThatBreaksIt(t *testing.T) {
	t.Parallel()
	for want, rules := range map[string]*validate.FieldRules{
		`exactLen(3)`:                                  stringRules(&validate.StringRules{Len: proto.Uint64(3)}),
		`minBytes("string.min_bytes", 3)`:              stringRules(&validate.StringRules{MinBytes: proto.Uint64(3)}),
		`exactBytes("string.len_bytes", 4)`:            stringRules(&validate.StringRules{LenBytes: proto.Uint64(4)}),
		`prefix("a.")`:                                 stringRules(&validate.StringRules{Prefix: proto.String("a.")}),
		`suffix("a.")`:                                 stringRules(&validate.StringRules{Suffix: proto.String("a.")}),
		`contains("a.")`:                               stringRules(&validate.StringRules{Contains: proto.String("a.")}),
		`notContains("a.")`:                            stringRules(&validate.StringRules{NotContains: proto.String("a.")}),
		`pattern("^[a-z]*$")`:                          stringRules(&validate.StringRules{Pattern: proto.String("^[a-z]*$")}),
		`oneOf("string.const", ["a"])`:                 stringRules(&validate.StringRules{Const: proto.String("a")}),
		`oneOf("string.in", ["a","b"])`:                stringRules(&validate.StringRules{In: []string{"a", "b"}}),
		`noneOf("string.not_in", ["b","c"])`:           stringRules(&validate.StringRules{NotIn: []string{"b", "c"}}),
		`name: "url", key: "url", required: "nonzero"`: {Required: proto.Bool(true)},
	} {
		action, err := findAction(withRules(t, rules))
		if err != nil {
			t.Fatal(err)
		}
		tables, err := readTables(action)
		if err != nil {
			t.Errorf("%s: %v", want, err)
			continue
		}
		source, err := emit(tables, "")
		if err != nil || !strings.Contains(string(source), want) {
			t.Errorf("the table lacks %s (%v)", want, err)
		}
		text, err := makeCases(tables)
		var cases []testCase
		if err == nil {
			err = json.Unmarshal(text, &cases)
		}
		if err != nil || len(cases) < 100 {
			t.Errorf("%s: %d cases, %v", want, len(cases), err)
		}
	}
}
