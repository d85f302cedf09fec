package cli

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"throwbar.dev/throwbar/catalog"
	"throwbar.dev/throwbar/clients/cli/term"
	"throwbar.dev/throwbar/clients/cli/view"
	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	optionv1 "throwbar.dev/throwbar/gen/go/throwbar/option/v1"
)

const countSuffix = "_count"

// aggregate is how a command ended on several devices.
type aggregate struct {
	program *program
	called  *catalog.Entry // nil if only the results say what it is
	entry   *catalog.Entry // the same, or that of the first result

	rows   [][]term.Cell // device, outcome, command, why
	facts  []map[string]string
	labels []string // of facts, in order
	missed [][]term.Cell
	counts []count
	done   int // devices that did something
	words  []string
	short  map[string]int // devices by what went wrong
	saved  bool
}

// count is a number of the results that can be added up, for example closed_count.
type count struct {
	field protoreflect.Name
	total uint64
}

// aggregate shows the outcomes of several devices: a line for each, what was not done, and a line with the sum.
func (p *program) aggregate(e *catalog.Entry, outcomes []*controlv1.DeviceOutcome) {
	a := &aggregate{program: p, called: e, entry: e, short: map[string]int{}}
	names := map[string]int{}
	for _, o := range outcomes {
		names[o.GetDeviceName()]++
	}
	for _, o := range outcomes {
		name := o.GetDeviceName()
		if names[name] > 1 || name == "" {
			name = title(o)
		}
		a.add(name, o)
	}
	a.table()
	if len(a.missed) > 0 {
		p.out.Print("\n")
		p.out.Table(term.Table{Header: []string{"not done on", "id", "why", "detail"}, Rows: a.missed, Shrink: []int{0, 3}, DropEmpty: true})
	}
	p.out.Print("\n")
	p.out.Line(term.Plain, "%s", a.sum(len(outcomes)))
	if a.saved {
		p.out.Line(term.Dim, "undo: throwbar undo, or throwbar undo COMMAND for one of them")
	}
}

// add takes up the outcome of one device.
func (a *aggregate) add(name string, o *controlv1.DeviceOutcome) {
	facts := map[string]string{}
	outcome, why := term.Cell{Text: "ok", Style: term.Green}, ""
	m, err := a.result(o)
	switch {
	case o.GetError() != nil:
		outcome, why = term.Cell{Text: errorWord(o.GetError()), Style: term.Red}, o.GetError().GetMessage()
		a.fell(outcome.Text)
	case err != nil:
		outcome, why = term.Cell{Text: "unreadable", Style: term.Red}, err.Error()
		a.fell(outcome.Text)
	default:
		outcome.Text, outcome.Style = itemsWord(m)
		if n := countItems(m); n.done > 0 || n.failed+n.skipped == 0 {
			a.done++
		} else {
			a.fell(outcome.Text)
		}
		a.facts = append(a.facts, facts)
		a.take(name, m, facts)
	}
	if o.GetError() != nil || err != nil {
		a.facts = append(a.facts, facts)
	}
	a.saved = a.saved || len(o.GetSavedIds()) > 0
	a.rows = append(a.rows, []term.Cell{
		{Text: name, Style: term.Bold}, outcome, {Text: why}, {Text: o.GetCommandId(), Style: term.Dim},
	})
}

func (a *aggregate) result(o *controlv1.DeviceOutcome) (protoreflect.Message, error) {
	if o.GetError() != nil {
		return nil, nil
	}
	e := a.program.entryOf(o, a.called)
	if e == nil {
		return nil, errors.New("the result is of no command of the catalogue")
	}
	if a.entry == nil {
		a.entry = e
	}
	m, err := e.Unwrap(o.GetResult())
	if err != nil {
		return nil, fmt.Errorf("the result is not one of %s: %w", e.Name, err)
	}
	return m, nil
}

// fell counts a device on which nothing was done.
func (a *aggregate) fell(word string) {
	if a.short[word] == 0 {
		a.words = append(a.words, word)
	}
	a.short[word]++
}

