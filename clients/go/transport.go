package throwbar

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connecthttp"
	"connectrpc.com/connect/v2/connectproto"

	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
)

const (
	// compressFrom is the size from which a message is worth compressing.
	compressFrom = 1024
	// pingAfter and pingTimeout end a connection whose peer is frozen.
	pingAfter   = 15 * time.Second
	pingTimeout = 10 * time.Second

	// dialTimeout is how long a server may take to be reached. How long it may take to answer depends on the call.
	dialTimeout = 10 * time.Second
	tlsTimeout  = 10 * time.Second
	idleTimeout = 90 * time.Second
	callerConns = 64
)

// HTTPClient is the part of http.Client that is used.
type HTTPClient interface {
	// Do sends a request and returns its response.
	Do(*http.Request) (*http.Response, error)
}

// newCallerHTTP makes a client for short calls: HTTP/1.1 with connections kept alive, which is cheaper for them than
// HTTP/2.
func newCallerHTTP(w wire) *http.Client {
	protocols := &http.Protocols{}
	protocols.SetHTTP1(true)
	return &http.Client{CheckRedirect: stay, Transport: &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		Protocols:           protocols,
		DialContext:         (&net.Dialer{Timeout: dialTimeout}).DialContext,
		MaxIdleConns:        callerConns,
		MaxIdleConnsPerHost: callerConns,
		IdleConnTimeout:     idleTimeout,
		TLSHandshakeTimeout: tlsTimeout,
		TLSClientConfig:     w.tls.Clone(),
	}}
}

// stay follows no redirect: it would take the token to an address that nobody named.
func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// newLinkHTTP makes a client for links: HTTP/2, without TLS where the address says http, with pings. A connection
// ends with its link, so that one that went silent never carries the next.
func newLinkHTTP(w wire) *http.Client {
	protocols := &http.Protocols{}
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	return &http.Client{CheckRedirect: stay, Transport: &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		Protocols:           protocols,
		DialContext:         (&net.Dialer{Timeout: dialTimeout}).DialContext,
		DisableKeepAlives:   true,
		TLSHandshakeTimeout: tlsTimeout,
		TLSClientConfig:     w.tls.Clone(),
		HTTP2:               &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingTimeout},
	}}
}

// closeIdle drops the connections that a client holds open for later, where it can.
func closeIdle(c HTTPClient) {
	if closer, ok := c.(interface{ CloseIdleConnections() }); ok {
		closer.CloseIdleConnections()
	}
}

// serverURL checks the address of a server and brings it into the form that the transport wants.
func serverURL(raw string) (string, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return "", fmt.Errorf("read server address: %w", err)
	}
	if (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return "", fmt.Errorf("server address %q does not begin with http:// or https://", raw)
	}
	if u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return "", fmt.Errorf("server address of %s has more than a host and a path", u.Host)
	}
	return strings.TrimRight(u.String(), "/"), nil
}

// newRPC makes the client that generated service clients are built on. Its errors are *Error.
func newRPC(c HTTPClient, server, token string, options ...connecthttp.Option) *connect.Client {
	return newRPCWith(c, server, func() string { return token }, options...)
}

// newRPCWith is newRPC with a token that may change from call to call.
func newRPCWith(c HTTPClient, server string, token func() string, options ...connecthttp.Option) *connect.Client {
	options = append([]connecthttp.Option{connecthttp.WithCompressMinBytes(compressFrom)}, options...)
	return connect.NewClient(connecthttp.NewTransport(c, server, options...), plain(token))
}

// plain sends the token and turns the transport's errors into the client's own.
func plain(token func() string) connect.ClientInterceptor {
	return func(next connect.ClientFunc) connect.ClientFunc {
		return func(ctx context.Context, spec connect.Spec) (connect.ClientStream, error) {
			if info, ok := connect.CallInfoForClientContext(ctx); ok {
				if secret := token(); secret != "" {
					info.RequestHeader().Set("Authorization", "Bearer "+secret)
				}
			}
			stream, err := next(ctx, spec)
			if err != nil {
				return nil, translate(err)
			}
			return plainStream{stream}, nil
		}
	}
}

// plainStream is a stream whose errors are the client's own.
type plainStream struct{ stream connect.ClientStream }

var _ connect.ClientStream = plainStream{}

func (s plainStream) SendHeaders() error    { return translate(s.stream.SendHeaders()) }
func (s plainStream) Send(msg any) error    { return translate(s.stream.Send(msg)) }
func (s plainStream) CloseSend() error      { return translate(s.stream.CloseSend()) }
func (s plainStream) Receive(msg any) error { return translate(s.stream.Receive(msg)) }
func (s plainStream) Close() error          { return translate(s.stream.Close()) }

// translate turns an error of the transport into an *Error. The end of a stream stays io.EOF.
func translate(err error) error {
	var own *Error
	if err == nil || errors.As(err, &own) {
		return err
	}
	var stranger *ServerKeyError
	if errors.As(err, &stranger) {
		return &Error{Code: CodeUnavailable, Message: stranger.Error(), cause: stranger}
	}
	var ce *connect.Error
	if !errors.As(err, &ce) {
		switch {
		case errors.Is(err, io.EOF):
			return io.EOF
		case errors.Is(err, context.Canceled):
			return &Error{Code: CodeCancelled, Message: "the call was cancelled", cause: err}
		case errors.Is(err, context.DeadlineExceeded):
			return &Error{Code: CodeExpired, Message: "the call took too long", cause: err}
		default:
			return &Error{Code: CodeInternal, Message: err.Error(), cause: err}
		}
	}
	if detail := commandDetail(ce); detail != nil {
		return detail
	}
	if errors.Is(ce, io.EOF) && !ce.IsRemote() {
		return io.EOF
	}
	return &Error{
		Code: codeFromConnect(ce.Code()), Message: ce.Message(), Retryable: ce.Code() == connect.CodeUnavailable,
		cause: ce.Unwrap(), remote: ce.IsRemote(),
	}
}

// commandDetail is the exact error that the server attached; nil if it attached none. FAILED is also what it attaches
// to errors that no command can end with: there the code of the call says more.
func commandDetail(ce *connect.Error) *Error {
	for _, detail := range ce.Details() {
		msg, err := connectproto.UnmarshalErrorDetail(detail)
		if err != nil {
			continue
		}
		command, ok := msg.(*commandv1.CommandError)
		if !ok || (command.GetCode() == commandv1.ErrorCode_ERROR_CODE_FAILED && ce.Code() != connect.CodeUnknown) {
			continue
		}
		return fromCommand(command)
	}
	return nil
}

func codeFromConnect(code connect.Code) Code {
	switch code {
	case connect.CodeCanceled:
		return CodeCancelled
	case connect.CodeInvalidArgument, connect.CodeOutOfRange:
		return CodeInvalid
	case connect.CodeDeadlineExceeded:
		return CodeExpired
	case connect.CodeNotFound:
		return CodeNotFound
	case connect.CodeAlreadyExists, connect.CodeAborted:
		return CodeConflict
	case connect.CodePermissionDenied:
		return CodeDenied
	case connect.CodeResourceExhausted:
		return CodeBusy
	case connect.CodeFailedPrecondition:
		return CodeRefused
	case connect.CodeUnimplemented:
		return CodeUnsupported
	case connect.CodeUnavailable:
		return CodeUnavailable
	case connect.CodeUnauthenticated:
		return CodeUnauthenticated
	default:
		return CodeInternal
	}
}
