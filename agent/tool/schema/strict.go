package schema

import (
	"strconv"
	"strings"
)

// Strictable says whether ProfileStrict can say an object: nothing in it is free (any JSON value, a message of a type
// that the caller chooses) and it is within the limits of strict mode. A tool that it cannot say is offered without.
func Strictable(o *Object) bool {
	m := measure{limits: LimitsOf(ProfileStrict), seen: map[*Object]int{}, open: map[*Object]bool{}}
	m.object(o, 1)
	l := m.limits
	return !m.free && m.deepest <= l.Nesting && m.properties <= l.Properties && m.enums <= l.Enums && m.names <= l.Names
}

// measure adds up what strict mode limits.
type measure struct {
	limits                            Limits
	seen                              map[*Object]int // the deepest level at which it was met
	open                              map[*Object]bool
	free                              bool
	properties, enums, names, deepest int
}

func (m *measure) object(o *Object, depth int) {
	m.deepest = max(m.deepest, depth)
	m.free = m.free || o.Open
	if m.open[o] || depth > m.limits.Nesting || depth <= m.seen[o] {
		return
	}
	first := m.seen[o] == 0
	m.open[o], m.seen[o] = true, depth
	for _, p := range o.Properties {
		if first {
			m.properties++
			m.names += len(p.Name)
		}
		m.node(p.Node, depth, first)
	}
	delete(m.open, o)
}

func (m *measure) node(n *Node, depth int, first bool) {
	if first && len(n.Enum) > 0 {
		size := len(strings.Join(n.Enum, ""))
		m.enums += len(n.Enum) + 1
		m.names += size
		m.free = m.free || len(n.Enum) > m.limits.LongEnum && size > m.limits.LongEnumText
	}
	switch n.Kind {
	case KindAny:
		m.free = true
	case KindObject:
		m.object(n.Object, depth+1)
	case KindList:
		m.deepest = max(m.deepest, depth+1)
		m.node(n.Item, depth+1, first)
	case KindMap: // a list of objects
		if first {
			m.properties += 2
			m.names += len("key") + len("value")
		}
		m.deepest = max(m.deepest, depth+2)
		m.node(n.Key, depth+2, first)
		m.node(n.Item, depth+2, first)
	default:
	}
}

// define finds the messages that are used twice, or in themselves, and names them.
func (p *printer) define(root *Object) {
	p.refs = map[*Object]string{}
	uses, order := map[*Object]int{}, []*Object(nil)
	var object func(o *Object)
	var node func(n *Node)
	object = func(o *Object) {
		if uses[o]++; uses[o] > 1 {
			if uses[o] == 2 {
				order = append(order, o)
			}
			return
		}
		for _, property := range o.Properties {
			node(property.Node)
		}
	}
	node = func(n *Node) {
		switch n.Kind {
		case KindObject:
			object(n.Object)
		case KindList, KindMap:
			node(n.Item)
		default:
		}
	}
	object(root)
	taken := map[string]bool{}
	for _, o := range order {
		if o == root {
			p.refs[o] = "#"
			continue
		}
		short := string(o.Name.Name())
		name := short
		for n := 2; taken[name]; n++ {
			name = short + strconv.Itoa(n)
		}
		taken[name] = true
		p.refs[o] = "#/$defs/" + name
		p.defs = append(p.defs, o)
	}
}

// reference points to a definition. Nothing may stand beside $ref, so what else there is to say stands around it.
func (p *printer) reference(ref, text string, optional bool) {
	if text == "" && !optional {
		p.out.WriteString(`{"$ref":"` + ref + `"}`)
		return
	}
	p.out.WriteByte('{')
	if text != "" {
		p.out.WriteString(`"description":` + quote(text) + ",")
	}
	p.out.WriteString(`"anyOf":[{"$ref":"` + ref + `"}`)
	if optional {
		p.out.WriteString(`,{"type":"null"}`)
	}
	p.out.WriteString(`]}`)
}

// definitions prints the messages that are referred to.
func (p *printer) definitions() {
	if len(p.defs) == 0 {
		return
	}
	p.out.WriteString(`,"$defs":{`)
	for i, o := range p.defs {
		if i > 0 {
			p.out.WriteByte(',')
		}
		p.out.WriteString(quote(strings.TrimPrefix(p.refs[o], "#/$defs/")) + ":")
		p.object(o, join2(o.Text, o.Notes, nil), 1, false)
	}
	p.out.WriteByte('}')
}
