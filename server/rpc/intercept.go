package rpc

import (
	"context"
	"log/slog"
	"strings"

	"buf.build/go/protovalidate"
	"connectrpc.com/connect/v2"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	optionv1 "throwbar.dev/throwbar/gen/go/throwbar/option/v1"
	"throwbar.dev/throwbar/server/auth"
	"throwbar.dev/throwbar/server/fault"
)

// tell turns what handlers return into what goes over the wire. It is the outermost interceptor.
func tell(log *slog.Logger) connect.ServerInterceptor {
	return func(next connect.ServerFunc) connect.ServerFunc {
		return func(ctx context.Context, spec connect.Spec, stream connect.ServerStream) error {
			return toConnect(ctx, log, spec.Procedure, next(ctx, spec, stream))
		}
	}
}

// admit lets a call through if its token may make it, before any of its body is read.
func admit(tokens *auth.Tokens) connect.ServerInterceptor {
	return func(next connect.ServerFunc) connect.ServerFunc {
		return func(ctx context.Context, spec connect.Spec, stream connect.ServerStream) error {
			want := scopeOf(spec)
			if want == optionv1.Scope_SCOPE_PUBLIC {
				return next(ctx, spec, stream)
			}
			info, ok := connect.CallInfoForServerContext(ctx)
			if !ok {
				return fault.New(fault.Unauthenticated, "this call has no headers")
			}
			secret, err := auth.Bearer(info.RequestHeader().Get("Authorization"))
			if err != nil {
				return err
			}
			token, err := tokens.Authenticate(secret)
			if err != nil {
				return err
			}
			if err := auth.Allowed(token.Scope, want); err != nil {
				return err
			}
			return next(auth.With(ctx, token), spec, stream)
		}
	}
}

// scopeOf is what a method wants of its callers. What is not ours has no option: health is for everybody, reflection
// for those who may read, and anything else for nobody.
func scopeOf(spec connect.Spec) optionv1.Scope {
	switch {
	case strings.HasPrefix(spec.Procedure, "/grpc.health.v1."):
		return optionv1.Scope_SCOPE_PUBLIC
	case strings.HasPrefix(spec.Procedure, "/grpc.reflection."):
		return optionv1.Scope_SCOPE_VIEWER
	}
	method, ok := spec.Schema.(protoreflect.MethodDescriptor)
	if !ok {
		return optionv1.Scope_SCOPE_UNSPECIFIED
	}
	access, _ := proto.GetExtension(method.Options(), optionv1.E_Access).(*optionv1.Access)
	return access.GetScope()
}

// validate checks every message that comes in against its rules.
func validate(next connect.ServerFunc) connect.ServerFunc {
	return func(ctx context.Context, spec connect.Spec, stream connect.ServerStream) error {
		return next(ctx, spec, validStream{stream})
	}
}

type validStream struct{ connect.ServerStream }

// Receive reads the next message and refuses one that breaks a rule.
func (s validStream) Receive(msg any) error {
	if err := s.ServerStream.Receive(msg); err != nil {
		return err
	}
	if _, items := msg.(*controlv1.DispatchStreamRequest); items {
		return nil // the handler looks at each item: a bad one does not end the stream
	}
	if m, ok := msg.(proto.Message); ok {
		if err := protovalidate.Validate(m); err != nil {
			return invalid(err)
		}
	}
	return nil
}

// guard keeps a fault of one call from ending the server.
func guard(log *slog.Logger) connect.ServerInterceptor {
	return func(next connect.ServerFunc) connect.ServerFunc {
		return func(ctx context.Context, spec connect.Spec, stream connect.ServerStream) (err error) {
			defer func() {
				if r := recover(); r != nil {
					log.ErrorContext(ctx, "call panicked", slog.String("procedure", spec.Procedure), slog.Any("panic", r))
					err = fault.New(fault.Internal, "the server failed: its log says why")
				}
			}()
			return next(ctx, spec, stream)
		}
	}
}
