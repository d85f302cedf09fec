package cli

import (
	"cmp"
	"errors"
	"strings"
	"syscall"

	throwbar "throwbar.dev/throwbar/clients/go"
)

// api is the server's API; it is made at the first call. Calls are in binary: proto JSON would lose the members that this
// program was not built with.
func (p *program) api() (*throwbar.Client, error) {
	if p.connection != nil {
		return p.connection, nil
	}
	if err := cmp.Or(p.flags.wrong, p.flags.wrongKey); err != nil {
		return nil, err
	}
	token, err := p.flags.token(p.warn)
	if err != nil {
		return nil, err
	}
	client, err := throwbar.New(throwbar.Config{
		Server: p.flags.server, Token: token, ServerKey: p.flags.serverKey, Plaintext: p.flags.plaintext,
	})
	if err != nil {
		return nil, &Exit{Code: Invalid, Err: err}
	}
	p.connection = client
	return client, nil
}

// disconnect ends the connections that wait for further calls.
func (p *program) disconnect() {
	if p.connection != nil {
		_ = p.connection.Close() // nothing is under way any more
	}
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
	if !errors.As(err, &own) {
		return problem{}, false
	}
	found := problem{code: exitOf(own.Code), text: strings.TrimSuffix(err.Error(), own.Error())}
	if found.code == Offline { // the other causes are of the call, not of the way
		found.way = own.Unwrap()
	}
	switch own.Message {
	case "":
		found.text += "the server does not say why"
	case "404 Not Found", "HTTP status 404 Not Found":
		found.text += "the server does not know this call: it is older than this program, or no Throwbar server"
	default:
		found.text += own.Message
	}
	return found, true
}

// exitOf is the one table of codes and exit codes.
func exitOf(code throwbar.Code) int {
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

// passing says whether the error of a stream, whose caller has not ended it, may go away when the stream is opened
// again. A connection that is reset comes as cancelled.
func passing(err error) bool {
	switch throwbar.CodeOf(err) {
	case throwbar.CodeUnavailable, throwbar.CodeConflict, throwbar.CodeInternal, throwbar.CodeCancelled: // or a connection that just broke
		return true
	default:
		return false
	}
}
