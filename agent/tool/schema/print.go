package schema

import (
	"slices"
	"strconv"
	"strings"
)

// Print prints an object in the dialect of a profile, properties in the order of their declaration. What a dialect has no
// keyword for is said in a description. An object that ProfileStrict cannot say (see Strictable) is printed as
// ProfilePortable: such a tool is offered without strict mode.
func Print(profile Profile, o *Object) []byte {
	if profile == ProfileStrict && !Strictable(o) {
		profile = ProfilePortable
	}
	p := newPrinter(LimitsOf(profile))
	if p.limits.Definitions {
		p.define(o)
	}
	p.object(o, "", 0, false)
	return []byte(p.out.String())
}

// Portable prints an object as ProfilePortable.
func Portable(o *Object) []byte { return Print(ProfilePortable, o) }

type printer struct {
	out    strings.Builder
	limits Limits
	// what the dialect has keywords for
	exclusive, ranges, lengths, counts bool

	nodes  int
	within map[*Object]int // how often an object is open at this place
	refs   map[*Object]string
	defs   []*Object // in the order in which they are met
}

func newPrinter(l Limits) *printer {
	has := func(keyword string) bool { return slices.Contains(l.Keywords, keyword) }
	return &printer{
		limits: l, within: map[*Object]int{}, exclusive: has("exclusiveMinimum"), ranges: has("minimum"),
		lengths: has("maxLength"), counts: has("maxItems"),
	}
}

// object prints an object that stands at a place. Where it would go on without end it is left open.
func (p *printer) object(o *Object, text string, depth int, optional bool) {
	p.typed("object", text, optional)
	if p.ends(o, depth) {
		p.out.WriteByte('}')
		return
	}
	p.within[o]++
	p.out.WriteString(`,"properties":{`)
	var required []string
	for i, property := range o.Properties {
		if i > 0 {
			p.out.WriteByte(',')
		}
		p.out.WriteString(quote(property.Name) + ":")
		p.node(property.Node, depth+1, p.limits.Required && !property.Required)
		if property.Required || p.limits.Required {
			required = append(required, quote(property.Name))
		}
	}
	p.out.WriteByte('}')
	if len(required) > 0 || p.limits.Required {
		p.out.WriteString(`,"required":[` + strings.Join(required, ",") + "]")
	}
	if !o.Open && p.limits.Closed {
		p.out.WriteString(`,"additionalProperties":false`)
	}
	if depth == 0 {
		p.definitions()
	}
	p.out.WriteByte('}')
	p.within[o]--
}

func (p *printer) ends(o *Object, depth int) bool {
	return !p.limits.Definitions && (depth >= p.limits.Depth || p.within[o] == p.limits.Again || p.nodes > p.limits.Values)
}

// typed begins a schema with what it is for and its type, which an optional value of strict mode shares with null. In this
// order a text takes a token less.
func (p *printer) typed(name, text string, optional bool) {
	p.out.WriteByte('{')
	if text != "" {
		p.out.WriteString(`"description":` + quote(text) + ",")
	}
	if optional {
		p.out.WriteString(`"type":["` + name + `","null"]`)
		return
	}
	p.out.WriteString(`"type":"` + name + `"`)
}

func (p *printer) node(n *Node, depth int, optional bool) {
	p.nodes++
	if n.Paging {
		p.typed(typeName(n.Kind), "", optional)
		p.out.WriteByte('}')
		return
	}
	text := n.Text
	if n.Plain {
		text = ""
	}
	text = join2(text, n.Notes, p.words(n))
	switch n.Kind {
	case KindObject:
		p.objectNode(n, text, depth, optional)
	case KindAny:
		p.any(text)
	case KindList:
		p.typed("array", text, optional)
		p.sizes(n, "minItems", "maxItems", p.counts)
		p.out.WriteString(`,"items":`)
		p.node(n.Item, depth+1, false)
		p.out.WriteByte('}')
	case KindMap:
		p.mapping(n, text, depth, optional)
	default:
		p.typed(typeName(n.Kind), text, optional)
		p.keywords(n, optional)
		p.out.WriteByte('}')
	}
}

