package dispatch

import (
	"context"
	"time"

	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	"throwbar.dev/throwbar/server/fault"
)

// abandonWithin is how long a caller that went away is waited with until what it left is written down as cancelled.
// Only a store that does not write takes so long.
const abandonWithin = 10 * time.Second

const wentAway = "the caller went away"

// Order is one request under way.
type Order struct {
	Request Request
	// Answer is called once: when the command has ended on every device, or why it was not accepted. It has to return
	// soon and must not call the dispatcher.
	Answer func(*controlv1.DispatchResponse, error)

	parts []*part
	group string // its dispatch
	left  int    // guarded by the dispatcher's mu; parts that have not ended
}

// Start accepts orders, all in one transaction, and sends them. It returns when they are written down. Each is answered
// by itself: one that makes no sense does not hold up the others.
func (d *Dispatcher) Start(ctx context.Context, orders []*Order) {
	accepted := make([]*Order, 0, len(orders))
	for _, o := range orders {
		parts, err := d.plan(ctx, o.Request)
		switch {
		case err != nil:
			o.Answer(nil, err)
		case o.Request.DryRun:
			o.Answer(d.dryRun(o.Request, parts), nil)
		default:
			o.parts = parts
			accepted = append(accepted, o)
		}
	}
	if len(accepted) > 0 {
		d.accept(ctx, accepted)
	}
}

// Abandon treats orders as those of a caller that went away: what has not ended is cancelled, unless it is detached.
// They are answered all the same.
func (d *Dispatcher) Abandon(orders []*Order) {
	for _, o := range orders {
		if !o.Request.Detached {
			d.abandon(o)
		}
	}
}

// abandon cancels what has not ended of an order.
func (d *Dispatcher) abandon(o *Order) {
	for _, p := range o.parts {
		if p.live != nil {
			d.cancel(p.live, wentAway)
		}
	}
}

// response is the answer to an order whose parts have all ended.
func (o *Order) response() *controlv1.DispatchResponse {
	res := &controlv1.DispatchResponse{Outcomes: make([]*controlv1.DeviceOutcome, 0, len(o.parts))}
	for _, p := range o.parts {
		if p.live == nil {
			res.Outcomes = append(res.Outcomes, p.refusal())
			continue
		}
		res.Outcomes = append(res.Outcomes, p.live.out)
	}
	return res
}

// Dispatch sends a command and waits for its end on every device. When the context ends first, what is unsent is
// cancelled and what is sent is asked to stop, unless the request stays.
func (d *Dispatcher) Dispatch(ctx context.Context, req Request) (*controlv1.DispatchResponse, error) {
	return d.await(ctx, req.stays, func(answer func(*controlv1.DispatchResponse, error)) *Order {
		o := &Order{Request: req, Answer: answer}
		d.Start(ctx, []*Order{o})
		return o
	})
}

// await starts an order and waits for its answer.
func (d *Dispatcher) await(
	ctx context.Context, stays func(cause error) bool, start func(func(*controlv1.DispatchResponse, error)) *Order,
) (*controlv1.DispatchResponse, error) {
	type answer struct {
		res *controlv1.DispatchResponse
		err error
	}
	answers := make(chan answer, 1)
	o := start(func(res *controlv1.DispatchResponse, err error) { answers <- answer{res, err} })
	select {
	case a := <-answers:
		return a.res, a.err
	case <-ctx.Done():
	}
	if !stays(context.Cause(ctx)) {
		d.abandon(o)
		patience := time.NewTimer(abandonWithin)
		defer patience.Stop()
		select {
		case <-answers: // all is written down
		case <-patience.C:
		}
	}
	return nil, fault.Wrap(fault.Cancelled, context.Cause(ctx), wentAway)
}

// Submit sends a command and says under which ids it was written down.
func (d *Dispatcher) Submit(ctx context.Context, req Request) (*controlv1.SubmitResponse, error) {
	parts, err := d.plan(ctx, req)
	if err != nil {
		return nil, err
	}
	o := &Order{Request: req, parts: parts}
	refused := make(chan error, 1)
	o.Answer = func(_ *controlv1.DispatchResponse, err error) { refused <- err }
	d.accept(ctx, []*Order{o})
	res := &controlv1.SubmitResponse{}
	for _, p := range parts {
		if p.live == nil && p.err == nil {
			return nil, <-refused
		}
		if p.live == nil {
			res.Outcomes = append(res.Outcomes, p.refusal())
			continue
		}
		res.Outcomes = append(res.Outcomes, &controlv1.DeviceOutcome{
			DeviceId: p.device.ID, DeviceName: p.device.Name, CommandId: p.live.rec.ID, SavedIds: savedIDs(p.live.saved),
			ApprovalId: p.live.askedBy(),
		})
	}
	return res, nil
}
