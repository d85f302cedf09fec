// Package tool makes the tools of a model from the catalogue: what the model is told of each command, query and facility,
// how its arguments become a message, and how the typed result becomes what it reads.
//
// A Set has all tools. A View is what one conversation's agent has of them, by its Access. A request to a model carries
// what View.Offered says: all of it, or, where that would be too much, those that are always there, those that were
// loaded, and one to find the others.
package tool

import (
	"strings"
	"sync"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoregistry"

	"throwbar.dev/throwbar/agent/tool/args"
	"throwbar.dev/throwbar/agent/tool/result"
	"throwbar.dev/throwbar/agent/tool/schema"
	"throwbar.dev/throwbar/catalog"
	optionv1 "throwbar.dev/throwbar/gen/go/throwbar/option/v1"
)

// Tool is one command, query or facility as a model sees it.
type Tool struct {
	Name        string
	Description string
	Entry       *catalog.Entry
	// Schema is what the arguments may be, the device included where the tool asks for it.
	Schema *schema.Object
	// Rules are the rules of the arguments and how the schema tells them.
	Rules []schema.Rule

	finds   bool // it is the one that finds others
	files   *protoregistry.Files
	printed sync.Map // *offer by schema.Profile
	index   sync.Once
	words   map[string]int // what it is found by, and how much that counts; made by index
}

// Reads says whether the tool changes nothing.
func (t *Tool) Reads() bool {
	switch {
	case t.Entry.Command != nil:
		return t.Entry.Command.GetEffect() == optionv1.Effect_EFFECT_READ
	case t.Entry.Facility != nil:
		return t.Entry.Facility.GetEffect() == optionv1.Effect_EFFECT_READ
	default:
		return true
	}
}

// granted says whether nobody has the tool unless it is named in Access.Extra.
func (t *Tool) granted() bool { return t.Entry.Facility.GetGranted() }

// always says whether a model has it at hand whatever else there is.
func (t *Tool) always() bool {
	if t.Entry.Method != nil {
		option, _ := proto.GetExtension(t.Entry.Method.Options(), optionv1.E_Tool).(*optionv1.Tool)
		return option.GetAlways()
	}
	return t.Entry.Command.GetAlways() || t.Entry.Facility.GetAlways()
}

// device adds the argument that names the device, in front of the others.
func (t *Tool) device(required bool) {
	text := "Id of the device to run it on."
	if !required {
		text = "Device to run it on; the one it was saved on if left out."
	}
	one := uint64(1)
	node := &schema.Node{Kind: schema.KindString, Text: text, Plain: required, MinSize: &one}
	o := *t.Schema // the object of the message stays as it is
	o.Properties = append([]schema.Property{{Name: deviceKey, Node: node, Required: required}}, o.Properties...)
	t.Schema = &o
}

// Call is what a model asked a tool to do.
type Call struct {
	args.Decoded
	// DeviceID is the device that the model named in the envelope; empty if none.
	DeviceID string
}

// Decode reads the arguments of a call. The error is args.Problems, which says everything that is wrong with them.
// Obvious mistakes are mended and listed, unless strict is set.
func (t *Tool) Decode(arguments string, strict bool) (Call, error) {
	return t.DecodeAs(schema.ProfilePortable, arguments, strict)
}

// DecodeAs is Decode for a tool that was described in a profile: what that asks for, as null in strict mode, is no mistake.
func (t *Tool) DecodeAs(profile schema.Profile, arguments string, strict bool) (Call, error) {
	var call Call
	var err error
	extra := map[string]*string{}
	if t.Entry.Command != nil {
		extra[deviceKey], extra[deviceField] = &call.DeviceID, &call.DeviceID
	}
	call.Decoded, err = args.Decode(arguments, t.Entry.New(), args.Options{
		Strict: strict, Profile: profile, Extra: extra, Required: t.requiresDevice(), Files: t.files,
	})
	return call, err
}

// requiresDevice names the argument of the envelope that has to be there.
func (t *Tool) requiresDevice() []string {
	for _, p := range t.Schema.Properties {
		if p.Name == deviceKey && p.Required && t.Entry.Command != nil {
			return []string{deviceKey}
		}
	}
	return nil
}

// maxDescription is how many bytes a model is told of what a tool is for. Providers have limits from 1,024 on.
const maxDescription = 1000

// describe is what a model is told of a tool, outside of any marks: bounded, on one line, with nothing that cannot be seen.
func describe(summary string, notes []string) string {
	words := strings.Fields(summary)
	return result.Cut(result.Visible(strings.Join(append(words, notes...), " ")), maxDescription)
}

// Arguments are the arguments of a call as they were understood, as JSON.
func (c Call) Arguments() string {
	v := result.Object()
	if c.DeviceID != "" {
		v.Add(deviceKey, result.Text(c.DeviceID))
	}
	v.Merge(result.Arguments(c.Message))
	return v.String()
}

// Key is equal for calls that ask for the same.
func (c Call) Key() string {
	raw, err := proto.MarshalOptions{Deterministic: true}.Marshal(c.Message)
	if err != nil {
		return c.Arguments() // not reachable: what was decoded has a wire form
	}
	return c.DeviceID + "\x00" + string(raw)
}
