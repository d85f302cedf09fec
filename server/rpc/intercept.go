package rpc

import (
	"context"
	"log/slog"

	"buf.build/go/protovalidate"
	"connectrpc.com/connect/v2"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	optionv1 "throwbar.dev/throwbar/gen/go/throwbar/option/v1"
	"throwbar.dev/throwbar/server/auth"
	"throwbar.dev/throwbar/server/device"
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

// admission lets calls through whose tokens may make them.
type admission struct {
	tokens    *auth.Tokens
	directory *device.Directory
	refusals  *refusals
}

// intercept decides before any of the call's body is read. A call ends when its token is not valid any more, whatever
// it is: this is the one place that ends streams.
func (a *admission) intercept(next connect.ServerFunc) connect.ServerFunc {
	return func(ctx context.Context, spec connect.Spec, stream connect.ServerStream) error {
		want := scopeOf(spec)
		if want == optionv1.Scope_SCOPE_PUBLIC {
			return next(ctx, spec, stream)
		}
		token, err := a.admit(ctx, want)
		if err != nil {
			if want == optionv1.Scope_SCOPE_DEVICE {
				a.refusals.note(ctx, spec.Procedure, token.Device, err)
			}
			return err
		}
		bound, release := a.tokens.Bind(auth.With(ctx, token), token)
		defer release()
		stop := context.AfterFunc(bound, func() {
			if ctx.Err() == nil {
				hurryWrite(ctx) // what is being sent must not wait for a peer that does not read
			}
		})
		defer stop() // before release, which is no reason to hurry
		err = next(bound, spec, stream)
		if err != nil && bound.Err() != nil && ctx.Err() == nil {
			return context.Cause(bound) // the handler was ended from here: this says why
		}
		return err
	}
}

// admit is the token of a call that may be made. With an error it is what is known of the token.
func (a *admission) admit(ctx context.Context, want optionv1.Scope) (auth.Token, error) {
	info, ok := connect.CallInfoForServerContext(ctx)
	if !ok {
		return auth.Token{}, fault.New(fault.Unauthenticated, "this call has no headers")
	}
	secret, err := auth.Bearer(info.RequestHeader().Get("Authorization"))
	if err != nil {
		return auth.Token{}, err
	}
	token, err := a.tokens.Authenticate(secret)
	if err != nil {
		return auth.Token{}, err
	}
	if err := auth.Allowed(token.Scope, want); err != nil {
		return token, err
	}
	if want == optionv1.Scope_SCOPE_DEVICE {
		if err := a.sameOrigin(token, info.RequestHeader().Values("Origin")); err != nil {
			return token, err
		}
	}
	return token, a.tokens.Use(ctx, token) // last: what is refused must not make a device's old token void
}

// sameOrigin holds a device's token to where it was paired: that of an extension counts with exactly its origin, and
// that of a program counts from no page and no extension.
func (a *admission) sameOrigin(token auth.Token, got []string) error {
	want := a.directory.Origin(token.Device)
	switch {
	case want == "" && len(got) == 0, want != "" && len(got) == 1 && got[0] == want:
		return nil
	case want == "":
		return fault.New(fault.Forbidden, "this device's token belongs to a program: pages and extensions have to pair anew")
	default:
		return fault.New(fault.Forbidden, "this device's token belongs to another extension: pair this one anew")
	}
}

// scopeOf is what a method wants of its callers, by the descriptor that the call was resolved to and never by its path.
// What is not ours has no option: health is for everybody, reflection for those who may read, and anything else for
// nobody.
func scopeOf(spec connect.Spec) optionv1.Scope {
	method, ok := spec.Schema.(protoreflect.MethodDescriptor)
	if !ok {
		return optionv1.Scope_SCOPE_UNSPECIFIED
	}
	switch method.Parent().FullName() {
	case "grpc.health.v1.Health":
		return optionv1.Scope_SCOPE_PUBLIC
	case "grpc.reflection.v1.ServerReflection", "grpc.reflection.v1alpha.ServerReflection":
		return optionv1.Scope_SCOPE_VIEWER
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
