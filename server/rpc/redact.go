package rpc

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"throwbar.dev/throwbar/catalog"
	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
)

// shown is a command as those see it who may read: without the values of sensitive fields, also where an error repeats
// them. Whoever sent the command has been told all of its outcome.
func (h *commandHandler) shown(c *controlv1.Command) *controlv1.Command {
	c.Error = h.shownError(c.GetAction(), c.GetResult(), c.GetError())
	if c.Action != nil {
		c.Action, _ = h.cfg.Catalogue.Redact(c.GetAction()).(*commandv1.Action)
	}
	if c.Result != nil {
		c.Result, _ = h.cfg.Catalogue.Redact(c.GetResult()).(*commandv1.Result)
	}
	return c
}

func (h *commandHandler) shownError(
	action *commandv1.Action, result *commandv1.Result, failed *commandv1.CommandError,
) *commandv1.CommandError {
	if failed == nil {
		return nil
	}
	var secrets []string
	if entry, err := h.cfg.Catalogue.ByAction(action); err == nil {
		if args, err := entry.Body(action); err == nil {
			secrets = catalog.Secrets(args)
		}
	}
	secrets = append(secrets, catalog.Secrets(result.ProtoReflect())...)
	secrets = append(secrets, catalog.Secrets(failed.ProtoReflect())...)
	clean, _ := h.cfg.Catalogue.Redact(failed).(*commandv1.CommandError)
	clean.Message = catalog.Scrub(clean.GetMessage(), secrets)
	return clean
}

// withoutValues is the error of JSON that cannot be read, without a value of it: protojson repeats what it does not like,
// which may be a secret. It says where, and names a field only if the contract has it or it looks like a name.
func withoutValues(raw []byte, m proto.Message, err error) error {
	if err == nil {
		return nil
	}
	where := ""
	if found := regexp.MustCompile(`\(line (\d+):(\d+)\)`).FindStringSubmatch(err.Error()); found != nil {
		where = fmt.Sprintf(" at line %s, column %s", found[1], found[2])
	}
	var syntax *json.SyntaxError
	if decoded := json.NewDecoder(bytes.NewReader(raw)).Decode(new(any)); errors.As(decoded, &syntax) || decoded != nil {
		return errors.New("this is no JSON" + where)
	}
	text := err.Error()
	if found := regexp.MustCompile(`unknown field "([A-Za-z][A-Za-z_]{0,39})"`).FindStringSubmatch(text); found != nil {
		return fmt.Errorf("unknown field %q%s", found[1], where)
	}
	if found := regexp.MustCompile(`for \w+ field ([A-Za-z][A-Za-z0-9_]{0,63})\b`).FindStringSubmatch(text); found != nil &&
		hasField(m.ProtoReflect().Descriptor(), found[1], map[protoreflect.FullName]bool{}) {
		return fmt.Errorf("the field %s cannot have this value%s", found[1], where)
	}
	return errors.New("this is no message of the kind that the method takes" + where)
}

// hasField says whether a message, or one inside of it, has a field of that name.
func hasField(md protoreflect.MessageDescriptor, name string, seen map[protoreflect.FullName]bool) bool {
	if seen[md.FullName()] {
		return false
	}
	seen[md.FullName()] = true
	for n := range md.Fields().Len() {
		fd := md.Fields().Get(n)
		if string(fd.Name()) == name || fd.JSONName() == name || fd.Message() != nil && hasField(fd.Message(), name, seen) {
			return true
		}
	}
	return false
}
