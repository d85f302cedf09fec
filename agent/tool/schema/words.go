package schema

import "strings"

// words says what the dialect has no keyword for, a sentence each.
func (p *printer) words(n *Node) []string {
	var notes []string
	add := func(missing bool, sentence func() string) {
		if missing {
			notes = append(notes, sentence())
		}
	}
	add(n.Unique, func() string { return "No item twice." })
	add(len(n.Enum) > 0 && !p.lists(n), func() string { return oneOfValues(n.Enum) })
	add(n.Pattern != "" && !p.matches(n), func() string { return "Matches " + n.Pattern + " ." })
	if !p.ranges && (n.Least != nil || n.Most != nil) {
		notes = append(notes, n.rangeWords())
	} else {
		add(n.Least != nil && n.Least.Exclusive && !p.exclusive, func() string { return "More than " + n.Least.Value + "." })
		add(n.Most != nil && n.Most.Exclusive && !p.exclusive, func() string { return "Less than " + n.Most.Value + "." })
	}
	sized := n.Kind == KindString && p.lengths || n.Kind == KindList && p.counts || n.Kind == KindMap && p.counts && p.limits.Pairs
	add(n.MinSize != nil && !sized && !n.notEmpty(), n.minSize)
	add(n.MaxSize != nil && !sized, n.maxSize)
	if n.Kind != KindMap {
		return notes
	}
	if p.limits.Pairs { // where the key has a schema of its own
		return append(notes, "No key twice.")
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

func oneOfValues(values []string) string {
	if len(values) == 1 {
		return "Only " + values[0] + "."
	}
	return "One of " + strings.Join(values, ", ") + "."
}

// join2 puts a text and the sentences after it together.
func join2(text string, more, still []string) string {
	words := make([]string, 0, 1+len(more)+len(still))
	if text != "" {
		words = append(words, text)
	}
	return strings.Join(append(append(words, more...), still...), " ")
}
