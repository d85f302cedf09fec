package rpc

import (
	"context"
	"fmt"
	"io"

	"connectrpc.com/connect/v2"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"throwbar.dev/throwbar/server/auth"
	"throwbar.dev/throwbar/server/fault"
)

// Query calls a unary method for a caller in this process, such as the agent: the same handler, rules and access
// check as for one outside. Errors are faults, or internal.
func (s *Server) Query(
	ctx context.Context, token auth.Token, method protoreflect.FullName, req proto.Message,
) (proto.Message, error) {
	for spec := range s.inside.Specs() {
		schema, ok := spec.Schema.(protoreflect.MethodDescriptor)
		if !ok || schema.FullName() != method || spec.StreamType != connect.StreamTypeUnary {
			continue
		}
		if err := auth.Allowed(token.Scope, scopeOf(spec)); err != nil {
			return nil, err
		}
		raw, err := proto.Marshal(req)
		if err != nil {
			return nil, fmt.Errorf("encode request of %s: %w", method, err)
		}
		stream := &insideStream{request: raw}
		if err := s.inside.Call(auth.With(ctx, token), spec.Procedure, &connect.CallInfo{Spec: spec}, stream); err != nil {
			return nil, err
		}
		return stream.response, nil
	}
	return nil, fault.New(fault.Unsupported, "there is no method %s", method)
}

// insideStream is one call without a transport.
type insideStream struct {
	request  []byte
	received bool
	response proto.Message
}

// Receive decodes the request, once.
func (s *insideStream) Receive(msg any) error {
	m, ok := msg.(proto.Message)
	if s.received || !ok {
		return io.EOF
	}
	s.received = true
	if err := proto.Unmarshal(s.request, m); err != nil {
		return fault.Wrap(fault.Invalid, err, "the request cannot be decoded")
	}
	return nil
}

// SendHeaders has nothing to send.
func (*insideStream) SendHeaders() error { return nil }

// Send keeps the response.
func (s *insideStream) Send(msg any) error {
	m, ok := msg.(proto.Message)
	if !ok {
		return fmt.Errorf("answer with %T: it is no message", msg)
	}
	s.response = m
	return nil
}
