package rpc

import (
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"

	"throwbar.dev/throwbar/server/fault"
)

const (
	// maxDepth is how deep messages may be nested.
	maxDepth = 64
	// maxElements is how many fields and list elements a message may have, with all that is nested in it. Two bytes on
	// the wire may become hundreds in memory: without it a message of four megabytes would take a gigabyte.
	maxElements = 250_000
)

// scan looks through an encoded message before it is decoded: how deep it is nested, and how much it would become.
// What is not well-formed is left to the decoder to tell.
type scan struct{ elements int }

func (s *scan) count(n int) error {
	if s.elements += n; s.elements > maxElements {
		return fault.New(fault.Invalid, "this message has more than %d fields and elements: send less at a time", maxElements)
	}
	return nil
}

func tooDeep() error {
	return fault.New(fault.Invalid, "this message is nested more than %d deep", maxDepth)
}

// scanWire looks through the wire form of a message.
func scanWire(raw []byte, message protoreflect.MessageDescriptor) error {
	// Each level and each field takes two bytes or more.
	if len(raw) <= 2*maxDepth {
		return nil
	}
	s := &scan{}
	_, err := s.message(raw, message, 1, 0)
	return err
}

// message looks through one message, or through a group up to its end. It returns what it has not read. A message that
// is not known (inside an unknown group) has no descriptor.
func (s *scan) message(raw []byte, message protoreflect.MessageDescriptor, depth int, group protowire.Number) ([]byte, error) {
	if depth > maxDepth {
		return nil, tooDeep()
	}
	for len(raw) > 0 {
		number, kind, n := protowire.ConsumeTag(raw)
		if n < 0 {
			return nil, nil
		}
		raw = raw[n:]
		if err := s.count(1); err != nil {
			return nil, err
		}
		if kind == protowire.EndGroupType {
			if number == group {
				return raw, nil
			}
			return nil, nil
		}
		var err error
		if raw, err = s.field(raw, known(message, number), number, kind, depth); err != nil || raw == nil {
			return nil, err
		}
	}
	return raw, nil
}

func known(message protoreflect.MessageDescriptor, number protowire.Number) protoreflect.FieldDescriptor {
	if message == nil {
		return nil
	}
	return message.Fields().ByNumber(number)
}

// field looks through the value of a field. It returns nothing where the decoder will stop.
func (s *scan) field(
	raw []byte, field protoreflect.FieldDescriptor, number protowire.Number, kind protowire.Type, depth int,
) ([]byte, error) {
	switch kind {
	case protowire.StartGroupType:
		var inner protoreflect.MessageDescriptor
		if field != nil {
			inner = field.Message()
		}
		return s.message(raw, inner, depth+1, number)
	case protowire.BytesType:
		value, n := protowire.ConsumeBytes(raw)
		if n < 0 {
			return nil, nil
		}
		if err := s.value(value, field, depth); err != nil {
			return nil, err
		}
		return raw[n:], nil
	default:
		n := protowire.ConsumeFieldValue(number, kind, raw)
		if n < 0 {
			return nil, nil
		}
		return raw[n:], nil
	}
}

// value looks into what has a length: a message, a list of packed numbers, or text.
func (s *scan) value(value []byte, field protoreflect.FieldDescriptor, depth int) error {
	if field == nil {
		return nil
	}
	switch kind := field.Kind(); kind {
	case protoreflect.MessageKind, protoreflect.GroupKind:
		_, err := s.message(value, field.Message(), depth+1, 0)
		return err
	case protoreflect.StringKind, protoreflect.BytesKind:
		return nil
	default: // a number takes one byte at least
		return s.count(packed(value, kind))
	}
}

func packed(value []byte, kind protoreflect.Kind) int {
	switch kind {
	case protoreflect.Fixed32Kind, protoreflect.Sfixed32Kind, protoreflect.FloatKind:
		return len(value) / 4
	case protoreflect.Fixed64Kind, protoreflect.Sfixed64Kind, protoreflect.DoubleKind:
		return len(value) / 8
	default:
		n := 0
		for _, b := range value {
			if b < 0x80 {
				n++
			}
		}
		return n
	}
}
