package args

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"google.golang.org/protobuf/reflect/protoreflect"

	"throwbar.dev/throwbar/catalog"
)

// Short is the short name of an enum value: lower-case, without the enum's own name.
func Short(value protoreflect.EnumValueDescriptor) string {
	name := string(value.Name())
	if enum, ok := value.Parent().(protoreflect.EnumDescriptor); ok {
		name = strings.TrimPrefix(name, prefix(enum.Name()))
	}
	return strings.ToLower(name)
}

// ShortOf is the short name of an enum's number, or the number if it has none.
func ShortOf(enum protoreflect.EnumDescriptor, number protoreflect.EnumNumber) string {
	if v := enum.Values().ByNumber(number); v != nil {
		return Short(v)
	}
	return strconv.Itoa(int(number))
}

// prefix is what the style guide puts before each value of an enum: ItemStatus has ITEM_STATUS_.
func prefix(enum protoreflect.Name) string {
	var out strings.Builder
	for i, r := range string(enum) {
		if i > 0 && unicode.IsUpper(r) {
			out.WriteByte('_')
		}
		out.WriteRune(unicode.ToUpper(r))
	}
	return out.String() + "_"
}

// Choices lists the short names that a caller may give for an enum field; nil for other fields.
func Choices(fd protoreflect.FieldDescriptor) []string {
	if fd.Kind() != protoreflect.EnumKind {
		return nil
	}
	var names []string
	values := fd.Enum().Values()
	for i := range values.Len() {
		if v := values.Get(i); allowed(fd, v) {
			names = append(names, Short(v))
		}
	}
	return names
}

// allowed says whether a value is offered. "Not stated" never is.
func allowed(fd protoreflect.FieldDescriptor, v protoreflect.EnumValueDescriptor) bool {
	if v.Number() == 0 && strings.HasSuffix(string(v.Name()), "_UNSPECIFIED") {
		return false
	}
	rules := catalog.Rules(fd).GetEnum()
	if fd.IsList() {
		rules = catalog.Rules(fd).GetRepeated().GetItems().GetEnum()
	}
	if slices.Contains(rules.GetNotIn(), int32(v.Number())) {
		return false
	}
	return len(rules.GetIn()) == 0 || slices.Contains(rules.GetIn(), int32(v.Number()))
}

// parseEnum takes the short name, the full name, in any case, or a number that has a name.
func parseEnum(fd protoreflect.FieldDescriptor, text string) (protoreflect.Value, error) {
	want := strings.ToLower(strings.ReplaceAll(text, "-", "_"))
	values := fd.Enum().Values()
	for i := range values.Len() {
		v := values.Get(i)
		if want == Short(v) || want == strings.ToLower(string(v.Name())) || want == strconv.Itoa(int(v.Number())) {
			return protoreflect.ValueOfEnum(v.Number()), nil
		}
	}
	choices := Choices(fd)
	if near := Nearest(want, choices); near != "" {
		return protoreflect.Value{}, fmt.Errorf("is not known: did you mean %s?", near)
	}
	return protoreflect.Value{}, fmt.Errorf("is none of %s", strings.Join(choices, ", "))
}

// Nearest is the name that was most probably meant; empty if none is near.
func Nearest(name string, among []string) string {
	flat := strings.NewReplacer("-", "", "_", "", ".", "")
	want := flat.Replace(strings.ToLower(name))
	best, distance, like := "", max(2, len(want)/3)+1, 0
	for _, candidate := range among {
		have := flat.Replace(strings.ToLower(candidate))
		d := edits(want, have)
		if len(want) >= 3 && strings.HasPrefix(have, want) {
			d = min(d, 1)
		}
		same := alike(want, have)
		if d < max(len(want), len(have)) && (d < distance || d == distance && best != "" && same > like) {
			best, distance, like = candidate, d, same
		}
	}
	return best
}

// alike counts the characters that two names have in common at their beginnings and at their ends.
func alike(a, b string) int {
	least := min(len(a), len(b))
	head := 0
	for head < least && a[head] == b[head] {
		head++
	}
	tail := 0
	for tail < least-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	return head + tail
}

// edits counts the characters to insert, remove, replace, or swap with their neighbour, to turn a into b.
func edits(a, b string) int {
	x, y := []rune(a), []rune(b)
	rows := make([][]int, len(x)+1)
	for i := range rows {
		rows[i] = make([]int, len(y)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(x); i++ {
		for j := 1; j <= len(y); j++ {
			cost := 1
			if x[i-1] == y[j-1] {
				cost = 0
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+cost)
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(x)][len(y)]
}
