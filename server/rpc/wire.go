package rpc

import (
	"context"
	"errors"
	"io"
	"time"

	devicev1 "throwbar.dev/throwbar/gen/go/throwbar/device/v1"
	"throwbar.dev/throwbar/gen/go/throwbar/device/v1/devicev1connect"
	"throwbar.dev/throwbar/server/link"
)

// farewellWithin is how long what is being sent may still take when a link has ended.
const farewellWithin = 5 * time.Second

// bidiWire is the server's side of a bidirectional stream.
type bidiWire struct {
	ctx    context.Context //nolint:containedctx // the deadlines of the stream are in it
	stream devicev1connect.DeviceServiceConnectServerStream
}

var _ link.Wire = bidiWire{}

// Send writes one message.
func (w bidiWire) Send(frames []*devicev1.ServerFrame) error {
	if err := extendWrite(w.ctx); err != nil {
		return err
	}
	return w.stream.Send(&devicev1.ConnectResponse{Frames: frames})
}

// Hurry bounds what is being sent.
func (w bidiWire) Hurry() { hurryWrite(w.ctx) }

// Hangup wakes the reader.
func (w bidiWire) Hangup() { readBy(w.ctx, time.Now()) }

// watchWire is the server's side of a stream of server frames.
type watchWire struct {
	ctx    context.Context //nolint:containedctx // the deadlines of the stream are in it
	stream devicev1connect.DeviceServiceWatchServerStream
}

var _ link.Wire = watchWire{}

// Send writes one message.
func (w watchWire) Send(frames []*devicev1.ServerFrame) error {
	if err := extendWrite(w.ctx); err != nil {
		return err
	}
	return w.stream.Send(&devicev1.WatchResponse{Frames: frames})
}

// Hurry bounds what is being sent.
func (w watchWire) Hurry() { hurryWrite(w.ctx) }

// Hangup does nothing: Watch reads nothing.
func (w watchWire) Hangup() {}

// receive reads frames until the stream or the link ends.
func receive(l *link.Link, stream devicev1connect.DeviceServiceConnectServerStream) error {
	for {
		msg, err := stream.Receive()
		if err != nil {
			return err
		}
		for _, frame := range msg.GetFrames() {
			if err := l.Receive(frame); err != nil {
				return err
			}
		}
	}
}

// turnAway tells a device that its link is not opened, and when to come back.
func turnAway(err error, send func([]*devicev1.ServerFrame) error) error {
	var end *link.End
	if !errors.As(err, &end) || end.Frame() == nil {
		return err
	}
	if serr := send([]*devicev1.ServerFrame{end.Frame()}); serr != nil && !errors.Is(serr, io.EOF) {
		return serr
	}
	return err
}