// take reads a result: its single values become columns, its counts are added up, its items that failed are listed.
func (a *aggregate) take(name string, m protoreflect.Message, facts map[string]string) {
	for _, pair := range a.program.show().Facts(m) {
		if !slices.Contains(a.labels, pair[0]) {
			a.labels = append(a.labels, pair[0])
		}
		facts[pair[0]] = pair[1]
	}
	for i := range m.Descriptor().Fields().Len() {
		fd := m.Descriptor().Fields().Get(i)
		switch {
		case fd.IsList() && fd.Message() != nil && fd.Message().FullName() == itemName:
			a.missedOf(name, m.Get(fd).List(), fd.Message().Fields())
		case fd.Kind() == protoreflect.Uint32Kind && !fd.IsList() && strings.HasSuffix(string(fd.Name()), countSuffix):
			at := slices.IndexFunc(a.counts, func(c count) bool { return c.field == fd.Name() })
			if at < 0 {
				at, a.counts = len(a.counts), append(a.counts, count{field: fd.Name()})
			}
			a.counts[at].total += m.Get(fd).Uint()
		}
	}
}

func (a *aggregate) missedOf(name string, items protoreflect.List, fields protoreflect.FieldDescriptors) {
	for i := range items.Len() {
		item := items.Get(i).Message()
		status := item.Get(fields.ByName("status")).Enum()
		if view.ItemOK(commandv1.ItemStatus(status)) {
			continue
		}
		a.missed = append(a.missed, []term.Cell{
			{Text: name, Style: term.Bold},
			term.Text(item.Get(fields.ByName("id")).String()),
			{Text: statusWord(commandv1.ItemStatus(status)), Style: view.ItemStyle(commandv1.ItemStatus(status))},
			term.Text(item.Get(fields.ByName("detail")).String()),
		})
	}
}

// table writes a line for each device.
func (a *aggregate) table() {
	t := term.Table{Header: []string{"device", "outcome"}, Shrink: []int{0}, DropEmpty: true}
	for _, label := range a.labels {
		if !strings.HasSuffix(label, "id") {
			t.Shrink = append(t.Shrink, len(t.Header))
		}
		t.Header = append(t.Header, label)
	}
	t.Shrink = append(t.Shrink, len(t.Header))
	t.Header = append(t.Header, "why", "command")
	for i, row := range a.rows {
		cells := slices.Clone(row[:2])
		for _, label := range a.labels {
			cells = append(cells, term.Text(a.facts[i][label]))
		}
		t.Rows = append(t.Rows, append(cells, row[2:]...))
	}
	a.program.out.Table(t)
}

// sum is the last line: what was done on how many devices, and what went wrong on the others.
func (a *aggregate) sum(devices int) string {
	var did []string
	for _, c := range a.counts {
		did = append(did, fmt.Sprintf("%s %d", strings.ReplaceAll(strings.TrimSuffix(string(c.field), countSuffix), "_", " "), c.total))
	}
	what := "done"
	if len(did) > 0 {
		what = strings.Join(did, ", ")
		if noun := targetNoun(a.entry); noun != "" {
			what += " " + plural(noun, a.counts[len(a.counts)-1].total)
		}
	}
	line := fmt.Sprintf("%s on %d %s", what, a.done, plural("device", uint64(a.done)))
	if a.done == 0 {
		line = fmt.Sprintf("done on none of %d devices", devices)
	}
	if a.entry != nil && (len(did) == 0 || a.done == 0) {
		line = a.entry.Name + " " + line
	}
	var rest []string
	for _, word := range a.words {
		rest = append(rest, fmt.Sprintf("%d %s", a.short[word], word))
	}
	if n := len(a.missed); n > 0 && a.done > 0 {
		noun := cmp.Or(targetNoun(a.entry), "item")
		rest = append(rest, fmt.Sprintf("%d %s not", n, plural(noun, uint64(n))))
	}
	if len(rest) > 0 {
		line += "; " + strings.Join(rest, ", ")
	}
	return line
}

// targetNoun is the word for what a command acts on; empty if that is no one kind of thing.
func targetNoun(e *catalog.Entry) string {
	if e == nil {
		return ""
	}
	for i := range e.In.Fields().Len() {
		switch catalog.TargetOf(e.In.Fields().Get(i)) {
		case optionv1.Target_TARGET_TAB, optionv1.Target_TARGET_TAB_URL, optionv1.Target_TARGET_SAVED:
			return "tab"
		case optionv1.Target_TARGET_WINDOW:
			return "window"
		case optionv1.Target_TARGET_GROUP:
			return "group"
		default:
		}
	}
	return ""
}

func plural(noun string, n uint64) string {
	if n == 1 {
		return noun
	}
	return noun + "s"
}
