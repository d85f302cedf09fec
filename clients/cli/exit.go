package cli

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"throwbar.dev/throwbar/clients/cli/term"
	throwbar "throwbar.dev/throwbar/clients/go"
	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
)

// The exit codes.
const (
	OK              = 0
	Failed          = 1
	Invalid         = 2   // the arguments break a rule
	Offline         = 3   // the device or the server cannot be reached
	Expired         = 4   // the time ran out
	Refused         = 5   // a policy, a person, the device or the scope of the token forbids it
	Unauthenticated = 6   // the server does not accept the token, or there is none
	Partial         = 7   // some items or some devices failed, or were left alone
	Cancelled       = 130 // interrupted
)

// exitCodes is what the help says of them.
func exitCodes() [][2]string {
	meanings := []struct {
		code int
		text string
	}{
		{OK, "ok"},
		{Failed, "failed"},
		{Invalid, "the arguments are wrong"},
		{Offline, "a device or the server cannot be reached"},
		{Expired, "the time ran out"},
		{Refused, "denied by a person, the policy, the device or the scope of the token"},
		{Unauthenticated, "there is no token, or the server does not accept it"},
		{Partial, "some devices or targets did it, others not"},
		{Cancelled, "interrupted, or stopped"},
	}
	rows := make([][2]string, len(meanings))
	for i, m := range meanings {
		rows[i] = [2]string{strconv.Itoa(m.code), m.text}
	}
	return rows
}

var errInterrupted = errors.New("interrupted")

// Exit is an error with the exit code that it ends the program with. Without Err everything is said already.
type Exit struct {
	Code int
	Err  error
	List []string // what the error is about, a line each
}

// Error is the text of the error.
func (e *Exit) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit code %d", e.Code)
	}
	if e.List == nil {
		return e.Err.Error()
	}
	return e.Err.Error() + ":\n  " + strings.Join(e.List, "\n  ")
}

// Unwrap is the error itself.
func (e *Exit) Unwrap() error { return e.Err }

// Errorf makes an error with an exit code.
func Errorf(code int, format string, args ...any) error {
	return &Exit{Code: code, Err: fmt.Errorf(format, args...)}
}

// end reports how the run ended, in one line if it is not plain already, and returns the exit code.
func (p *program) end(ctx context.Context, err error) int {
	if err == nil {
		return OK
	}
	code, text := p.explain(err)
	interrupted := code == Cancelled && errors.Is(context.Cause(ctx), errInterrupted)
	if text != "" && !interrupted {
		var list []string
		if exit := (*Exit)(nil); errors.As(err, &exit) && exit.List != nil {
			list, text = exit.List, text+":"
		}
		p.err.Line(term.Red, "throwbar: %s", text)
		for _, line := range list {
			p.err.Line(term.Red, "  %s", line)
		}
	}
	return code
}

// explain is the one place where errors become exit codes and lines for a person.
func (p *program) explain(err error) (int, string) {
	var exit *Exit
	if errors.As(err, &exit) {
		if exit.Err == nil {
			return exit.Code, ""
		}
		if exit.List != nil {
			return exit.Code, exit.Err.Error()
		}
		_, text := p.explainCall(err)
		return exit.Code, text
	}
	return p.explainCall(err)
}

func (p *program) explainCall(err error) (int, string) {
	problem, ok := problemOf(err)
	var stranger *throwbar.ServerKeyError
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.As(err, &stranger):
		return Offline, fmt.Sprintf("%s: %v", p.flags.server, stranger)
	case !ok && (errors.Is(err, context.Canceled) || errors.Is(err, errInterrupted)):
		return Cancelled, ""
	case !ok && errors.Is(err, context.DeadlineExceeded):
		return Expired, err.Error()
	case !ok:
		return Failed, err.Error()
	case problem.refused() && p.flags.local():
		return Offline, fmt.Sprintf("no server at %s: start one with `throwbar serve`", p.flags.server)
	case problem.refused():
		return Offline, fmt.Sprintf("no server at %s: the connection was refused", p.flags.server)
	case errors.As(problem.way, &certificate):
		return Offline, fmt.Sprintf("the certificate of the server at %s is not trusted on this machine (%v): if the server is yours, "+
			"give its key with --server-key, which `throwbar serve` prints for one that it made itself", p.flags.server, certificate.Err)
	case problem.way != nil:
		return Offline, fmt.Sprintf("the server at %s cannot be reached: %v", p.flags.server, problem.way)
	case problem.code == Unauthenticated:
		return problem.code, fmt.Sprintf("%s does not accept the token in %s: name another file with --token-file, or make "+
			"a token with `throwbar token create` (%s)", p.flags.server, p.flags.tokenFile, problem.text)
	default:
		return problem.code, problem.text
	}
}

// codeOfError is the exit code of a command's error.
func codeOfError(err *commandv1.CommandError) int {
	return exitOf(throwbar.CodeOf(throwbar.FromCommand(err)))
}

// together is the exit code of several outcomes: their common one, partial where some went well, failed otherwise.
func together(codes []int) int {
	same, well := true, false
	for _, code := range codes {
		same = same && code == codes[0]
		well = well || code == OK || code == Partial
	}
	switch {
	case len(codes) == 0:
		return Failed
	case same:
		return codes[0]
	case well:
		return Partial
	default:
		return Failed
	}
}
