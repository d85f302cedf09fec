package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"

	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connecthttp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	throwbar "throwbar.dev/throwbar/clients/go"
)

// dialWait is how long a server may take to be reached. How long it may take to answer depends on the call.
const dialWait = 10 * time.Second

// server is the API of a server. Calls go over HTTP/1.1 and in binary: proto JSON would lose the members that this
// program was not built with.
type server struct {
	*throwbar.Client

	http    *http.Client
	methods *connect.Client // for methods that are known only by their descriptors
}

// api is the server's API; it is made at the first call.
func (p *program) api() (*server, error) {
	if p.connection != nil {
		return p.connection, nil
	}
	if p.flags.wrong != nil {
		return nil, p.flags.wrong
	}
	token, err := p.flags.token(p.warn)
	if err != nil {
		return nil, err
	}
	dial := newHTTP()
	client, err := throwbar.New(throwbar.Config{Server: p.flags.server, Token: token, HTTPClient: dial})
	if err != nil {
		return nil, &Exit{Code: Invalid, Err: err}
	}
	p.connection = &server{
		Client:  client,
		http:    dial,
		methods: connect.NewClient(connecthttp.NewTransport(dial, client.Server()), bearer(token)),
	}
	return p.connection, nil
}

func newHTTP() *http.Client {
	protocols := &http.Protocols{}
	protocols.SetHTTP1(true)
	return &http.Client{
		Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, Protocols: protocols,
			DialContext: (&net.Dialer{Timeout: dialWait}).DialContext, TLSHandshakeTimeout: dialWait,
		},
		// A redirect would take the token to an address that nobody named.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// close ends the connections that wait for further calls.
func (s *server) close() {
	if s != nil {
		s.http.CloseIdleConnections()
	}
}

// bearer sends the token with every call.
func bearer(token string) connect.ClientInterceptor {
	return func(next connect.ClientFunc) connect.ClientFunc {
		return func(ctx context.Context, spec connect.Spec) (connect.ClientStream, error) {
			if info, ok := connect.CallInfoForClientContext(ctx); ok {
				info.RequestHeader().Set("Authorization", "Bearer "+token)
			}
			return next(ctx, spec)
		}
	}
}

// call calls a unary method by its descriptor.
func (s *server) call(ctx context.Context, method protoreflect.MethodDescriptor, in, out proto.Message) error {
	err := s.methods.CallUnary(ctx, connect.Spec{
		StreamType: connect.StreamTypeUnary,
		Schema:     method,
		Procedure:  fmt.Sprintf("/%s/%s", method.Parent().FullName(), method.Name()),
	}, in, out)
	if err != nil {
		return fmt.Errorf("call %s: %w", method.Name(), err)
	}
	return nil
}

// problem is what the error of a call means.
type problem struct {
	code int
	way  error  // what went wrong on the way, where the server did not answer at all
	text string // the act, and what the server said
}

// refused says whether nobody listens at the address.
func (p problem) refused() bool { return errors.Is(p.way, syscall.ECONNREFUSED) }

// problemOf reads the error of a call; false if it is none.
func problemOf(err error) (problem, bool) {
	var own *throwbar.Error
	var call *connect.Error
	var found problem
	var said string
	switch {
	case errors.As(err, &own):
		found, said = problem{code: codeOfClient(own.Code), way: own.Unwrap()}, own.Message
		found.text = strings.TrimSuffix(err.Error(), own.Error())
	case errors.As(err, &call):
		found, said = problem{code: codeOfMethod(call.Code()), way: call.Unwrap()}, call.Message()
		found.text = strings.TrimSuffix(err.Error(), call.Error())
	default:
		return problem{}, false
	}
	if found.code != Offline { // the other causes are of the call, not of the way
		found.way = nil
	}
	switch said {
	case "":
		said = "the server does not say why"
	case "404 Not Found":
		said = "the server does not know this call: it is older than this program, or no Throwbar server"
	}
	found.text += said
	return found, true
}

// codeOfClient is the exit code of an error of the client.
func codeOfClient(code throwbar.Code) int {
	switch code {
	case throwbar.CodeOffline, throwbar.CodeUnavailable:
		return Offline
	case throwbar.CodeExpired, throwbar.CodeApprovalTimedOut:
		return Expired
	case throwbar.CodeCancelled:
		return Cancelled
	case throwbar.CodeInvalid:
		return Invalid
	case throwbar.CodeRefused, throwbar.CodeDenied:
		return Refused
	case throwbar.CodeUnauthenticated:
		return Unauthenticated
	default:
		return Failed
	}
}

// codeOfMethod is the exit code of an error of a method that was called by its descriptor.
func codeOfMethod(code connect.Code) int {
	switch code {
	case connect.CodeInvalidArgument, connect.CodeOutOfRange:
		return Invalid
	case connect.CodeUnavailable:
		return Offline
	case connect.CodeDeadlineExceeded:
		return Expired
	case connect.CodePermissionDenied, connect.CodeFailedPrecondition:
		return Refused
	case connect.CodeUnauthenticated:
		return Unauthenticated
	case connect.CodeCanceled:
		return Cancelled
	default:
		return Failed
	}
}

// passing says whether the error of a stream may go away when the stream is opened again.
func passing(err error) bool {
	switch throwbar.CodeOf(err) {
	case throwbar.CodeUnavailable, throwbar.CodeConflict, throwbar.CodeInternal: // or a connection that just broke
		return true
	default:
		return false
	}
}
