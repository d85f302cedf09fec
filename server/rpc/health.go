package rpc

import (
	"context"
	"fmt"

	"connectrpc.com/connect/v2"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// registerHealth adds grpc.health.v1.Health. It answers for the server as a whole and for each of its services.
func registerHealth(server *connect.Server) {
	methods := healthpb.File_grpc_health_v1_health_proto.Services().ByName("Health").Methods()
	server.Register(
		connect.Method{Spec: healthSpec(methods.ByName("Check"), connect.StreamTypeUnary), Handler: func(
			_ context.Context, _ connect.Spec, stream connect.ServerStream,
		) error {
			return answerHealth(server, stream)
		}},
		connect.Method{Spec: healthSpec(methods.ByName("Watch"), connect.StreamTypeServer), Handler: func(
			ctx context.Context, _ connect.Spec, stream connect.ServerStream,
		) error {
			if err := answerHealth(server, stream); err != nil {
				return err
			}
			<-ctx.Done() // the state does not change while the process lives
			return context.Cause(ctx)
		}},
	)
}

func healthSpec(method protoreflect.MethodDescriptor, stream connect.StreamType) connect.Spec {
	return connect.Spec{
		StreamType: stream, Schema: method,
		Procedure: fmt.Sprintf("/%s/%s", method.Parent().FullName(), method.Name()),
	}
}

func answerHealth(server *connect.Server, stream connect.ServerStream) error {
	req := &healthpb.HealthCheckRequest{}
	if err := stream.Receive(req); err != nil {
		return err
	}
	known := req.GetService() == ""
	for spec := range server.Specs() {
		if method, ok := spec.Schema.(protoreflect.MethodDescriptor); ok {
			known = known || string(method.Parent().FullName()) == req.GetService()
		}
	}
	if !known {
		return connect.Errorf(connect.CodeNotFound, "there is no service %q", req.GetService())
	}
	return stream.Send(&healthpb.HealthCheckResponse{Status: healthpb.HealthCheckResponse_SERVING})
}
