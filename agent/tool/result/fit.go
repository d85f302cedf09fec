package result

import (
	"errors"
	"io"
	"strings"

	"throwbar.dev/throwbar/ident"
)

// Left says how many rows of a list were left out.
type Left struct {
	Name  string // of the member that holds the list
	Top   bool   // the list is a member of the whole
	Shown int
	Of    int
}

// sizes to which texts in rows, and then all texts, are cut.
const (
	rowText  = 400
	tinyText = 60
)

// smallMember is how many bytes a member may have that is never left out.
const smallMember = 60

// Fit makes a value no longer than limit: long texts are cut, then rows are left out from the ends of the longest
// lists, and at last the largest members, each of which says so itself. It says of which lists something is missing, but for
// those that are in something that is missing itself.
func Fit(v *Value, limit int) []Left {
	if len(v.String()) <= limit {
		return nil
	}
	v.cut(rowText, limit/2, false)
	f := fitter{whole: map[*Value]Left{}}
	f.rows(v, limit)
	if len(v.String()) > limit {
		v.cut(tinyText, limit/8, false)
		f.rows(v, limit)
	}
	f.members(v, limit)
	return f.left(v)
}

// members leaves out the largest members of a value that is still too long.
func (f *fitter) members(v *Value, limit int) {
	for over := len(v.String()) - limit; over > 0 && v.kind == object; {
		most, size := -1, smallMember
		for i, m := range v.members {
			if n := len(m.value.String()); n > size {
				most, size = i, n
			}
		}
		if most < 0 {
			break
		}
		m := &v.members[most]
		if m.value.kind == list {
			f.note(m.value, m.name, true)
		}
		m.value = Text("…(" + itoa(size) + " bytes left out)")
		over -= size - len(m.value.String())
	}
	if len(v.String()) > limit {
		*v = *Object().Add("tooLarge", Literal("true"))
	}
}

// note remembers a list before something of it is left out.
func (f *fitter) note(l *Value, name string, top bool) {
	if _, ok := f.whole[l]; !ok {
		f.whole[l] = Left{Name: name, Top: top, Of: len(l.items)}
		f.order = append(f.order, l)
	}
}

// left says what is missing of the lists of a value, as it is shown.
func (f *fitter) left(v *Value) []Left {
	shown := map[*Value]bool{}
	v.lists("", 0, func(l *Value, _ string, _ int) { shown[l] = true })
	var out []Left
	for _, l := range f.order {
		left := f.whole[l]
		if shown[l] {
			left.Shown = len(l.items)
		} else if !left.Top {
			continue
		}
		out = append(out, left)
	}
	return out
}

// cut shortens texts: those in rows of a list to one length, others to another.
func (v *Value) cut(inRow, other int, row bool) {
	switch v.kind {
	case text:
		if row {
			v.text = Cut(v.text, inRow)
		} else {
			v.text = Cut(v.text, other)
		}
	case list:
		for _, item := range v.items {
			item.cut(inRow, other, true)
		}
	case object:
		for _, m := range v.members {
			m.value.cut(inRow, other, row)
		}
	default:
	}
}

type fitter struct {
	whole map[*Value]Left // what lists were before rows were left out
	order []*Value
}

// maxLists is how many lists lose rows; a value that is too long even then is not shown at all.
const maxLists = 50

// rows leaves out rows of the lists with the most of them until the value is short enough or no list has two.
func (f *fitter) rows(v *Value, limit int) {
	for range maxLists {
		over := len(v.String()) - limit
		if over <= 0 {
			return
		}
		var most *Value
		var name string
		var top bool
		v.lists("", 0, func(l *Value, of string, depth int) {
			if len(l.items) > 1 && (most == nil || len(l.items) > len(most.items)) {
				most, name, top = l, of, depth == 1
			}
		})
		if most == nil {
			return
		}
		f.note(most, name, top)
		for over > 0 && len(most.items) > 1 {
			last := len(most.items) - 1
			over -= len(most.items[last].String()) + 1
			most.items = most.items[:last]
		}
	}
}

// lists visits every list with the name of the member that holds it.
func (v *Value) lists(name string, depth int, visit func(l *Value, name string, depth int)) {
	switch v.kind {
	case list:
		visit(v, name, depth)
		for _, item := range v.items {
			item.lists(name, depth+1, visit)
		}
	case object:
		for _, m := range v.members {
			m.value.lists(m.name, depth+1, visit)
		}
	default:
	}
}

// markLength is how many random characters a mark has, five bits each.
const markLength = 6

// Mark makes a mark that does not occur in a text.
func Mark(random io.Reader, text string) (string, error) {
	for range 8 { // once is enough, unless the source of randomness repeats itself
		mark, err := ident.Token(random, markLength)
		if err != nil || !strings.Contains(text, mark) {
			return mark, err
		}
	}
	return "", errors.New("make a mark: the source of randomness repeats itself")
}

// Seal is what a tool answers: whether it worked, then the data or error between two equal marks. The mark is new for
// each answer and does not occur in it, so that no text in it can end it.
func Seal(random io.Reader, ok bool, body *Value) (string, error) {
	text := body.String()
	mark, err := Mark(random, text)
	if err != nil {
		return "", err
	}
	head := `{"ok":false,"mark":"` + mark + `","error":`
	if ok {
		head = `{"ok":true,"mark":"` + mark + `","data":`
	}
	return head + text + `,"end":"` + mark + `"}`, nil
}
