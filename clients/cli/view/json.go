// Package view shows messages: as JSON that is the same at every run, and as facts and tables for people.
//
// It works from descriptors, so that a message which the program was not built with shows like any other.
package view

import (
	"bytes"
	"encoding/json"
	"fmt"
	"unicode/utf16"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/dynamicpb"
	"google.golang.org/protobuf/types/known/emptypb"

	"throwbar.dev/throwbar/catalog"
	"throwbar.dev/throwbar/clients/cli/term"
)

// Renew reads a message again by a catalogue's descriptors, which may know members of it that the program does not.
// Without a catalogue, or where it does not have the message, the message stays as it is.
func Renew(m proto.Message, c *catalog.Catalogue) (proto.Message, error) {
	if c == nil {
		return m, nil
	}
	md := find(c, m.ProtoReflect().Descriptor().FullName())
	if md == nil {
		return m, nil
	}
	raw, err := proto.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", md.Name(), err)
	}
	renewed := dynamicpb.NewMessage(md)
	if err := proto.Unmarshal(raw, renewed); err != nil {
		return nil, fmt.Errorf("decode %s: %w", md.Name(), err)
	}
	return renewed, nil
}

// find is a message of a catalogue; nil if it has none of that name.
func find(c *catalog.Catalogue, name protoreflect.FullName) protoreflect.MessageDescriptor {
	d, err := c.Files().FindDescriptorByName(name)
	if err != nil {
		return nil
	}
	md, _ := d.(protoreflect.MessageDescriptor)
	return md
}

// JSON is a message as proto JSON, with all fields, on one line or indented. Characters that Visible would replace are
// written as JSON escapes.
func JSON(m proto.Message, c *catalog.Catalogue, indent bool) ([]byte, error) {
	m, err := Renew(m, c)
	if err != nil {
		return nil, err
	}
	raw, err := protojson.MarshalOptions{EmitDefaultValues: true, Resolver: resolver{c}}.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("write %s as JSON: %w", m.ProtoReflect().Descriptor().Name(), err)
	}
	return Tidy(raw, indent)
}

// Tidy gives JSON text its one form.
func Tidy(raw []byte, indent bool) ([]byte, error) {
	var out bytes.Buffer
	var err error
	if indent { // protojson puts spaces at random
		err = json.Indent(&out, raw, "", "  ")
	} else {
		err = json.Compact(&out, raw)
	}
	if err != nil {
		return nil, fmt.Errorf("tidy JSON: %w", err)
	}
	return escape(out.Bytes()), nil
}

func escape(raw []byte) []byte {
	var out []byte
	for i := 0; i < len(raw); {
		r, size := utf8.DecodeRune(raw[i:])
		switch {
		case !term.Escaped(r):
			out = append(out, raw[i:i+size]...)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			out = fmt.Appendf(out, `\u%04x\u%04x`, high, low)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
		i += size
	}
	return out
}

// resolver finds the types of details. One that nobody knows shows empty instead of making the whole answer unreadable.
type resolver struct{ catalogue *catalog.Catalogue }

func (r resolver) FindMessageByName(name protoreflect.FullName) (protoreflect.MessageType, error) {
	return r.FindMessageByURL(string(name))
}

func (r resolver) FindMessageByURL(url string) (protoreflect.MessageType, error) {
	if r.catalogue != nil {
		if mt, err := dynamicpb.NewTypes(r.catalogue.Files()).FindMessageByURL(url); err == nil {
			return mt, nil
		}
	}
	if mt, err := protoregistry.GlobalTypes.FindMessageByURL(url); err == nil {
		return mt, nil
	}
	return (&emptypb.Empty{}).ProtoReflect().Type(), nil
}

func (r resolver) FindExtensionByName(name protoreflect.FullName) (protoreflect.ExtensionType, error) {
	return protoregistry.GlobalTypes.FindExtensionByName(name)
}

func (r resolver) FindExtensionByNumber(
	message protoreflect.FullName, number protoreflect.FieldNumber,
) (protoreflect.ExtensionType, error) {
	return protoregistry.GlobalTypes.FindExtensionByNumber(message, number)
}
