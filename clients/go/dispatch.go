package throwbar

import (
	"context"
	"errors"

	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
)

// DispatchMode is the road that Dispatch and Call take. The server treats a command the same on both: it is written
// down before it is sent, and cancelled when its caller goes away.
type DispatchMode int

// The modes.
const (
	// DispatchAuto sends a command in a call of its own while no other is under way in this client, and over the
	// client's one stream while one is. Where there is no stream (an older server, or a proxy that does not let
	// HTTP/2 through), every command has a call of its own.
	DispatchAuto DispatchMode = iota
	// DispatchUnary sends every command in a call of its own.
	DispatchUnary
	// DispatchStreamed sends every command over the stream. Where there is none, Dispatch fails with CodeUnsupported.
	DispatchStreamed
)

// Why a command was not sent, or may have been.
var (
	// ErrOutcomeUnknown means that the stream broke while a command was under way: whether the device has run it is
	// not known. It is not sent again, since most commands do something else the second time. Its Code is
	// CodeInterrupted; Commands.ListCommands says what became of it.
	ErrOutcomeUnknown = errors.New("the stream broke while the command was under way: nobody knows how it ended")
	// ErrClosed means that the client was closed.
	ErrClosed = errors.New("the client is closed")
)

// Dispatch sends a command to the devices of the request and waits for its outcome on each. It is
// Commands.Dispatch over the road that Config.Dispatch chooses; many may be under way at a time, and each waits in
// turn once 1,024 share the stream. A request that breaks a rule or does not come to an outcome is an *Error. When the context ends
// first, the server is told that nobody waits, and Dispatch returns at once with the context's cause.
func (c *Client) Dispatch(ctx context.Context, req *controlv1.DispatchRequest) (*controlv1.DispatchResponse, error) {
	others := c.underWay.Add(1) - 1
	defer c.underWay.Add(-1)
	if c.mode == DispatchUnary || c.mode == DispatchAuto && (others == 0 || !c.stream.usable()) {
		return c.Commands.Dispatch(ctx, req)
	}
	res, err := c.stream.dispatch(ctx, req)
	var unsent *notSentError
	switch {
	case !errors.As(err, &unsent):
		return res, err
	case c.mode == DispatchAuto: // nobody has seen it, so this is not a second time
		return c.Commands.Dispatch(ctx, req)
	default:
		return nil, unsent.error
	}
}

// Close ends the client's stream, with what is under way on it, drops the connections that it keeps, and waits until
// nothing of it runs any more. Calls that wait for the stream fail with ErrClosed; so do those that come later.
func (c *Client) Close() error {
	c.stream.close()
	c.CloseIdle()
	return nil
}
