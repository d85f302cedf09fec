package rpc

import (
	"context"
	"fmt"
	"io"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// strictJSON refuses what it does not understand. Connect's own JSON codec drops unknown fields: with it, a misspelt
// dryRun would be executed.
type strictJSON struct{}

// Name is the codec's name in content types.
func (strictJSON) Name() string { return "json" }

// MarshalWrite encodes a message.
func (strictJSON) MarshalWrite(_ context.Context, dst io.Writer, msg any) error {
	m, ok := msg.(proto.Message)
	if !ok {
		return fmt.Errorf("encode %T: it is no message", msg)
	}
	raw, err := protojson.Marshal(m)
	if err != nil {
		return fmt.Errorf("encode message: %w", err)
	}
	_, err = dst.Write(raw)
	return err
}

// UnmarshalRead decodes a message.
func (strictJSON) UnmarshalRead(_ context.Context, src io.Reader, msg any) error {
	m, ok := msg.(proto.Message)
	if !ok {
		return fmt.Errorf("decode %T: it is no message", msg)
	}
	raw, err := io.ReadAll(src)
	if err != nil {
		return err
	}
	if len(raw) == 0 {
		raw = []byte("{}")
	}
	return withoutValues(raw, m, protojson.UnmarshalOptions{RecursionLimit: 64}.Unmarshal(raw, m))
}
