package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"unicode"

	"github.com/spf13/pflag"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"throwbar.dev/throwbar/catalog"
	"throwbar.dev/throwbar/clients/cli/args"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
)

// edits are the edits that the flags make of an approval's calls.
func (p *program) edits(a *controlv1.Approval, ask approveAsk) ([]*controlv1.Edit, error) {
	if len(ask.edits) == 0 && ask.editJSON == "" {
		return nil, nil
	}
	texts := map[string][]byte{}
	if ask.editJSON != "" {
		raw, err := p.editFile(ask.editJSON)
		if err != nil {
			return nil, err
		}
		if ask.call == "" && len(a.GetCalls()) > 1 {
			if texts, err = byCommand(a, raw); err != nil {
				return nil, err
			}
		} else {
			call, err := editedCall(a, ask.call)
			if err != nil {
				return nil, err
			}
			texts[call.GetCommandId()] = raw
		}
	} else {
		call, err := editedCall(a, ask.call)
		if err != nil {
			return nil, err
		}
		texts[call.GetCommandId()] = nil
	}
	var edits []*controlv1.Edit
	for _, call := range a.GetCalls() {
		raw, ok := texts[call.GetCommandId()]
		if !ok {
			continue
		}
		edit, err := p.editOf(call, raw, ask.edits)
		if err != nil {
			return nil, err
		}
		edits = append(edits, edit)
	}
	return edits, nil
}

// editFile reads the arguments of an edit.
func (p *program) editFile(name string) ([]byte, error) {
	in := p.Stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, &Exit{Code: Invalid, Err: fmt.Errorf("--edit-json: %w", err)}
		}
		defer func() { _ = f.Close() }() // only read from
		in = f
	}
	raw, err := io.ReadAll(io.LimitReader(in, maxJSON+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read the edit: %w", err)
	case len(raw) > maxJSON:
		return nil, Errorf(Invalid, "--edit-json: the file is longer than %d bytes", maxJSON)
	case len(strings.TrimSpace(string(raw))) == 0:
		return nil, Errorf(Invalid, "--edit-json: the file is empty: an edit holds all arguments")
	}
	return raw, nil
}

// byCommand takes JSON apart that has the arguments of several calls under the ids of their commands.
func byCommand(a *controlv1.Approval, raw []byte) (map[string][]byte, error) {
	var parts map[string]json.RawMessage
	if err := json.Unmarshal(raw, &parts); err != nil {
		return nil, Errorf(Invalid, "--edit-json: the approval has %d calls: write an object of their arguments by the ids of their commands, "+
			"or name one with --call", len(a.GetCalls()))
	}
	texts := map[string][]byte{}
	for id, part := range parts {
		if !slices.ContainsFunc(a.GetCalls(), func(c *controlv1.ApprovalCall) bool { return c.GetCommandId() == id }) {
			return nil, Errorf(Invalid, "--edit-json: the approval has no call with the command %q", id)
		}
		texts[id] = part
	}
	return texts, nil
}

// editedCall is the call that an edit is for: the one that is named, or the only one.
func editedCall(a *controlv1.Approval, name string) (*controlv1.ApprovalCall, error) {
	var found []*controlv1.ApprovalCall
	for _, c := range a.GetCalls() {
		if name == "" || strings.HasPrefix(c.GetCommandId(), name) || c.GetDeviceId() == name || strings.EqualFold(c.GetDeviceName(), name) {
			found = append(found, c)
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case name == "":
		return nil, Errorf(Invalid, "the approval has %d calls: say with --call which one the edit is for", len(a.GetCalls()))
	case len(found) == 0:
		return nil, Errorf(Invalid, "--call %q is neither the id of a command of this approval nor a device of it", name)
	default:
		return nil, Errorf(Invalid, "--call %q is %d calls of this approval: use the id of a command", name, len(found))
	}
}

// editOf makes an edit of JSON text, or else of single arguments on top of those that were asked for.
func (p *program) editOf(call *controlv1.ApprovalCall, raw []byte, edits []string) (*controlv1.Edit, error) {
	e, err := p.known.ByAction(call.GetProposed())
	if err != nil {
		return nil, Errorf(Failed, "this program cannot edit %s: %w", call.GetName(), err)
	}
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	flags := args.Bind(set, e.In, e.Comment, reserved())
	if err := setEdits(set, flags, edits); err != nil {
		return nil, err
	}
	if raw == nil {
		m, err := e.Args(call.GetProposed())
		if err != nil {
			return nil, Errorf(Failed, "this program cannot edit %s: %w", call.GetName(), err)
		}
		if raw, err = protojson.Marshal(m); err != nil {
			return nil, fmt.Errorf("write the arguments: %w", err)
		}
	}
	m, err := flags.Message(raw, dynamicpb.NewTypes(p.known.Files()))
	if err != nil {
		return nil, &Exit{Code: Invalid, Err: fmt.Errorf("edit of %s: %w", e.Name, err)}
	}
	// What is not shown stays as it was asked for: the server puts it back, and holds the whole against its rules.
	if err := flags.Check(m); err != nil && !hides(e.In, map[protoreflect.FullName]bool{}) {
		return nil, Errorf(Invalid, "edit of %s: %w", e.Name, err)
	}
	action, err := e.Wrap(m)
	if err != nil {
		return nil, fmt.Errorf("wrap %s: %w", e.Name, err)
	}
	if proto.Equal(action, call.GetProposed()) {
		return nil, Errorf(Invalid, "the edit of %s changes nothing", e.Name)
	}
	return &controlv1.Edit{CommandId: call.GetCommandId(), Action: action}, nil
}

// setEdits gives flags their values. A name may be a flag's or a field's.
func setEdits(set *pflag.FlagSet, flags *args.Flags, edits []string) error {
	var names []string
	known := map[string]bool{}
	flags.Each(func(flag string, _ protoreflect.FieldDescriptor) {
		names = append(names, flag)
		known[flag] = true
	})
	for _, text := range edits {
		name, value, ok := strings.Cut(text, "=")
		if !ok || name == "" {
			return Errorf(Invalid, "--edit %q is no name=value", text)
		}
		flag := strings.TrimPrefix(kebab(name), "--")
		if !known[flag] {
			if near := args.Nearest(flag, names); near != "" {
				return Errorf(Invalid, "--edit: there is no argument %q: did you mean %s?", name, near)
			}
			return Errorf(Invalid, "--edit: there is no argument %q: there is %s", name, strings.Join(names, ", "))
		}
		if err := set.Set(flag, value); err != nil {
			return &Exit{Code: Invalid, Err: fmt.Errorf("--edit: %w", tidyFlagError(err))}
		}
	}
	return nil
}

// kebab is the flag's form of a field's name.
func kebab(name string) string {
	var out strings.Builder
	for i, r := range name {
		switch {
		case r == '_':
			out.WriteByte('-')
		case unicode.IsUpper(r):
			if i > 0 {
				out.WriteByte('-')
			}
			out.WriteRune(unicode.ToLower(r))
		default:
			out.WriteRune(r)
		}
	}
	return out.String()
}

// hides says whether a message has fields that the server does not show.
func hides(md protoreflect.MessageDescriptor, seen map[protoreflect.FullName]bool) bool {
	if seen[md.FullName()] {
		return false
	}
	seen[md.FullName()] = true
	for i := range md.Fields().Len() {
		fd := md.Fields().Get(i)
		if catalog.Sensitive(fd) || fd.Message() != nil && hides(fd.Message(), seen) {
			return true
		}
	}
	return false
}
