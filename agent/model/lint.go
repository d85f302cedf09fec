package model

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Lint returns what a strict provider would refuse in a history, all of it, or nil. What [Repair] returns has no faults.
func Lint(messages []Message) error {
	l := linter{ids: make(map[string]bool), open: make(map[string]bool)}
	for i, m := range messages {
		l.at = i
		l.message(m)
	}
	l.at = len(messages)
	l.closed()
	return errors.Join(l.faults...)
}

type linter struct {
	at     int
	faults []error
	ids    map[string]bool // all call ids so far
	open   map[string]bool // calls of the last assistant message that wait for their result
	begun  bool            // a message other than a system message was seen
}

func (l *linter) fault(format string, args ...any) {
	l.faults = append(l.faults, fmt.Errorf("message %d: %s", l.at, fmt.Sprintf(format, args...)))
}

// closed demands that no call waits for its result.
func (l *linter) closed() {
	if len(l.open) > 0 {
		l.fault("%d calls before it have no result", len(l.open))
	}
	clear(l.open)
}

func (l *linter) message(m Message) {
	l.strings(m)
	if m.Role != RoleTool {
		l.closed()
	}
	switch m.Role {
	case RoleSystem:
		l.only(m, Message{Role: m.Role, Text: m.Text})
		if l.begun {
			l.fault("a system message after the beginning")
		}
		if blank(m.Text) {
			l.fault("no content")
		}
		return
	case RoleUser:
		l.only(m, Message{Role: m.Role, Text: m.Text, Images: m.Images})
		if blank(m.Text) && len(m.Images) == 0 {
			l.fault("no content")
		}
		if slices.ContainsFunc(m.Images, func(image string) bool { return !isImage(image) }) {
			l.fault("an image in a form that cannot be shown")
		}
	case RoleAssistant:
		l.only(m, Message{Role: m.Role, Text: m.Text, Reasoning: m.Reasoning, Calls: m.Calls})
		l.assistant(m)
	case RoleTool:
		l.only(m, Message{Role: m.Role, Text: m.Text, CallID: m.CallID})
		if !l.open[m.CallID] {
			l.fault("a result for %q, which no call before it waits for", m.CallID)
		}
		delete(l.open, m.CallID)
		if blank(m.Text) {
			l.fault("no content")
		}
	default:
		l.fault("unknown role %q", m.Role)
	}
	l.begun = true
}

func blank(text string) bool { return strings.TrimSpace(text) == "" }

// only demands that m has no fields but those of allowed.
func (l *linter) only(m, allowed Message) {
	if len(m.Images) != len(allowed.Images) || m.Reasoning != allowed.Reasoning ||
		len(m.Calls) != len(allowed.Calls) || m.CallID != allowed.CallID {
		l.fault("fields that a message of role %s does not have", m.Role)
	}
}

func (l *linter) assistant(m Message) {
	if !l.begun {
		l.fault("an assistant message before any user message")
	}
	if blank(m.Text) && len(m.Calls) == 0 {
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
		l.open[call.ID] = true
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
func (l *linter) strings(m Message) {
	all := append([]string{string(m.Role), m.Text, m.Reasoning, m.CallID}, m.Images...)
	for _, call := range m.Calls {
		all = append(all, call.ID, call.Name, call.Arguments, string(call.Extra))
		if plainEscapes(call.Arguments) != call.Arguments || plainEscapes(string(call.Extra)) != string(call.Extra) {
			l.fault("half a surrogate pair or NUL in call %q", call.ID)
		}
	}
	for _, s := range all {
		if !isClean(s) {
			l.fault("text that is not valid UTF-8, or has NUL")
			return
		}
	}
}
