package dispatch

import (
	"context"
	"log/slog"
	"time"

	devicev1 "throwbar.dev/throwbar/gen/go/throwbar/device/v1"
	"throwbar.dev/throwbar/server/fault"
)

const (
	// settleMost is how many ends are written in one transaction.
	settleMost = 256
	// settleFirst and settleLast bound the pause between two tries to write an end.
	settleFirst = 50 * time.Millisecond
	settleLast  = 5 * time.Second
	// settleWithin is how long a caller waits for an end that cannot be written down, before it is told that the
	// outcome is not known.
	settleWithin = 5 * time.Second
)

// settle queues the end of a command, whose fate it seals: ending is set, and no other end comes. The dispatcher's mu
// is held.
func (d *Dispatcher) settle(e *end) {
	if e.l.timer != nil {
		e.l.timer.Stop()
	}
	e.Steps, e.l.steps = e.l.steps, nil // those that the ledger did not come for are written with the end
	d.ends = append(d.ends, e)
	if !d.settling {
		d.settling = true
		d.tasks.Go(d.settleAll)
	}
}

// settleAll writes ends until there are none. What comes up while a transaction is written shares the next one.
func (d *Dispatcher) settleAll() {
	for {
		d.mu.Lock()
		n := min(len(d.ends), settleMost)
		if n == 0 {
			d.settling = false
			d.mu.Unlock()
			return
		}
		batch := make([]*end, n)
		copy(batch, d.ends)
		rest := copy(d.ends, d.ends[n:])
		clear(d.ends[rest:])
		d.ends = d.ends[:rest]
		d.mu.Unlock()
		d.settleBatch(batch)
	}
}

func (d *Dispatcher) settleBatch(batch []*end) {
	ctx := context.Background() // an end is written down whoever has gone away
	rows := make([]End, 0, len(batch))
	for _, e := range batch {
		rows = append(rows, e.End)
	}
	err := d.Ledger.Finish(ctx, rows)
	if err == nil {
		d.settled(batch)
		return
	}
	for _, e := range batch { // each for itself: one that is refused does not hold up the others
		d.tasks.Go(func() { d.settleAlone(ctx, e) })
	}
}

// settleAlone tries to write one end until it is written or the server stops. Until then the command has not ended, and
// its device gets no receipt: after a restart it says again how it ended. The caller does not wait for ever.
func (d *Dispatcher) settleAlone(ctx context.Context, e *end) {
	began := time.Now()
	for pause := settleFirst; ; pause = min(2*pause, settleLast) {
		err := d.Ledger.Finish(ctx, []End{e.End})
		if err == nil {
			d.settled([]*end{e})
			return
		}
		d.Log.ErrorContext(ctx, "writing the end of a command failed: it is tried again",
			slog.String("command_id", e.Record.ID), slog.Any("error", err))
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-d.stop:
			timer.Stop()
			d.tell([]*end{d.unwritten(e)})
			return
		}
		if time.Since(began) >= settleWithin {
			d.tell([]*end{d.unwritten(e)})
		}
	}
}

// unwritten is what a caller is told of an end that is not written down: that nobody knows.
func (d *Dispatcher) unwritten(e *end) *end {
	return d.failure(e.l, Interrupted, fault.New(fault.Interrupted,
		"this has ended, but the server could not write the outcome down: look it up later by its id, before trying again"))
}

// settled takes in that ends are written down: whoever waits is told, then the devices.
func (d *Dispatcher) settled(batch []*end) {
	d.mu.Lock()
	for _, e := range batch {
		d.forget(e.l)
		d.countEnd(e.l, e.Record)
	}
	d.mu.Unlock()
	d.tell(batch)
	for _, e := range batch {
		if e.answered {
			d.receipt(e.Record.Device, e.Record.ID)
		}
	}
	for _, e := range batch {
		for _, o := range e.l.repeats { // nobody adds to them any more
			d.tasks.Go(func() { d.late(e.Record.Device, o) })
		}
	}
}

// tell answers whoever waits for commands, once.
func (d *Dispatcher) tell(batch []*end) {
	var ended []*Order
	d.mu.Lock()
	for _, e := range batch {
		if e.l.told {
			continue
		}
		e.l.told = true
		e.l.out = e.out
		close(e.l.done)
		if o := e.l.order; o != nil {
			if o.left--; o.left == 0 {
				ended = append(ended, o)
			}
		}
	}
	d.mu.Unlock()
	for _, o := range ended {
		o.Answer(o.response(), nil)
	}
}

// late notes an outcome of a command that has ended, and of one that is not known gives the device leave to forget.
func (d *Dispatcher) late(device string, o *devicev1.Outcome) {
	ctx := context.Background() // the note outlives the frame that brought it
	log := d.Log.With(slog.String("command_id", o.GetCommandId()), slog.String("device_id", device))
	rec, err := d.Reader.Get(ctx, "", o.GetCommandId())
	switch {
	case fault.CodeOf(err) == fault.NotFound:
	case err != nil:
		log.ErrorContext(ctx, "reading a command for a late outcome failed", slog.Any("error", err))
		return
	case rec.Device != device:
		log.WarnContext(ctx, "outcome of another device's command ignored")
		return
	case !rec.State.Ended(): // its end could not be written: the device keeps the outcome for the next start
		return
	case rec.State == Expired || rec.State == Cancelled || rec.State == Interrupted:
		if !d.insist(func() error {
			err := d.noteLate(ctx, rec, o)
			if err != nil {
				log.ErrorContext(ctx, "writing a late outcome failed: it is tried again", slog.Any("error", err))
			}
			return err
		}) {
			return // the device says it again on its next link
		}
	default: // a repeat of what is written down
	}
	d.receipt(device, o.GetCommandId())
}

// insist tries something until it works, which is true, or until the server stops.
func (d *Dispatcher) insist(try func() error) bool {
	for pause := settleFirst; ; pause = min(2*pause, settleLast) {
		if try() == nil {
			return true
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-d.stop:
			timer.Stop()
			return false
		}
	}
}

// noteLate writes a late outcome down. It changes nothing for the command; but of the tabs that the server kept for it,
// those are let go that the device says are open.
func (d *Dispatcher) noteLate(ctx context.Context, rec Record, o *devicev1.Outcome) error {
	dropped, err := d.openAfterAll(ctx, rec, o)
	if err != nil {
		return err
	}
	if err := d.Ledger.Late(ctx, rec, describe(o), dropped); err != nil {
		return err
	}
	return nil
}
