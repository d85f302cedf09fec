package throwbar

import (
	"context"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
)

// method is a method of the command service as the catalogue has it: its messages are not those of the program.
func method(t *testing.T, name protoreflect.Name) protoreflect.MethodDescriptor {
	t.Helper()
	d, err := catalogue().Files().FindDescriptorByName("throwbar.control.v1.CommandService")
	if err != nil {
		t.Fatal(err)
	}
	service, ok := d.(protoreflect.ServiceDescriptor)
	if !ok {
		t.Fatalf("%T", d)
	}
	return service.Methods().ByName(name)
}

// dynamic reads a message by the descriptor of another image.
func dynamic(t *testing.T, md protoreflect.MessageDescriptor, m proto.Message) *dynamicpb.Message {
	t.Helper()
	raw, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	out := dynamicpb.NewMessage(md)
	if err := proto.Unmarshal(raw, out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestInvoke(t *testing.T) {
	t.Parallel()
	client := caller(t, &control{dispatch: func(_ context.Context, req *controlv1.DispatchRequest) (*controlv1.DispatchResponse, error) {
		if req.GetAction().GetOpenTab() == nil {
			return nil, Errorf(CodeInvalid, "not sent to anybody")
		}
		return outcomes(&controlv1.DeviceOutcome{DeviceId: req.GetDeviceIds()[0]}), nil
	}}, "secret")
	unary, stream := method(t, "Dispatch"), method(t, "WatchEvents")
	in, out := dynamic(t, unary.Input(), request("a")), dynamicpb.NewMessage(unary.Output())
	if err := client.Invoke(t.Context(), unary, in, out); err != nil {
		t.Fatal(err)
	}
	want := dynamic(t, unary.Output(), outcomes(&controlv1.DeviceOutcome{DeviceId: "d"}))
	if !proto.Equal(out, want) {
		t.Errorf("Invoke = %v, want %v", out, want)
	}
	if err := client.Invoke(t.Context(), unary, &controlv1.DispatchRequest{Action: &commandv1.Action{}}, out); CodeOf(err) != CodeInternal {
		t.Errorf("an error that the server did not author: %v", err)
	}
	if err := client.Invoke(t.Context(), stream, in, out); CodeOf(err) != CodeUnsupported {
		t.Errorf("Invoke of a stream: %v", err)
	}

	ask := &controlv1.WatchEventsRequest{}
	seen := 0
	var last error
	for frame, err := range client.InvokeStream(t.Context(), stream, ask) {
		if last = err; err == nil {
			seen++
			if raw, err := proto.Marshal(frame); err != nil || len(raw) == 0 {
				t.Errorf("frame %v, %v", frame, err)
			}
		}
	}
	if seen != 1 || CodeOf(last) != CodeBusy {
		t.Errorf("%d frames, then %v", seen, last)
	}
	for _, err := range client.InvokeStream(t.Context(), stream, ask) {
		if err != nil {
			t.Error(err)
		}
		break // ends the stream
	}
	for _, err := range client.InvokeStream(t.Context(), unary, ask) {
		if CodeOf(err) != CodeUnsupported {
			t.Errorf("InvokeStream of a call: %v", err)
		}
	}
}
