package dispatch

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	devicev1 "throwbar.dev/throwbar/gen/go/throwbar/device/v1"
	"throwbar.dev/throwbar/server/fault"
)

// send hands a command to its device's current link, once for each link. Without a link it waits for one.
func (d *Dispatcher) send(l *live) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sendLocked(l, d.Links.Connected(l.rec.Device))
}

func (d *Dispatcher) sendLocked(l *live, epoch uint64) {
	if epoch == 0 || l.ending || l.sentOn == epoch {
		return
	}
	left := l.rec.Deadline.Sub(d.Now())
	if left <= 0 {
		return // the deadline's timer is about to say so
	}
	frame := &devicev1.ServerFrame{Kind: &devicev1.ServerFrame_Command{Command: &devicev1.CommandRequest{
		CommandId: l.rec.ID, Action: l.action, TimeLeft: durationpb.New(left), Attempt: l.attempt + 1, Saved: l.restore,
	}}}
	if !d.Links.Send(l.rec.Device, epoch, frame) {
		return
	}
	l.sentOn = epoch
	l.attempt++
	d.countSent(l.rec)
	if l.rec.State == Accepted {
		d.Ledger.Advance(l.rec, Sent)
		l.rec.State = Sent
	}
}

// Reconnected takes in what a device says on a new link: which commands it has in its journal, and outcomes that were
// not acknowledged. It returns those that the device should go on with.
func (d *Dispatcher) Reconnected(device string, running []string, outcomes []*devicev1.Outcome) []string {
	d.mu.Lock()
	var keep []string
	for _, id := range running {
		if l := d.live[id]; l != nil && l.rec.Device == device && !l.ending {
			keep = append(keep, id)
		}
	}
	d.mu.Unlock()
	for _, o := range outcomes {
		d.Outcome(device, o)
	}
	return keep
}

// Attached sends what waits for a device on its new link, in the order in which it was accepted, but for what the
// device said it has already.
func (d *Dispatcher) Attached(device string, epoch uint64, has []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, l := range d.byDevice[device] {
		if slices.Contains(has, l.rec.ID) {
			l.sentOn = epoch
			d.acknowledge(l)
			continue
		}
		d.sendLocked(l, epoch)
	}
}

// Acknowledged notes that a command is in the device's journal.
func (d *Dispatcher) Acknowledged(device, commandID string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if l := d.live[commandID]; l != nil && l.rec.Device == device {
		d.acknowledge(l)
	}
}

// acknowledge notes that a command is in its device's journal. The dispatcher's mu is held.
func (d *Dispatcher) acknowledge(l *live) {
	if l.ending || l.rec.State != Sent {
		return
	}
	d.Ledger.Advance(l.rec, Acknowledged)
	l.rec.State = Acknowledged
}

// Outcome takes in how a command ended on its device. It returns at once; the device gets its receipt when the
// outcome is written down.
func (d *Dispatcher) Outcome(device string, o *devicev1.Outcome) {
	d.mu.Lock()
	l := d.live[o.GetCommandId()]
	if l != nil && l.rec.Device == device && !l.ending {
		l.ending = true
		d.mu.Unlock()
		d.tasks.Go(func() { d.finish(l, d.endOf(l, o)) })
		return
	}
	d.mu.Unlock()
	if l != nil && l.rec.Device != device {
		d.Log.WarnContext(context.Background(), "outcome of another device's command ignored", slog.String("command_id", l.rec.ID), slog.String("device_id", device))
		return
	}
	d.tasks.Go(func() { d.late(device, l, o) })
}

