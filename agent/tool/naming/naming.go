// Package naming says how the values of an enum are called outside the contract, and finds the name that a misspelt
// one was meant to be.
//
// Outside, a value is its short name: without the prefix that all values share, in lower case. What comes in may be
// the short or the full name in any case.
package naming

import (
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
)

const unspecified = "UNSPECIFIED"

// Short is the short name of a number, or false if the enum does not define it.
func Short(ed protoreflect.EnumDescriptor, number protoreflect.EnumNumber) (string, bool) {
	value := ed.Values().ByNumber(number)
	if value == nil {
		return "", false
	}
	return short(value, prefix(ed)), true
}

// Offered are the values that a caller is told of, in the order of their declaration: one for each number, without
// deprecated ones and without the zero that means nothing, unless nothing else is left.
func Offered(ed protoreflect.EnumDescriptor) []protoreflect.EnumValueDescriptor {
	var offered, all []protoreflect.EnumValueDescriptor
	seen := map[protoreflect.EnumNumber]bool{}
	for i := range ed.Values().Len() {
		value := ed.Values().Get(i)
		if seen[value.Number()] {
			continue
		}
		seen[value.Number()] = true
		all = append(all, value)
		if !Nothing(value) && !deprecated(value) {
			offered = append(offered, value)
		}
	}
	if len(offered) == 0 {
		return all
	}
	return offered
}

// Nothing says whether a value is the zero that means that nothing is stated.
func Nothing(value protoreflect.EnumValueDescriptor) bool {
	return value.Number() == 0 && strings.HasSuffix(strings.ToUpper(string(value.Name())), unspecified)
}

// Find is the number of a name: full or short, in any case.
func Find(ed protoreflect.EnumDescriptor, name string) (protoreflect.EnumNumber, bool) {
	if value := ed.Values().ByName(protoreflect.Name(name)); value != nil {
		return value.Number(), true
	}
	cut := prefix(ed)
	for i := range ed.Values().Len() {
		value := ed.Values().Get(i)
		if strings.EqualFold(name, string(value.Name())) || strings.EqualFold(name, short(value, cut)) {
			return value.Number(), true
		}
	}
	return 0, false
}

func short(value protoreflect.EnumValueDescriptor, cut int) string {
	return strings.ToLower(string(value.Name())[cut:])
}

// prefix is the length of what the names of all values begin with: the enum's own name, or whatever they share up to
// an underscore. Nothing is cut where a name would be empty or begin with a digit.
func prefix(ed protoreflect.EnumDescriptor) int {
	values := ed.Values()
	shared := string(values.Get(0).Name())
	for i := range values.Len() {
		name := string(values.Get(i).Name())
		n := 0
		for n < min(len(name), len(shared)) && name[n] == shared[n] {
			n++
		}
		shared = shared[:n]
	}
	cut := own(ed, shared)
	if cut == 0 && values.Len() > 1 {
		cut = strings.LastIndexByte(shared, '_') + 1
	}
	for i := range values.Len() {
		rest := string(values.Get(i).Name())[cut:]
		if rest == "" || rest[0] >= '0' && rest[0] <= '9' {
			return 0
		}
	}
	return cut
}

// own is the length of the enum's name, as values carry it, in front of what all of them share.
func own(ed protoreflect.EnumDescriptor, shared string) int {
	var upper strings.Builder
	for i, r := range string(ed.Name()) {
		if i > 0 && r >= 'A' && r <= 'Z' {
			upper.WriteByte('_')
		}
		upper.WriteRune(r)
	}
	if want := strings.ToUpper(upper.String()) + "_"; strings.HasPrefix(shared, want) {
		return len(want)
	}
	return 0
}

func deprecated(value protoreflect.EnumValueDescriptor) bool {
	options, ok := value.Options().(*descriptorpb.EnumValueOptions)
	return ok && options.GetDeprecated()
}

// Nearest is the candidate that a name was most likely meant to be, or empty if none is near. Of two that are equally near
// it is the one that the name only leaves letters out of.
func Nearest(name string, candidates []string) string {
	best, distance, shortened := "", 0, false
	for _, candidate := range candidates {
		a, b := plain(name), plain(candidate)
		d := edits(a, b)
		inside := len(a) >= 4 && strings.Contains(b, a) || len(a) == 3 && strings.HasSuffix(b, a)
		if d > max(1, len(b)/3) && !inside {
			continue
		}
		short := subsequence(a, b)
		if best == "" || d < distance || d == distance && short && !shortened {
			best, distance, shortened = candidate, d, short
		}
	}
	return best
}

// subsequence says whether a is b with letters left out.
func subsequence(a, b string) bool {
	for i := 0; i < len(b) && a != ""; i++ {
		if a[0] == b[i] {
			a = a[1:]
		}
	}
	return a == ""
}

// longest is the longest name that is compared; a longer one is nobody's misspelling.
const longest = 128

func plain(name string) string {
	if len(name) > longest {
		return ""
	}
	return strings.NewReplacer("_", "", "-", "", ".", "", " ", "").Replace(strings.ToLower(name))
}

// edits is the least number of insertions, deletions, replacements and swaps of neighbours between two names.
func edits(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(last[j]+cost, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
