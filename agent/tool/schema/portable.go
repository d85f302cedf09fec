package schema

import (
	"strconv"
	"strings"
)

const (
	// maxDepth is how deep objects are written out within each other; strict providers end at 10.
	maxDepth = 8
	// maxAgain is how often a message is written out within itself.
	maxAgain = 3
	// maxNodes is how many values one tool's schema writes out.
	maxNodes = 400
)

// Portable prints an object in the part of JSON Schema that every provider reads: types as one word, closed objects, and
// the keywords that Lint lists. What other keywords would say is a sentence in a description. Messages are written out
// where they stand; one that goes on without end stops with an open object.
func Portable(o *Object) []byte {
	p := &portable{within: map[*Object]int{}}
	p.object(o, "", 0)
	return []byte(p.out.String())
}

type portable struct {
	out    strings.Builder
	nodes  int
	within map[*Object]int // how often an object is open at this place
}

func (p *portable) object(o *Object, text string, depth int) {
	p.out.WriteString(`{"type":"object"`)
	p.description(text)
	if depth == maxDepth || p.within[o] == maxAgain || p.nodes > maxNodes {
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
		p.node(property.Node, depth+1)
		if property.Required {
			required = append(required, quote(property.Name))
		}
	}
	p.out.WriteByte('}')
	if len(required) > 0 {
		p.out.WriteString(`,"required":[` + strings.Join(required, ",") + "]")
	}
	if !o.Open {
		p.out.WriteString(`,"additionalProperties":false`)
	}
	p.out.WriteByte('}')
	p.within[o]--
}

func (p *portable) node(n *Node, depth int) {
	p.nodes++
	if n.Paging {
		p.out.WriteString(`{"type":"` + typeName(n.Kind) + `"}`)
		return
	}
	text := n.Text
	if n.Plain {
		text = ""
	}
	text = join2(text, n.Notes, portableNotes(n))
	switch n.Kind {
	case KindObject:
		if n.Text == "" {
			text = join2(n.Object.Text, n.Notes, nil)
		}
		if p.within[n.Object] == maxAgain || depth == maxDepth || p.nodes > maxNodes {
			text = join2(text, []string{"The form of " + string(n.Object.Name.Name()) + "."}, nil)
		}
		p.object(n.Object, join2(text, n.Object.Notes, nil), depth)
		return
	case KindAny:
		p.out.WriteString(`{`)
		if text != "" {
			p.out.WriteString(`"description":` + quote(text))
		}
		p.out.WriteByte('}')
		return
	default:
	}
	p.out.WriteString(`{"type":"` + typeName(n.Kind) + `"`)
	p.description(text)
	p.keywords(n)
	switch n.Kind {
	case KindList:
		p.out.WriteString(`,"items":`)
		p.node(n.Item, depth)
	case KindMap:
		p.out.WriteString(`,"additionalProperties":`)
		p.node(n.Item, depth)
	default:
	}
	p.out.WriteByte('}')
}

func (p *portable) description(text string) {
	if text != "" {
		p.out.WriteString(`,"description":` + quote(text))
	}
}

func (p *portable) keywords(n *Node) {
	if len(n.Enum) > 0 {
		p.out.WriteString(`,"enum":[` + strings.Join(n.Enum, ",") + "]")
	}
	if n.Pattern != "" {
		p.out.WriteString(`,"pattern":` + quote(n.Pattern))
	}
	if n.Least != nil {
		p.out.WriteString(`,"minimum":` + n.Least.Value)
	}
	if n.Most != nil {
		p.out.WriteString(`,"maximum":` + n.Most.Value)
	}
	sizes := map[Kind][2]string{KindString: {"minLength", "maxLength"}, KindList: {"minItems", "maxItems"}}[n.Kind]
	if n.MinSize != nil && sizes[0] != "" && !(n.Kind == KindString && *n.MinSize == 1) {
		p.out.WriteString(`,"` + sizes[0] + `":` + strconv.FormatUint(*n.MinSize, 10))
	}
	if n.MaxSize != nil && sizes[1] != "" {
		p.out.WriteString(`,"` + sizes[1] + `":` + strconv.FormatUint(*n.MaxSize, 10))
	}
}

// portableNotes says what those keywords do not.
func portableNotes(n *Node) []string {
	var notes []string
	if n.Unique {
		notes = append(notes, "No item twice.")
	}
	if n.Least != nil && n.Least.Exclusive {
		notes = append(notes, "More than "+n.Least.Value+".")
	}
	if n.Most != nil && n.Most.Exclusive {
		notes = append(notes, "Less than "+n.Most.Value+".")
	}
	if n.Kind != KindMap {
		return notes
	}
	if n.MinSize != nil {
		notes = append(notes, n.minSize())
	}
	if n.MaxSize != nil {
		notes = append(notes, n.maxSize())
	}
	return append(notes, keyNotes(n.Key)...)
}

func keyNotes(key *Node) []string {
	var notes []string
	switch {
	case len(key.Enum) > 0:
		notes = append(notes, "Keys: "+strings.Join(key.Enum, ", ")+".")
	case digits(key.Pattern):
		notes = append(notes, "Keys are whole numbers.")
	case key.Pattern != "":
		notes = append(notes, "Keys match "+key.Pattern+" .")
	}
	if key.MinSize != nil {
		notes = append(notes, "Keys: "+key.minSize())
	}
	if key.MaxSize != nil {
		notes = append(notes, "Keys: "+key.maxSize())
	}
	for _, note := range key.Notes {
		notes = append(notes, "Keys: "+note)
	}
	return notes
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

// join2 puts a text and the sentences after it together.
func join2(text string, more, still []string) string {
	words := make([]string, 0, 1+len(more)+len(still))
	if text != "" {
		words = append(words, text)
	}
	return strings.Join(append(append(words, more...), still...), " ")
}
