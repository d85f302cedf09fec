package rpc

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connectproto"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"throwbar.dev/throwbar/server/fault"
)

var (
	_ connect.StableCodec = boundedWire{}
	_ connect.StableCodec = boundedJSON{}
)

// boundedWire is the binary codec, with a look at a message before it is decoded.
type boundedWire struct{ *connectproto.BinaryCodec }

func newBoundedWire() boundedWire {
	codec := connectproto.NewBinaryCodec()
	codec.UnmarshalOptions.RecursionLimit = maxDepth
	return boundedWire{codec}
}

// UnmarshalRead decodes a message.
func (c boundedWire) UnmarshalRead(_ context.Context, src io.Reader, msg any) error {
	m, raw, err := readMessage(src, msg)
	if err != nil {
		return err
	}
	if err := scanWire(raw, m.ProtoReflect().Descriptor()); err != nil {
		return err
	}
	return c.UnmarshalOptions.Unmarshal(raw, m)
}

// boundedJSON is the JSON codec, with a look at a message before it is decoded. The strict one refuses what it does not
// understand. Connect's own drops unknown fields: with it, a misspelt dryRun would be executed.
type boundedJSON struct{ *connectproto.JSONCodec }

func newBoundedJSON(strict bool) boundedJSON {
	codec := connectproto.NewJSONCodec()
	codec.UnmarshalOptions = protojson.UnmarshalOptions{RecursionLimit: maxDepth, DiscardUnknown: !strict}
	return boundedJSON{codec}
}

// UnmarshalRead decodes a message.
func (c boundedJSON) UnmarshalRead(_ context.Context, src io.Reader, msg any) error {
	m, raw, err := readMessage(src, msg)
	if err != nil {
		return err
	}
	if len(raw) == 0 {
		raw = []byte("{}")
	}
	if err := scanJSON(raw); err != nil {
		return err
	}
	if err := withoutValues(raw, m, c.UnmarshalOptions.Unmarshal(raw, m)); err != nil {
		return fault.New(fault.Invalid, "this is no valid message: %v", err)
	}
	return nil
}

// readMessage reads what is left to read. The transport hands over a buffer of its own, which is not copied: it is good
// until the message is decoded, and both decoders copy what they keep.
func readMessage(src io.Reader, msg any) (proto.Message, []byte, error) {
	m, ok := msg.(proto.Message)
	if !ok {
		return nil, nil, fmt.Errorf("decode %T: it is no message", msg)
	}
	if buffer, ok := src.(*bytes.Buffer); ok {
		return m, buffer.Bytes(), nil
	}
	raw, err := io.ReadAll(src)
	return m, raw, err
}
