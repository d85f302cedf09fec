package rpc

import (
	"cmp"
	"context"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"time"

	"connectrpc.com/connect/v2"

	"throwbar.dev/throwbar/server/auth"
	"throwbar.dev/throwbar/server/fault"
)

// Limits bound what callers may ask for. What is zero has the package's own value. They are there for what no honest
// client does: a fleet that comes back after a restart has tokens of its own each, and the hub admits its links.
type Limits struct {
	// CallsPerSecond and CallsBurst are the calls that one token may begin. A stream is one call.
	CallsPerSecond, CallsBurst float64
	// OpenCalls are the calls of one token that may be open at a time, streams among them.
	OpenCalls int
	// FailuresPerSecond and FailuresBurst are the calls with a token that is not valid, by address of the peer. A
	// valid token gets through in any case: behind a proxy, and on one machine, all have the same address.
	FailuresPerSecond, FailuresBurst float64
	// BodyWithin is how long the body of a call with one message may take to arrive.
	BodyWithin time.Duration
}

func (l Limits) withDefaults() Limits {
	return Limits{
		CallsPerSecond: cmp.Or(l.CallsPerSecond, 10_000), CallsBurst: cmp.Or(l.CallsBurst, 20_000),
		OpenCalls:         cmp.Or(l.OpenCalls, 8_192),
		FailuresPerSecond: cmp.Or(l.FailuresPerSecond, 20), FailuresBurst: cmp.Or(l.FailuresBurst, 500),
		BodyWithin: cmp.Or(l.BodyWithin, 30*time.Second),
	}
}

const (
	maxTokens = 1 << 18 // entries for tokens
	maxPeers  = 1 << 14 // entries for addresses
)

// throttle bounds calls.
type throttle struct {
	calls, failures *buckets
	meter           Meter // may be nil
}

func newThrottle(l Limits, now func() time.Time, meter Meter) *throttle {
	return &throttle{
		calls:    newBuckets(l.CallsPerSecond, l.CallsBurst, l.OpenCalls, maxTokens, now),
		failures: newBuckets(l.FailuresPerSecond, l.FailuresBurst, 0, maxPeers, now),
		meter:    meter,
	}
}

// seen counts the calls that come through the listener's rules, by method. It stands before all others.
func (t *throttle) seen(next connect.ServerFunc) connect.ServerFunc {
	if t.meter == nil {
		return next
	}
	return func(ctx context.Context, spec connect.Spec, stream connect.ServerStream) error {
		procedure := spec.Procedure
		if spec.Schema == nil { // callers may not make up labels
			procedure = "unknown"
		}
		t.meter.Called(procedure)
		return next(ctx, spec, stream)
	}
}

// guessed bounds calls whose token turns out not to be valid. It stands before the check of tokens.
func (t *throttle) guessed(next connect.ServerFunc) connect.ServerFunc {
	return func(ctx context.Context, spec connect.Spec, stream connect.ServerStream) error {
		err := next(ctx, spec, stream)
		if err == nil || fault.CodeOf(err) != fault.Unauthenticated {
			return err
		}
		info, ok := connect.CallInfoForServerContext(ctx)
		if !ok || info.RequestHeader().Get("Authorization") == "" {
			return err // nothing was guessed
		}
		if wait := t.failed(info.PeerAddr); wait > 0 {
			info.ResponseHeader().Set("Retry-After", seconds(wait))
			return tooMany(wait, "too many calls with a token that is not valid have come from this address")
		}
		return err
	}
}

// failed counts a call with a wrong token. It is the time after which the next one is answered, zero if this one is.
func (t *throttle) failed(peer string) time.Duration {
	wait := t.failures.take(peerKey(peer))
	if wait > 0 {
		t.refused("failures")
	}
	return wait
}

// paced bounds the calls of one token. It stands behind the check of tokens.
func (t *throttle) paced(next connect.ServerFunc) connect.ServerFunc {
	return func(ctx context.Context, spec connect.Spec, stream connect.ServerStream) error {
		token, err := auth.From(ctx)
		if err != nil {
			return next(ctx, spec, stream) // the method is for everybody
		}
		done, wait, open := t.calls.enter(token.ID)
		if done != nil {
			defer done()
			return next(ctx, spec, stream)
		}
		if info, ok := connect.CallInfoForServerContext(ctx); ok {
			info.ResponseHeader().Set("Retry-After", seconds(wait))
		}
		if open {
			t.refused("open_calls")
			return tooMany(wait, "this token has too many calls open: end some")
		}
		t.refused("calls")
		return tooMany(wait, "this token makes too many calls")
	}
}

func (t *throttle) refused(reason string) {
	if t.meter != nil {
		t.meter.Refused(reason)
	}
}

func tooMany(wait time.Duration, text string) error {
	return fault.New(fault.Busy, "%s: try again in %s s", text, seconds(wait)).Retry()
}

// seconds are whole seconds, rounded up.
func seconds(d time.Duration) string {
	return strconv.FormatInt(max(1, int64((d+time.Second-1)/time.Second)), 10)
}

// peerKey is the address that a socket is connected to, without its port: one machine for IPv4, one network for IPv6,
// where a machine has as many addresses as it likes. No header is believed.
func peerKey(address string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return host
	}
	ip = ip.Unmap().WithZone("")
	if ip.Is6() && !ip.IsLoopback() {
		if network, err := ip.Prefix(64); err == nil {
			return network.String()
		}
	}
	return ip.String()
}

// timed bounds how long a body may take and how large it may be. Streams of the caller have no end to wait for.
func timed(within time.Duration, streams map[string]bool, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || r.ContentLength == 0 || streams[r.URL.Path] {
			next.ServeHTTP(w, r)
			return
		}
		body := &timedBody{ReadCloser: r.Body, within: within}
		if r.ProtoMajor >= 2 {
			// A deadline costs a turn of the connection's loop; closing the body ends a read as well.
			timer := time.AfterFunc(within, body.expire)
			defer timer.Stop()
		} else {
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(within)) // where there is no network nobody is slow
		}
		r.Body = http.MaxBytesReader(w, body, maxMessage+maxFraming)
		next.ServeHTTP(w, r)
	})
}
