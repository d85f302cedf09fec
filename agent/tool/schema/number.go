package schema

import (
	"math/big"
	"strconv"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// number is a number of a rule: as JSON, and to calculate with.
type number struct {
	text string
	rat  *big.Rat
}

func readNumber(fd protoreflect.FieldDescriptor, v protoreflect.Value) (number, bool) {
	switch x := v.Interface().(type) {
	case int32:
		return number{strconv.FormatInt(int64(x), 10), new(big.Rat).SetInt64(int64(x))}, true
	case int64:
		return number{strconv.FormatInt(x, 10), new(big.Rat).SetInt64(x)}, true
	case uint32:
		return number{strconv.FormatUint(uint64(x), 10), new(big.Rat).SetUint64(uint64(x))}, true
	case uint64:
		return number{strconv.FormatUint(x, 10), new(big.Rat).SetUint64(x)}, true
	case float32:
		rat := new(big.Rat).SetFloat64(float64(x))
		return number{strconv.FormatFloat(float64(x), 'g', -1, 64), rat}, rat != nil
	case float64:
		rat := new(big.Rat).SetFloat64(x)
		return number{strconv.FormatFloat(x, 'g', -1, 64), rat}, rat != nil
	default:
		return number{}, false
	}
}

// interval is what the rules on a number say about its size, and which values they list.
type interval struct {
	whole          bool
	lo, hi         *number
	openLo, openHi bool
	only           []number // of const and in
	listed         bool
}

// readRange reads the rules on a number; they may be nil, and are ignored if they are about something else.
func readRange(m protoreflect.Message) interval {
	var r interval
	if m == nil || m.Descriptor().Fields().ByName("lt") == nil {
		return r
	}
	fields := m.Descriptor().Fields()
	kind := fields.ByName("lt").Kind()
	r.whole = kind != protoreflect.FloatKind && kind != protoreflect.DoubleKind
	one := func(name protoreflect.Name) *number {
		fd := fields.ByName(name)
		if fd == nil || !m.Has(fd) {
			return nil
		}
		if n, ok := readNumber(fd, m.Get(fd)); ok {
			return &n
		}
		return nil
	}
	if r.lo = one("gte"); r.lo == nil {
		r.lo = one("gt")
		r.openLo = r.lo != nil
	}
	if r.hi = one("lte"); r.hi == nil {
		r.hi = one("lt")
		r.openHi = r.hi != nil
	}
	if c := one("const"); c != nil {
		r.only, r.listed = []number{*c}, true
	} else if in := fields.ByName("in"); m.Has(in) {
		list := m.Get(in).List()
		r.listed = true
		for i := range list.Len() {
			if n, ok := readNumber(in, list.Get(i)); ok {
				r.only = append(r.only, n)
			}
		}
	}
	return r
}

// inverted says whether the range is everything outside two bounds.
func (r interval) inverted() bool { return r.lo != nil && r.hi != nil && r.hi.rat.Cmp(r.lo.rat) < 0 }

// closed are the bounds without exclusion, for whole numbers.
func (r interval) closed() (lo, hi *number) {
	step := func(n *number, by int64, open bool) *number {
		if n == nil || !open || !r.whole {
			return n
		}
		rat := new(big.Rat).Add(n.rat, new(big.Rat).SetInt64(by))
		return &number{rat.Num().String(), rat}
	}
	return step(r.lo, 1, r.openLo), step(r.hi, -1, r.openHi)
}

// safe says whether every legal number is exact as a double.
func (r interval) safe(unsigned bool) bool {
	limit := new(big.Rat).SetInt64(1<<53 - 1)
	below := func(n *number) bool { return n != nil && new(big.Rat).Abs(n.rat).Cmp(limit) <= 0 }
	if r.listed {
		for i := range r.only {
			if !below(&r.only[i]) {
				return false
			}
		}
		return true
	}
	lo, hi := r.closed()
	return !r.inverted() && below(hi) && (unsigned && lo == nil || below(lo))
}

// numbers bounds the value by the range.
func (a applier) numbers(kind string, r interval) {
	lo, hi := r.closed()
	open := func(o bool) bool { return o && !r.whole }
	bounds := &Node{}
	if lo != nil {
		bounds.Least = &Bound{Value: lo.text, Exclusive: open(r.openLo)}
	}
	if hi != nil {
		bounds.Most = &Bound{Value: hi.text, Exclusive: open(r.openHi)}
	}
	switch {
	case lo == nil && hi == nil:
	case r.inverted():
		a.node.Notes = append(a.node.Notes, "Not between "+hi.text+" and "+lo.text+".")
	case a.node.Kind == KindString: // a 64-bit number as text
		a.node.Notes = append(a.node.Notes, bounds.rangeWords())
	default:
		a.node.Least, a.node.Most = bounds.Least, bounds.Most
	}
	if r.listed {
		a.node.Enum = nil
		for _, n := range r.only {
			text := n.text
			if a.node.Kind == KindString {
				text = quote(text)
			}
			a.node.Enum = append(a.node.Enum, text)
		}
	}
}

// listed notes how a rule on a number is told, and says the one that has no keyword.
func (a applier) listed(name, rule string, v protoreflect.Value) bool {
	switch rule {
	case "not_in":
		a.say(name, "Not %s.", join(v.List(), protoreflect.Value.String))
	case "finite":
		a.used(name, Keyword) // JSON has no other numbers
	case "const", "in", "lt", "lte", "gt", "gte":
		a.used(name, Keyword)
	default:
		return false
	}
	return true
}

// rangeWords says the bounds of a number in words.
func (n *Node) rangeWords() string {
	least := func(b *Bound) string {
		if b.Exclusive {
			return "more than " + b.Value
		}
		return "at least " + b.Value
	}
	most := func(b *Bound) string {
		if b.Exclusive {
			return "less than " + b.Value
		}
		return "at most " + b.Value
	}
	switch {
	case n.Least == nil:
		return sentence(most(n.Most))
	case n.Most == nil:
		return sentence(least(n.Least))
	default:
		return sentence(least(n.Least) + " and " + most(n.Most))
	}
}

// minSize says the least size in words.
func (n *Node) minSize() string { return "At least " + count(*n.MinSize, n.unit()) + "." }

// maxSize says the most size in words.
func (n *Node) maxSize() string { return "At most " + count(*n.MaxSize, n.unit()) + "." }

func (n *Node) unit() string {
	switch n.Kind {
	case KindList:
		return "item"
	case KindMap:
		return "key"
	default:
		return "character"
	}
}

func count(n uint64, unit string) string {
	if n == 1 {
		return "1 " + unit
	}
	return strconv.FormatUint(n, 10) + " " + unit + "s"
}
