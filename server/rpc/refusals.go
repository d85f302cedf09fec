package rpc

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"connectrpc.com/connect/v2"
)

const (
	refusalBurst = 20
	refusalEvery = 500 * time.Millisecond
)

// refusals says in the log who was not let in as a device. Anybody can be refused, so that what is logged is bounded;
// what is left out is counted by the next line.
type refusals struct {
	log *slog.Logger

	mu    sync.Mutex
	room  float64   // guarded by mu; lines that may be written at once
	last  time.Time // guarded by mu
	quiet int       // guarded by mu; refusals without a line
}

func newRefusals(log *slog.Logger) *refusals { return &refusals{log: log, room: refusalBurst} }

// note logs one refusal. The device is that of the token, if it has one.
func (r *refusals) note(ctx context.Context, procedure, device string, why error) {
	r.mu.Lock()
	now := time.Now()
	r.room = min(refusalBurst, r.room+float64(now.Sub(r.last))/float64(refusalEvery))
	r.last = now
	if r.room < 1 {
		r.quiet++
		r.mu.Unlock()
		return
	}
	r.room--
	quiet := r.quiet
	r.quiet = 0
	r.mu.Unlock()
	r.log.WarnContext(ctx, "refused as a device", slog.String("procedure", procedure), slog.String("peer", peerOf(ctx)),
		slog.String("device_id", device), slog.String("why", why.Error()), slog.Int("more", quiet))
}

// peerOf is the address that a call's connection comes from. What headers say of it is anybody's word.
func peerOf(ctx context.Context) string {
	if info, ok := connect.CallInfoForServerContext(ctx); ok {
		return info.PeerAddr
	}
	return ""
}
