package main

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp/syntax"
	"strings"

	"buf.build/gen/go/bufbuild/protovalidate/protocolbuffers/go/buf/validate"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// valueChecks reads the rules of one value: a plain field, or an item of a list.
func valueChecks(fd protoreflect.FieldDescriptor, rules *validate.FieldRules) ([]check, error) {
	kind, set := ruleKind(rules)
	if !set {
		return nil, nil
	}
	switch r := kind.Interface().(type) {
	case *validate.StringRules:
		return stringChecks(r)
	case *validate.BytesRules:
		return bytesChecks(r)
	case *validate.EnumRules:
		return enumChecks(fd, r)
	case *validate.BoolRules:
		if err := onlyKnown(r, "const"); err != nil {
			return nil, err
		}
		return []check{{id: "bool.const", call: fmt.Sprintf("oneOf(%q, [%t])", "bool.const", r.GetConst()), samples: []any{true, false}}}, nil
	case *validate.AnyRules, *validate.DurationRules, *validate.TimestampRules, *validate.FieldMaskRules, *validate.MapRules:
		return nil, fmt.Errorf("rules of %T cannot be expressed: teach them to tools/cmd/gen-es-checks", r)
	default:
		return numberChecks(fd, kind)
	}
}

// ruleKind is the one typed rule message that is set.
func ruleKind(rules *validate.FieldRules) (protoreflect.Message, bool) {
	m := rules.ProtoReflect()
	fd := m.WhichOneof(m.Descriptor().Oneofs().ByName("type"))
	if fd == nil {
		return nil, false
	}
	return m.Get(fd).Message(), true
}

func stringChecks(r *validate.StringRules) ([]check, error) {
	err := onlyKnown(r, "const", "len", "min_len", "max_len", "len_bytes", "min_bytes", "max_bytes", "pattern", "prefix",
		"suffix", "contains", "not_contains", "in", "not_in")
	if err != nil {
		return nil, err
	}
	var out []check
	length := func(set *uint64, id, call string, fill string) {
		if set != nil {
			out = append(out, check{id: id, call: fmt.Sprintf(call, *set), samples: around(*set, fill)})
		}
	}
	length(r.Len, "string.len", "exactLen(%d)", "😀")
	length(r.MinLen, "string.min_len", "minLen(%d)", "😀")
	length(r.MaxLen, "string.max_len", "maxLen(%d)", "😀")
	length(r.LenBytes, "string.len_bytes", `exactBytes("string.len_bytes", %d)`, "é")
	length(r.MinBytes, "string.min_bytes", `minBytes("string.min_bytes", %d)`, "é")
	length(r.MaxBytes, "string.max_bytes", `maxBytes("string.max_bytes", %d)`, "é")
	part := func(set *string, id, call string, samples ...any) {
		if set != nil {
			out = append(out, check{id: id, call: fmt.Sprintf("%s(%s)", call, quote(*set)), samples: append(samples, *set, *set+"x", "x"+*set)})
		}
	}
	part(r.Prefix, "string.prefix", "prefix", "")
	part(r.Suffix, "string.suffix", "suffix", "")
	part(r.Contains, "string.contains", "contains", "")
	part(r.NotContains, "string.not_contains", "notContains")
	if r.Pattern != nil {
		if err := portable(r.GetPattern()); err != nil {
			return nil, err
		}
		part(r.Pattern, "string.pattern", "pattern", "", "a", "A", "0", "a\n", "-", "é")
	}
	if r.Const != nil {
		out = append(out, listCheck("string.const", "oneOf", []string{r.GetConst()}))
	}
	if len(r.GetIn()) > 0 {
		out = append(out, listCheck("string.in", "oneOf", r.GetIn()))
	}
	if len(r.GetNotIn()) > 0 {
		out = append(out, listCheck("string.not_in", "noneOf", r.GetNotIn()))
	}
	return out, nil
}

func listCheck(id, call string, values []string) check {
	samples := []any{"", "x"}
	for _, v := range values {
		samples = append(samples, v, v+"x")
	}
	return check{id: id, call: fmt.Sprintf("%s(%q, %s)", call, id, quote(values)), samples: samples}
}

func bytesChecks(r *validate.BytesRules) ([]check, error) {
	if err := onlyKnown(r, "len", "min_len", "max_len"); err != nil {
		return nil, err
	}
	var out []check
	length := func(set *uint64, id, call string) {
		if set == nil {
			return
		}
		var samples []any
		for _, n := range neighbours(*set) {
			samples = append(samples, map[string]any{"$bytes": n})
		}
		out = append(out, check{id: id, call: fmt.Sprintf("%s(%q, %d)", call, id, *set), samples: samples})
	}
	length(r.Len, "bytes.len", "exactBytes")
	length(r.MinLen, "bytes.min_len", "minBytes")
	length(r.MaxLen, "bytes.max_len", "maxBytes")
	return out, nil
}

