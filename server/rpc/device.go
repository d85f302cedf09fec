package rpc

import (
	"context"
	"time"

	"connectrpc.com/connect/v2"

	devicev1 "throwbar.dev/throwbar/gen/go/throwbar/device/v1"
	"throwbar.dev/throwbar/gen/go/throwbar/device/v1/devicev1connect"
	"throwbar.dev/throwbar/server/auth"
	"throwbar.dev/throwbar/server/fault"
	"throwbar.dev/throwbar/server/link"
)

// helloWithin is how long a new link may take to say who it is.
const helloWithin = 5 * time.Second

var _ devicev1connect.DeviceServiceHandler = (*deviceHandler)(nil)

type deviceHandler struct {
	cfg      Config
	refusals *refusals
}

// Pair exchanges a pairing code for a device's id and token.
func (h *deviceHandler) Pair(ctx context.Context, req *devicev1.PairRequest) (*devicev1.PairResponse, error) {
	origin := ""
	if info, ok := connect.CallInfoForServerContext(ctx); ok {
		if o := info.RequestHeader().Get("Origin"); isExtension(o) {
			origin = o
		}
	}
	enrolment, err := h.cfg.Enroller.Pair(ctx, req, origin, peerOf(ctx))
	if err != nil {
		return nil, err
	}
	return &devicev1.PairResponse{
		DeviceId: enrolment.Device.ID, Token: enrolment.Secret, CheckWord: enrolment.CheckWord,
	}, nil
}

// Connect holds a device's link on one bidirectional stream. This goroutine reads; see link.Link for who writes.
func (h *deviceHandler) Connect(ctx context.Context, stream devicev1connect.DeviceServiceConnectServerStream) error {
	token, err := auth.From(ctx)
	if err != nil {
		return err
	}
	if !readBy(ctx, time.Now().Add(helloWithin)) {
		return fault.New(fault.Unsupported, "a link needs a network connection")
	}
	wire := bidiWire{ctx, stream}
	if err := h.cfg.Hub.Admit(ctx); err != nil {
		return turnAway(err, wire.Send)
	}
	first, err := stream.Receive()
	if err != nil {
		return err
	}
	readBy(ctx, time.Time{})
	if len(first.GetFrames()) != 1 || first.GetFrames()[0].GetHello() == nil {
		return fault.New(fault.Invalid, "the first message of a link has to be a Hello, and nothing else")
	}
	l, err := h.open(ctx, token, link.Bidi, first.GetFrames()[0].GetHello())
	if err != nil {
		return turnAway(err, wire.Send)
	}
	return l.Serve(ctx, wire, func() error { return receive(l, stream) })
}

// open opens a link with the token's own proof: nothing that says another device's name, or comes with a token that is
// void meanwhile, takes a link's place.
func (h *deviceHandler) open(ctx context.Context, token auth.Token, transport string, hello *devicev1.Hello) (*link.Link, error) {
	if err := h.cfg.Tokens.Check(token); err != nil {
		return nil, err
	}
	l, err := h.cfg.Hub.Open(ctx, token.Device, transport, hello, func() bool { return h.cfg.Tokens.ShouldRotate(token) })
	if fault.CodeOf(err) == fault.Forbidden {
		h.refusals.note(ctx, "hello", token.Device, err)
	}
	return l, err
}

// Watch holds a device's link as a stream of server frames.
func (h *deviceHandler) Watch(
	ctx context.Context, req *devicev1.WatchRequest, stream devicev1connect.DeviceServiceWatchServerStream,
) error {
	token, err := auth.From(ctx)
	if err != nil {
		return err
	}
	wire := watchWire{ctx, stream}
	if err := h.cfg.Hub.Admit(ctx); err != nil {
		return turnAway(err, wire.Send)
	}
	l, err := h.open(ctx, token, link.Watch, req.GetHello())
	if err != nil {
		return turnAway(err, wire.Send)
	}
	return l.Serve(ctx, wire, func() error {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-l.Done():
			return nil
		}
	})
}

// Report hands over frames of a link that Watch holds.
func (h *deviceHandler) Report(ctx context.Context, req *devicev1.ReportRequest) (*devicev1.ReportResponse, error) {
	token, err := auth.From(ctx)
	if err != nil {
		return nil, err
	}
	l, err := h.cfg.Hub.Find(token.Device, req.GetLinkId())
	if err != nil {
		return nil, err
	}
	sequence, err := l.Report(req.GetSequence(), req.GetFrames())
	if err != nil {
		return nil, err
	}
	return &devicev1.ReportResponse{Sequence: sequence}, nil
}

// RotateToken gives the device another token.
func (h *deviceHandler) RotateToken(ctx context.Context, _ *devicev1.RotateTokenRequest) (*devicev1.RotateTokenResponse, error) {
	token, err := auth.From(ctx)
	if err != nil {
		return nil, err
	}
	secret, err := h.cfg.Tokens.Rotate(ctx, token)
	if err != nil {
		return nil, err
	}
	return &devicev1.RotateTokenResponse{Token: secret}, nil
}