// late notes an outcome of a command that has ended, and of one that is not known gives the device leave to forget.
func (d *Dispatcher) late(device string, l *live, o *devicev1.Outcome) {
	ctx := context.Background() // the note outlives the frame that brought it
	if l != nil {
		<-l.done // its end is being written
	}
	rec, err := d.Reader.Get(ctx, "", o.GetCommandId())
	switch {
	case fault.CodeOf(err) == fault.NotFound:
	case err != nil:
		d.Log.ErrorContext(ctx, "reading a command for a late outcome failed", slog.String("command_id", o.GetCommandId()), slog.Any("error", err))
		return
	case rec.Device != device:
		d.Log.WarnContext(ctx, "outcome of another device's command ignored", slog.String("command_id", rec.ID), slog.String("device_id", device))
		return
	case rec.State == Expired || rec.State == Cancelled || rec.State == Interrupted:
		if err := d.Ledger.Late(ctx, rec, describe(o)); err != nil {
			d.Log.ErrorContext(ctx, "writing a late outcome failed", slog.String("command_id", rec.ID), slog.Any("error", err))
			return
		}
	default: // a repeat of what is written down
	}
	d.receipt(device, o.GetCommandId())
}

func (d *Dispatcher) receipt(device, commandID string) {
	epoch := d.Links.Connected(device)
	if epoch == 0 {
		return
	}
	d.Links.Send(device, epoch, &devicev1.ServerFrame{Kind: &devicev1.ServerFrame_Receipt{
		Receipt: &devicev1.OutcomeReceipt{CommandIds: []string{commandID}},
	}})
}

// deadline ends a command whose time is up. What a connected device has taken over gets a moment more, for it may have
// started in time; it is asked to stop.
func (d *Dispatcher) deadline(l *live, final bool) {
	d.mu.Lock()
	if l.ending || d.closed {
		d.mu.Unlock()
		return
	}
	epoch := d.Links.Connected(l.rec.Device)
	if !final && l.rec.State != Accepted && epoch != 0 && l.sentOn == epoch {
		l.timer = time.AfterFunc(Grace, func() { d.deadline(l, true) })
		d.askToStop(l, epoch)
		d.mu.Unlock()
		return
	}
	l.ending = true
	d.mu.Unlock()
	state, err := Expired, fault.New(fault.Expired,
		"the device did not answer in time; it may be offline. Nothing runs any more").Retry()
	if l.rec.State == Acknowledged || (l.recovered && l.sentOn == 0) { // of the latter nobody knows whether it was taken over
		state, err = Interrupted, fault.New(fault.Interrupted,
			"the device may have started this and did not answer in time: nobody knows how it ended. Look before trying again")
	}
	d.tasks.Go(func() { d.finish(l, d.failure(l, state, err)) })
}

func (d *Dispatcher) askToStop(l *live, epoch uint64) {
	d.Links.Send(l.rec.Device, epoch, &devicev1.ServerFrame{Kind: &devicev1.ServerFrame_Cancel{
		Cancel: &devicev1.CancelRequest{CommandId: l.rec.ID},
	}})
}

// cancel ends a command that has not ended. A device that has it is asked to stop; what it still answers is late.
func (d *Dispatcher) cancel(l *live, why string) {
	d.mu.Lock()
	if l.ending {
		d.mu.Unlock()
		return
	}
	l.ending = true
	if epoch := d.Links.Connected(l.rec.Device); epoch != 0 && l.sentOn != 0 {
		d.askToStop(l, epoch)
	}
	d.mu.Unlock()
	d.tasks.Go(func() { d.finish(l, d.failure(l, Cancelled, fault.New(fault.Cancelled, "cancelled: %s", why))) })
}

// finish writes an end down, then tells whoever waits, then the device.
func (d *Dispatcher) finish(l *live, e end) {
	ctx := context.Background() // an end is written down whoever has gone away
	l.timer.Stop()
	if _, err := d.Ledger.Finish(ctx, e.End); err != nil {
		d.Log.ErrorContext(ctx, "writing the end of a command failed", slog.String("command_id", l.rec.ID), slog.Any("error", err))
		e = d.failure(l, Failed, fault.New(fault.Failed, "the outcome could not be written down: the server's log says why"))
	}
	d.countEnd(e.Record)
	l.out = e.out
	d.forget(l)
	close(l.done)
	if e.answered {
		d.receipt(l.rec.Device, l.rec.ID)
	}
}
