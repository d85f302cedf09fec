package throwbar

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"

	"connectrpc.com/connect/v2"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"
)

// Invoke calls a unary method that is known by its descriptor, for example one of a catalogue's queries. The messages
// may be dynamic ones, so that members that this program was not built with are neither lost nor needed.
func (c *Client) Invoke(ctx context.Context, method protoreflect.MethodDescriptor, in, out proto.Message) error {
	if method.IsStreamingClient() || method.IsStreamingServer() {
		return Errorf(CodeUnsupported, "%s is a stream", method.FullName())
	}
	return c.rpc.CallUnary(ctx, spec(method, connect.StreamTypeUnary), in, out)
}

// InvokeStream calls a method that answers with a stream, by its descriptor, and yields its messages as dynamic ones.
// An error is the last thing that it yields. Leaving the loop, or the end of the context, ends the stream.
func (c *Client) InvokeStream(
	ctx context.Context, method protoreflect.MethodDescriptor, in proto.Message,
) iter.Seq2[*dynamicpb.Message, error] {
	return func(yield func(*dynamicpb.Message, error) bool) {
		if method.IsStreamingClient() || !method.IsStreamingServer() {
			yield(nil, Errorf(CodeUnsupported, "%s does not answer with a stream", method.FullName()))
			return
		}
		stream, err := c.rpc.CallServerStream(ctx, spec(method, connect.StreamTypeServer), in)
		if err != nil {
			yield(nil, err)
			return
		}
		defer func() { _ = stream.Close() }() // what it would say, Receive has said
		for {
			out := dynamicpb.NewMessage(method.Output())
			err := stream.Receive(out)
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(out, nil) {
				return
			}
		}
	}
}

func spec(method protoreflect.MethodDescriptor, kind connect.StreamType) connect.Spec {
	return connect.Spec{
		StreamType: kind, Schema: method, Procedure: fmt.Sprintf("/%s/%s", method.Parent().FullName(), method.Name()),
	}
}
