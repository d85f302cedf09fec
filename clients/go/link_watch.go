package throwbar

import (
	"context"
	"errors"
	"fmt"
	"time"

	devicev1 "throwbar.dev/throwbar/gen/go/throwbar/device/v1"
	"throwbar.dev/throwbar/gen/go/throwbar/device/v1/devicev1connect"
)

const (
	reportTimeout = 10 * time.Second
	reportRetry   = 200 * time.Millisecond // doubled with each try
	reportSlowest = 5 * time.Second
)

// watchDialer opens links over a stream of server frames and calls that report device frames.
type watchDialer struct {
	client devicev1connect.DeviceServiceClient
	jitter func() float64
}

var _ dialer = watchDialer{}

func newWatchDialer(c HTTPClient, server string, token func() string, jitter func() float64) watchDialer {
	return watchDialer{client: devicev1connect.NewDeviceServiceClient(newRPCWith(c, server, token)), jitter: jitter}
}

func (d watchDialer) dial(ctx context.Context, hello *devicev1.Hello) (link, error) {
	stream, err := d.client.Watch(ctx, &devicev1.WatchRequest{Hello: hello})
	if err != nil {
		return nil, err
	}
	l := &watchLink{client: d.client, jitter: d.jitter, stream: stream}
	context.AfterFunc(ctx, l.close)
	return l, nil
}

type watchLink struct {
	client devicev1connect.DeviceServiceClient
	jitter func() float64
	stream devicev1connect.DeviceServiceWatchClientStream

	id       string // written by receive with the Welcome, which comes before anything is sent
	sequence uint64 // belongs to the goroutine that sends
}

var _ link = (*watchLink)(nil)

// send reports frames, each report under a number of its own until it is answered.
func (l *watchLink) send(ctx context.Context, frames []*devicev1.DeviceFrame) error {
	for part := range parts(frames) {
		l.sequence++
		req := &devicev1.ReportRequest{LinkId: l.id, Sequence: l.sequence, Frames: part}
		if err := l.report(ctx, req); err != nil {
			return fmt.Errorf("report: %w", err)
		}
	}
	return nil
}

func (l *watchLink) report(ctx context.Context, req *devicev1.ReportRequest) error {
	for wait := reportRetry; ; wait = min(2*wait, reportSlowest) {
		res, err := l.once(ctx, req)
		if err == nil {
			if res.GetSequence() < req.GetSequence() {
				return Errorf(CodeInternal, "the server has taken in reports up to %d, not %d", res.GetSequence(), req.GetSequence())
			}
			return nil
		}
		if !passes(err) {
			return err
		}
		timer := time.NewTimer(time.Duration(l.jitter() * float64(wait)))
		select {
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		case <-timer.C:
		}
	}
}

func (l *watchLink) once(ctx context.Context, req *devicev1.ReportRequest) (*devicev1.ReportResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, reportTimeout)
	defer cancel()
	return l.client.Report(ctx, req)
}

// passes says whether a report may be repeated: it was lost on the way, or the server asks to come again.
func passes(err error) bool {
	var e *Error
	if !errors.As(err, &e) {
		return false
	}
	return !e.remote || e.Code == CodeUnavailable || e.Code == CodeBusy
}

func (l *watchLink) receive() ([]*devicev1.ServerFrame, error) {
	for {
		res, err := l.stream.Receive()
		if err != nil {
			return nil, err
		}
		if len(res.GetFrames()) == 0 {
			continue
		}
		if w := res.GetFrames()[0].GetWelcome(); w != nil && l.id == "" {
			l.id = w.GetLinkId()
		}
		return res.GetFrames(), nil
	}
}

func (l *watchLink) finish() error { return nil } // each report is a whole call

func (l *watchLink) close() { _ = l.stream.Close() } // what it would say, receive has said