// objectNode prints a message as the value of a property, or refers to its definition.
func (p *printer) objectNode(n *Node, text string, depth int, optional bool) {
	if ref := p.refs[n.Object]; ref != "" {
		p.reference(ref, text, optional)
		return
	}
	if n.Text == "" {
		text = join2(n.Object.Text, n.Notes, nil)
	}
	if p.ends(n.Object, depth) {
		text = join2(text, []string{"The form of " + string(n.Object.Name.Name()) + "."}, nil)
	}
	p.object(n.Object, join2(text, n.Object.Notes, nil), depth, optional)
}

// any prints a value of any kind.
func (p *printer) any(text string) {
	if !p.limits.Typed {
		p.out.WriteByte('{')
		if text != "" {
			p.out.WriteString(`"description":` + quote(text))
		}
		p.out.WriteByte('}')
		return
	}
	p.out.WriteString(`{"anyOf":[`)
	p.typed("string", text, false)
	p.out.WriteString(`,"nullable":true},{"type":"number"},{"type":"boolean"},{"type":"object"},` +
		`{"type":"array","items":{"type":"string"}}]}`)
}

// mapping prints an object with keys of the caller's choice, or a list of pairs.
func (p *printer) mapping(n *Node, text string, depth int, optional bool) {
	if !p.limits.Pairs {
		p.typed("object", text, optional)
		p.out.WriteString(`,"additionalProperties":`)
		p.node(n.Item, depth+1, false)
		p.out.WriteByte('}')
		return
	}
	p.typed("array", text, optional)
	p.sizes(n, "minItems", "maxItems", p.counts)
	p.out.WriteString(`,"items":`)
	p.typed("object", "", false)
	p.out.WriteString(`,"properties":{"key":`)
	p.node(n.Key, depth+2, false)
	p.out.WriteString(`,"value":`)
	p.node(n.Item, depth+2, false)
	p.out.WriteString(`},"required":["key","value"]`)
	if p.limits.Closed {
		p.out.WriteString(`,"additionalProperties":false`)
	}
	p.out.WriteString(`}}`)
}

func (p *printer) keywords(n *Node, optional bool) {
	if p.lists(n) {
		values := n.Enum
		if optional {
			values = append(slices.Clip(values), "null")
		}
		p.out.WriteString(`,"enum":[` + strings.Join(values, ",") + "]")
	}
	if p.matches(n) {
		p.out.WriteString(`,"pattern":` + quote(n.Pattern))
	}
	p.bound(n.Least, "minimum", "exclusiveMinimum")
	p.bound(n.Most, "maximum", "exclusiveMaximum")
	if n.Kind == KindString {
		p.sizes(n, "minLength", "maxLength", p.lengths)
	}
}

func (p *printer) bound(b *Bound, keyword, exclusive string) {
	switch {
	case b == nil || !p.ranges:
		return
	case b.Exclusive && p.exclusive:
		keyword = exclusive
	}
	p.out.WriteString(`,"` + keyword + `":` + b.Value)
}

func (p *printer) sizes(n *Node, least, most string, has bool) {
	if !has {
		return
	}
	if n.MinSize != nil && !n.notEmpty() {
		p.out.WriteString(`,"` + least + `":` + strconv.FormatUint(*n.MinSize, 10))
	}
	if n.MaxSize != nil {
		p.out.WriteString(`,"` + most + `":` + strconv.FormatUint(*n.MaxSize, 10))
	}
}

// notEmpty says whether the least size of a text is one character, which is not worth a word: nobody writes empty text
// where something is meant, and the decoder says so if it happens.
func (n *Node) notEmpty() bool { return n.Kind == KindString && n.MinSize != nil && *n.MinSize == 1 }

// lists and matches say whether the dialect has a keyword for the enum and for the pattern.
func (p *printer) lists(n *Node) bool {
	return len(n.Enum) > 0 && !(p.limits.TextEnums && n.Kind != KindString)
}

func (p *printer) matches(n *Node) bool {
	return n.Pattern != "" && (!p.limits.Anchored || anchored(n.Pattern))
}

// anchored says whether a pattern is about the whole text and has no groups.
func anchored(pattern string) bool {
	return strings.HasPrefix(pattern, "^") && strings.HasSuffix(pattern, "$") && !strings.HasSuffix(pattern, `\$`) &&
		!strings.ContainsAny(pattern, "(|")
}

func typeName(k Kind) string {
	switch k {
	case KindList:
		return "array"
	case KindString:
		return "string"
	case KindInteger:
		return "integer"
	case KindNumber:
		return "number"
	case KindBoolean:
		return "boolean"
	default:
		return "object"
	}
}
