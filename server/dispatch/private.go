package dispatch

import (
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"throwbar.dev/throwbar/catalog"
	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	optionv1 "throwbar.dev/throwbar/gen/go/throwbar/option/v1"
)

// Of a private tab nothing but ids is written down that outlives the command: no row to bring it back by, no title or
// address in what a person is asked, and no text in a result, an error or the audit record. A device leaves private tabs alone
// that it is to save and close: nothing would bring them back.

// privateText stands for the title of a private tab where it is written down.
const privateText = "(a private tab)"

// isAbout says whether a part is about something private.
func (d *Dispatcher) isAbout(p *part) bool {
	return d.areAny(p.refs) || slices.ContainsFunc(p.tabs, d.Browser.Private)
}

// areAny says whether any of some ids is of something private.
func (d *Dispatcher) areAny(refs []catalog.Ref) bool {
	for _, ref := range refs {
		if _, composite := kindOf(ref.Kind); composite && d.Browser.Private(ref.ID) {
			return true
		}
	}
	return false
}

// shown is what a part would act on, as it is written down for whoever decides about it.
func (d *Dispatcher) shown(p *part) []*controlv1.PlannedTarget {
	targets := d.planned(p)
	for _, t := range targets {
		if d.Browser.Private(t.GetId()) {
			t.Title, t.Url = privateText, ""
		}
	}
	return targets
}

// isPrivate says whether a command that has ended was about something private, or answers with it.
func (d *Dispatcher) isPrivate(l *live, out protoreflect.Message) bool {
	if l.rec.Private || out != nil && d.areAny(catalog.Targets(out)) {
		return true
	}
	if l.part != nil || l.entry == nil {
		return false
	}
	// A restarted server does not know what was so when it was accepted, and perhaps not yet what the browser shows.
	args, err := l.entry.Body(l.action)
	return err != nil || d.areAny(catalog.Targets(args)) || out != nil && d.unknown(catalog.Targets(out))
}

// unknown says whether any of some ids is of a tab that the server does not know.
func (d *Dispatcher) unknown(refs []catalog.Ref) bool {
	return slices.ContainsFunc(refs, func(ref catalog.Ref) bool {
		return ref.Kind == optionv1.Target_TARGET_TAB && !d.Browser.Exists(ref.ID)
	})
}

// keptResult is a result as it is written down, and as its caller is told it. What an agent is told is written down, too.
func (d *Dispatcher) keptResult(l *live, result *commandv1.Result, out protoreflect.Message) (kept, told *commandv1.Result) {
	if !d.isPrivate(l, out) {
		return result, result
	}
	kept, ok := Discreet(result).(*commandv1.Result)
	if !ok {
		kept = &commandv1.Result{}
	}
	if l.rec.Conversation != "" {
		return kept, kept
	}
	return kept, result
}

// keptError is an error as it is written down.
func (d *Dispatcher) keptError(l *live, ce *commandv1.CommandError) *commandv1.CommandError {
	if !d.isPrivate(l, nil) {
		return ce
	}
	return &commandv1.CommandError{
		Code: ce.GetCode(), Message: "it was about a private tab, and what was said of it is not kept", Retryable: ce.GetRetryable(),
	}
}

// Discreet is a copy of a message with the ids, numbers and flags that are in it, and no text that a page or a person wrote.
func Discreet(m proto.Message) proto.Message {
	out := proto.Clone(m)
	silence(out.ProtoReflect())
	return out
}

func silence(m protoreflect.Message) {
	m.SetUnknown(nil)
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case fd.IsMap():
			m.Clear(fd) // its keys may be texts
		case fd.Message() != nil && fd.IsList():
			for i := range v.List().Len() {
				silence(v.List().Get(i).Message())
			}
		case fd.Message() != nil:
			silence(v.Message())
		case (fd.Kind() == protoreflect.StringKind || fd.Kind() == protoreflect.BytesKind) && !isID(fd):
			m.Clear(fd)
		}
		return true
	})
}

// isID says whether a field has ids, or a pattern that says which tabs are meant.
func isID(fd protoreflect.FieldDescriptor) bool {
	name := string(fd.Name())
	return catalog.TargetOf(fd) != optionv1.Target_TARGET_UNSPECIFIED || name == "id" || strings.HasSuffix(name, "_id")
}
