package throwbar

import (
	"context"
	"errors"
	"io"

	"connectrpc.com/connect/v2/connecthttp"

	devicev1 "throwbar.dev/throwbar/gen/go/throwbar/device/v1"
	"throwbar.dev/throwbar/gen/go/throwbar/device/v1/devicev1connect"
)

// bidiDialer opens links over one bidirectional stream.
type bidiDialer struct {
	client devicev1connect.DeviceServiceClient
}

var _ dialer = bidiDialer{}

func newBidiDialer(c HTTPClient, server string, token func() string) bidiDialer {
	return bidiDialer{devicev1connect.NewDeviceServiceClient(newRPCWith(c, server, token, connecthttp.WithGRPC()))}
}

// dial opens the stream. A cancelled context alone does not end a stream that waits in receive, so the end of the
// context closes it; that may be armed only once the headers are sent.
func (d bidiDialer) dial(ctx context.Context, hello *devicev1.Hello) (link, error) {
	stream, err := d.client.Connect(ctx)
	if err != nil {
		return nil, err
	}
	l := &bidiLink{stream: stream}
	if err := stream.SendHeaders(); err != nil {
		_ = stream.Close() // the error of sending says more
		return nil, err
	}
	context.AfterFunc(ctx, l.close)
	err = l.send(ctx, []*devicev1.DeviceFrame{{Kind: &devicev1.DeviceFrame_Hello{Hello: hello}}})
	if err != nil && !errors.Is(err, io.EOF) { // of a stream that the server has ended, receive says why
		_ = stream.Close()
		return nil, err
	}
	return l, nil
}

type bidiLink struct {
	stream devicev1connect.DeviceServiceConnectClientStream
}

var _ link = (*bidiLink)(nil)

func (l *bidiLink) send(_ context.Context, frames []*devicev1.DeviceFrame) error {
	for part := range parts(frames) {
		if err := l.stream.Send(&devicev1.ConnectRequest{Frames: part}); err != nil {
			return err
		}
	}
	return nil
}

func (l *bidiLink) receive() ([]*devicev1.ServerFrame, error) {
	for {
		res, err := l.stream.Receive()
		if err != nil {
			return nil, err
		}
		if len(res.GetFrames()) > 0 {
			return res.GetFrames(), nil
		}
	}
}

func (l *bidiLink) finish() error { return l.stream.CloseSend() }

func (l *bidiLink) close() { _ = l.stream.Close() } // what it would say, receive has said