func enumChecks(fd protoreflect.FieldDescriptor, r *validate.EnumRules) ([]check, error) {
	if err := onlyKnown(r, "const", "defined_only", "in", "not_in"); err != nil {
		return nil, err
	}
	values := fd.Enum().Values()
	var known, samples []any
	largest := int32(0)
	for i := range values.Len() {
		number := int32(values.Get(i).Number())
		known = append(known, number)
		largest = max(largest, number)
	}
	samples = append(append(samples, known...), largest+1, -1)
	var out []check
	if r.GetDefinedOnly() {
		out = append(out, check{id: "enum.defined_only", call: fmt.Sprintf("defined(%s)", quote(known)), samples: samples})
	}
	if r.Const != nil {
		out = append(out, check{id: "enum.const", call: fmt.Sprintf("oneOf(%q, [%d])", "enum.const", r.GetConst()), samples: samples})
	}
	if len(r.GetIn()) > 0 {
		out = append(out, check{id: "enum.in", call: fmt.Sprintf("oneOf(%q, %s)", "enum.in", quote(r.GetIn())), samples: samples})
	}
	if len(r.GetNotIn()) > 0 {
		out = append(out, check{id: "enum.not_in", call: fmt.Sprintf("noneOf(%q, %s)", "enum.not_in", quote(r.GetNotIn())), samples: samples})
	}
	return out, nil
}

// numberChecks reads the rules of all numeric kinds, which have the same names.
func numberChecks(fd protoreflect.FieldDescriptor, rules protoreflect.Message) ([]check, error) {
	kind := fd.Kind()
	if kind == protoreflect.FloatKind || kind == protoreflect.DoubleKind {
		return nil, fmt.Errorf("rules of a %s cannot be expressed: teach them to tools/cmd/gen-es-checks", kind)
	}
	if err := onlyKnown(rules.Interface(), "gt", "gte", "lt", "lte"); err != nil {
		return nil, err
	}
	low, lowID, lowCall := bound(rules, kind, "gt", "gte", "above")
	high, highID, highCall := bound(rules, kind, "lt", "lte", "below")
	var samples []any
	for _, n := range []*int64{low, high} {
		if n != nil {
			samples = append(samples, jsonNumber(kind, *n), jsonNumber(kind, *n+1))
			if *n > 0 || signed(kind) {
				samples = append(samples, jsonNumber(kind, *n-1))
			}
		}
	}
	switch {
	case low != nil && high != nil:
		if *low >= *high {
			return nil, fmt.Errorf("bounds that exclude a range cannot be expressed")
		}
		id := fmt.Sprintf("%s.%s_%s", kind, lowID, highID)
		return []check{{id: id, call: fmt.Sprintf("both(%q, %s, %s)", id, lowCall, highCall), samples: samples}}, nil
	case low != nil:
		return []check{{id: kind.String() + "." + lowID, call: lowCall, samples: samples}}, nil
	case high != nil:
		return []check{{id: kind.String() + "." + highID, call: highCall, samples: samples}}, nil
	}
	return nil, nil
}

func bound(rules protoreflect.Message, kind protoreflect.Kind, open, closed, call string) (*int64, string, string) {
	for _, name := range []string{open, closed} {
		fd := rules.Descriptor().Fields().ByName(protoreflect.Name(name))
		if !rules.Has(fd) {
			continue
		}
		var n int64
		switch v := rules.Get(fd).Interface().(type) {
		case int32:
			n = int64(v)
		case int64:
			n = v
		case uint32:
			n = int64(v)
		case uint64:
			n = int64(min(v, math.MaxInt64))
		}
		literal := fmt.Sprint(rules.Get(fd).Interface())
		if wide(kind) {
			literal += "n"
		}
		return &n, name, fmt.Sprintf("%s(%q, %s, %t)", call, kind.String()+"."+name, literal, name == closed)
	}
	return nil, "", ""
}

func wide(kind protoreflect.Kind) bool {
	return strings.HasSuffix(kind.String(), "64")
}

func signed(kind protoreflect.Kind) bool {
	return !strings.HasPrefix(kind.String(), "u") && !strings.HasPrefix(kind.String(), "fixed")
}

func jsonNumber(kind protoreflect.Kind, n int64) any {
	if wide(kind) {
		return fmt.Sprint(n)
	}
	return n
}

// portable refuses patterns that Go and JavaScript could read differently.
func portable(pattern string) error {
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return fmt.Errorf("pattern %q: %w", pattern, err)
	}
	var walk func(*syntax.Regexp) error
	walk = func(re *syntax.Regexp) error {
		switch re.Op {
		case syntax.OpLiteral, syntax.OpCharClass, syntax.OpBeginText, syntax.OpEndText, syntax.OpStar, syntax.OpPlus,
			syntax.OpQuest, syntax.OpRepeat, syntax.OpConcat, syntax.OpAlternate, syntax.OpCapture, syntax.OpEmptyMatch:
		default:
			return fmt.Errorf("pattern %q: %s is not the same in JavaScript", pattern, re.Op)
		}
		for _, sub := range re.Sub {
			if err := walk(sub); err != nil {
				return err
			}
		}
		return nil
	}
	if strings.ContainsAny(pattern, `\`) || strings.Contains(pattern, "(?") || strings.Contains(pattern, "[:") {
		return fmt.Errorf("pattern %q: escapes, flags and named classes are not the same in JavaScript", pattern)
	}
	return walk(parsed)
}

func quote(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // strings and numbers always marshal
	}
	return string(text)
}
