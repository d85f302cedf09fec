package es_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"buf.build/go/protovalidate"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	_ "throwbar.dev/throwbar/gen/go/throwbar/command/v1" // registers the messages that the cases name
)

// TestChecksAgreeWithProtovalidate runs the cases that the extension's own checks are held to in TypeScript.
func TestChecksAgreeWithProtovalidate(t *testing.T) {
	t.Parallel()
	var cases []struct {
		Message string
		Value   any
		Broken  []struct{ Field, Rule string }
	}
	read(t, "../../gen/es/throwbar/command/v1/checks.json", &cases)
	for i, c := range cases {
		var want []string
		for _, b := range c.Broken {
			want = append(want, b.Field+" "+b.Rule)
		}
		got, err := broken(c.Message, c.Value)
		if err != nil {
			t.Fatalf("case %d: %v", i, err)
		}
		slices.Sort(want)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("case %d of %s: protovalidate finds %q, the table says %q", i, c.Message, got, want)
		}
	}
}

func read(t *testing.T, path string, into any) {
	t.Helper()
	text, err := os.ReadFile(path) //nolint:gosec // a path of this test
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

func broken(name string, value any) ([]string, error) {
	kind, err := protoregistry.GlobalTypes.FindMessageByName(protoreflect.FullName(name))
	if err != nil {
		return nil, fmt.Errorf("find %s: %w", name, err)
	}
	text, err := json.Marshal(expand(value))
	if err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	msg := kind.New().Interface()
	if err := protojson.Unmarshal(text, msg); err != nil {
		return nil, fmt.Errorf("decode: %w", err)
	}
	err = protovalidate.Validate(msg)
	var invalid *protovalidate.ValidationError
	if err != nil && !errors.As(err, &invalid) {
		return nil, fmt.Errorf("validate: %w", err)
	}
	if invalid == nil {
		return nil, nil
	}
	var out []string
	for _, v := range invalid.Violations {
		out = append(out, protovalidate.FieldPathString(v.Proto.GetField())+" "+v.Proto.GetRuleId())
	}
	return out, nil
}

// expand writes the short forms of a case out: {"$repeat": x, "$times": n} and {"$bytes": n}.
func expand(v any) any {
	switch v := v.(type) {
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = expand(v[i])
		}
		return out
	case map[string]any:
		if n, ok := v["$bytes"].(float64); ok {
			return base64.StdEncoding.EncodeToString(make([]byte, int(n)))
		}
		if n, ok := v["$times"].(float64); ok {
			if s, isText := v["$repeat"].(string); isText {
				return strings.Repeat(s, int(n))
			}
			items, _ := v["$repeat"].([]any)
			out := make([]any, 0, int(n))
			for range int(n) {
				out = append(out, expand(items[0]))
			}
			return out
		}
		out := map[string]any{}
		for k, inner := range v {
			out[k] = expand(inner)
		}
		return out
	default:
		return v
	}
}
