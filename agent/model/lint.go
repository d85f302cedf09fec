package model

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Lint returns what a strict provider would refuse in a history, all of it, or nil. What [Repair] returns has no faults.
func Lint(messages []Message) error {
	l := newLinter(len(messages))
	for i := range messages {
		l.at = i
		l.message(&messages[i])
	}
	l.at = len(messages)
	l.closed()
	return errors.Join(l.faults...)
}

// asRepaired reports whether Repair has nothing to do: there are no faults, and results are in the order of their calls.
func asRepaired(messages []Message) bool {
	return newLinter(len(messages)).accepts(messages)
}

// accepts reports whether messages go on from those before without a fault and in order, so that [Repair] has nothing to do.
// What it has not accepted the linter cannot go on from.
func (l *linter) accepts(messages []Message) bool {
	for i := range messages {
		if l.message(&messages[i]); len(l.faults) > 0 || l.moved {
			return false
		}
	}
	l.closed()
	return len(l.faults) == 0
}

type linter struct {
	at     int
	faults []error
	ids    map[string]bool // all call ids so far
	open   []string        // calls of the last assistant message that wait for their result
	moved  bool            // a result is not in the order of the calls
	begun  bool            // a message other than a system message was seen
}

func newLinter(messages int) *linter { return &linter{ids: make(map[string]bool, messages/2)} }

// back makes it that of the first n of the messages that it has accepted, after which no call waits.
func (l *linter) back(messages []Message, n int) {
	for i := range messages[n:] {
		for _, call := range messages[n+i].Calls {
			delete(l.ids, call.ID) // no other call has it
		}
	}
	l.begun = n > 0 && messages[n-1].Role != RoleSystem
}

func (l *linter) fault(format string, args ...any) {
	l.faults = append(l.faults, fmt.Errorf("message %d: %s", l.at, fmt.Sprintf(format, args...)))
}

// closed demands that no call waits for its result.
func (l *linter) closed() {
	if len(l.open) > 0 {
		l.fault("%d calls before it have no result", len(l.open))
	}
	l.open = l.open[:0]
}

func (l *linter) message(m *Message) {
	l.strings(m)
	if m.Role != RoleTool {
		l.closed()
	}
	switch m.Role {
	case RoleSystem:
		l.only(m, fieldSet{})
		if l.begun {
			l.fault("a system message after the beginning")
		}
		if Blank(m.Text) {
			l.fault("no content")
		}
		return
	case RoleUser:
		l.only(m, fieldSet{images: true})
		if Blank(m.Text) && (len(m.Images) == 0 || m.Text != "") {
			l.fault("no content")
		}
		if slices.ContainsFunc(m.Images, func(image string) bool { return !isImage(image) }) {
			l.fault("an image in a form that cannot be shown")
		}
	case RoleAssistant:
		l.only(m, fieldSet{calls: true})
		l.assistant(m)
	case RoleTool:
		l.only(m, fieldSet{callID: true})
		l.result(m.CallID)
		if Blank(m.Text) {
			l.fault("no content")
		}
	default:
		l.fault("unknown role %q", m.Role)
	}
	l.begun = true
}

// Blank reports whether nothing of a text is told to a model: it has only white space, or characters that [Repair] takes out.
func Blank(text string) bool { return strings.TrimSpace(clean(text)) == "" }

// result takes a result to its call.
func (l *linter) result(id string) {
	at := slices.Index(l.open, id)
	if at < 0 {
		l.fault("a result for %q, which no call before it waits for", id)
		return
	}
	l.moved = l.moved || at > 0
	l.open = slices.Delete(l.open, at, at+1)
}

// fieldSet is the fields that a message has beside its text.
type fieldSet struct{ images, calls, callID bool } // reasoning goes with calls

// only demands that m has no fields but these.
func (l *linter) only(m *Message, has fieldSet) {
	if len(m.Images) > 0 && !has.images || m.Reasoning+m.Profile != "" && !has.calls || len(m.Calls) > 0 && !has.calls || m.CallID != "" && !has.callID {
		l.fault("fields that a message of role %s does not have", m.Role)
	}
}

func (l *linter) assistant(m *Message) {
	if !l.begun {
		l.fault("an assistant message before any user message")
	}
	if Blank(m.Text) && (len(m.Calls) == 0 || m.Text != "") {
		l.fault("no content")
	}
	for _, call := range m.Calls {
		switch {
		case call.ID == "":
			l.fault("a call without an id")
		case !isID(call.ID):
			l.fault("the call id %q", call.ID)
		case l.ids[call.ID]:
			l.fault("the call id %q a second time", call.ID)
		}
		l.ids[call.ID] = true
		l.open = append(l.open, call.ID)
		if !isLegalName(call.Name) {
			l.fault("the call name %q", call.Name)
		}
		if !isArguments(call.Arguments) {
			l.fault("arguments of call %q that are not a JSON object", call.ID)
		}
		if len(call.Extra) > 0 && !isArguments(string(call.Extra)) {
			l.fault("extra fields of call %q that are not a JSON object", call.ID)
		}
	}
}

// strings demands clean strings.
func (l *linter) strings(m *Message) {
	sound := isClean(string(m.Role)) && isClean(m.Text) && isClean(m.Reasoning) && isClean(m.CallID)
	for _, image := range m.Images {
		sound = sound && isClean(image)
	}
	for _, call := range m.Calls {
		sound = sound && isClean(call.ID) && isClean(call.Name) && isClean(call.Arguments) && isClean(string(call.Extra))
		if plainEscapes(call.Arguments) != call.Arguments || plainEscapes(string(call.Extra)) != string(call.Extra) {
			l.fault("half a surrogate pair or NUL in call %q", call.ID)
		}
	}
	if !sound {
		l.fault("text that is not valid UTF-8, or has NUL")
	}
}
