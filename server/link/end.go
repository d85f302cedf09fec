package link

import (
	"errors"
	"io"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	devicev1 "throwbar.dev/throwbar/gen/go/throwbar/device/v1"
	"throwbar.dev/throwbar/server/fault"
)

// End is why a link ends, or why one is not opened. It is a fault for the call that holds the link.
type End struct {
	reason devicev1.EndReason // what the device is told; unspecified if it is told nothing
	after  time.Duration      // when it may come back
	label  string             // of the metrics
	cause  error              // nil if the device left on purpose
}

// Error is the cause's text.
func (e *End) Error() string { return e.cause.Error() }

// Unwrap is the cause.
func (e *End) Unwrap() error { return e.cause }

// Frame is what the device is told; nil if it is told nothing.
func (e *End) Frame() *devicev1.ServerFrame {
	if e.reason == devicev1.EndReason_END_REASON_UNSPECIFIED {
		return nil
	}
	end := &devicev1.LinkEnd{Reason: e.reason}
	if e.after > 0 {
		end.RetryAfter = durationpb.New(e.after)
	}
	return &devicev1.ServerFrame{Kind: &devicev1.ServerFrame_End{End: end}}
}

func left() *End { return &End{label: "left"} }

func replaced() *End {
	return &End{
		reason: devicev1.EndReason_END_REASON_REPLACED, label: "replaced",
		cause: fault.New(fault.Conflict, "a newer link of this device has taken over"),
	}
}

func revoked() *End {
	return &End{
		reason: devicev1.EndReason_END_REASON_REVOKED, label: "revoked",
		cause: fault.New(fault.Unauthenticated, "the device was revoked: pair it again"),
	}
}

func goingAway(after time.Duration) *End {
	return &End{
		reason: devicev1.EndReason_END_REASON_GOING_AWAY, after: after, label: "going_away",
		cause: fault.New(fault.Unavailable, "the server stops: come back later").Retry(),
	}
}

func overfull() *End {
	return &End{
		reason: devicev1.EndReason_END_REASON_VIOLATION, label: "overfull",
		cause: fault.New(fault.Busy, "the device does not take its frames"),
	}
}

func busy(after time.Duration) *End {
	return &End{
		reason: devicev1.EndReason_END_REASON_BUSY, after: after, label: "busy",
		cause: fault.New(fault.Busy, "too many devices connect at once: come back in %s", after.Round(time.Second)).Retry(),
	}
}

func silent(d time.Duration) *End {
	return &End{label: "silent", cause: fault.New(fault.Expired, "the device was silent for %s", d.Round(time.Second))}
}

// broken is the end of a link whose transport failed, or whose device said what it must not say.
func broken(err error) *End {
	switch {
	case err == nil, errors.Is(err, io.EOF): // the device closed its side
		return &End{label: "closed"}
	case fault.CodeOf(err) == fault.Invalid:
		return &End{label: "violation", cause: err}
	default:
		return &End{label: "lost", cause: err}
	}
}
