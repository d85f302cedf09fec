package dispatch

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	devicev1 "throwbar.dev/throwbar/gen/go/throwbar/device/v1"
	optionv1 "throwbar.dev/throwbar/gen/go/throwbar/option/v1"
	"throwbar.dev/throwbar/server/fault"
)

// wallSlack is how far the wall clock may be behind a command's deadline before it is not sent any more. A machine
// that slept looks as if its clock had been set forward, and nothing runs on wake that was due before.
const wallSlack = 5 * time.Second

// send hands a command to a link of its device, once for each link. Without a link it waits for one. The dispatcher's
// mu is held.
func (d *Dispatcher) send(l *live, epoch uint64) {
	if epoch == 0 || l.ending || !l.recorded || l.sentOn == epoch || l.rec.State == AwaitingApproval {
		return
	}
	left := time.Until(l.due)
	if left <= 0 {
		return // the deadline's timer is about to say so
	}
	if d.Now().After(l.rec.Deadline.Add(wallSlack)) {
		d.expire(l)
		return
	}
	frame := &devicev1.ServerFrame{Kind: &devicev1.ServerFrame_Command{Command: &devicev1.CommandRequest{
		CommandId: l.rec.ID, Action: l.action, TimeLeft: durationpb.New(left), Attempt: l.attempt + 1, Saved: l.beside(),
	}}}
	if !d.Links.Send(l.rec.Device, epoch, frame) {
		return
	}
	l.sentOn = epoch
	l.attempt++
	d.countSent(l)
	if l.rec.State == Accepted {
		d.step(l, Sent)
	}
}

// beside is what travels beside the action: the saved tabs that it brings back, or what is kept of the tabs that it saves,
// from which the device sees whether that is still where they are. Too much of it is left out.
func (l *live) beside() []*commandv1.SavedTab {
	if l.entry.Command.GetKeep() != optionv1.Keep_KEEP_SAVED {
		return l.restore
	}
	size := 0
	for _, tab := range l.saved {
		size += proto.Size(tab)
	}
	if size > maxSavedBytes {
		return nil
	}
	return l.saved
}

// step goes to a state that is no end. It is written down a moment later, or with the end. The dispatcher's mu is held.
func (d *Dispatcher) step(l *live, to State) {
	if l.rec.State == to {
		return
	}
	if !d.may(l, to) {
		return
	}
	l.steps = append(l.steps, Step{Record: l.rec, To: to, At: d.Now()})
	l.rec.State = to
	if len(l.steps) == 1 {
		d.noted = append(d.noted, l)
	}
	if !d.noting {
		d.noting = true
		time.AfterFunc(stepsAfter, d.noteSteps)
	}
}

// stepsAfter is how long a step may wait to be written with others, or with the end of its command: most commands end
// within it, and their row is written twice and not four times. A step that is lost with the process does no harm: what
// has not ended counts as sent after a restart.
const stepsAfter = 50 * time.Millisecond

func (d *Dispatcher) noteSteps() {
	d.mu.Lock()
	closed := d.closed
	d.mu.Unlock()
	if !closed {
		d.Ledger.Advance(d.takeSteps)
	}
}

// may says whether the table has a step. One that it does not have is a fault of this program: it is not taken.
func (d *Dispatcher) may(l *live, to State) bool {
	if l.rec.State.CanGo(to) {
		return true
	}
	d.Log.ErrorContext(context.Background(), "a command was about to take a step that the table does not have",
		slog.String("command_id", l.rec.ID), slog.String("from", string(l.rec.State)), slog.String("to", string(to)))
	return false
}

// takeSteps gives the ledger the steps that no end took along.
func (d *Dispatcher) takeSteps() []Step {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.noting = false
	var steps []Step
	for _, l := range d.noted {
		steps = append(steps, l.steps...)
		l.steps = nil
	}
	clear(d.noted)
	d.noted = d.noted[:0]
	return steps
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
	kept := make(map[string]bool, len(has))
	for _, id := range has {
		kept[id] = true
	}
	for _, l := range slices.Clone(d.byDevice[device]) { // sending may end one
		if kept[l.rec.ID] && !l.ending {
			l.sentOn = epoch
			d.acknowledge(l)
			continue
		}
		d.send(l, epoch)
	}
}

// Displaced ends what was sent on a device's link that another start of its program has taken while it stood: a copied
// profile, which has a journal of its own. The older one may be at it still, so it is not done again.
func (d *Dispatcher) Displaced(device string, has []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, l := range slices.Clone(d.byDevice[device]) {
		if l.sentOn == 0 || l.ending || slices.Contains(has, l.rec.ID) {
			continue
		}
		l.ending = true
		d.settle(d.failure(l, Interrupted, fault.New(fault.Interrupted,
			"another browser or program with the same pairing took the device's place while this was under way: nobody knows how far it came")))
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
	d.step(l, Acknowledged)
}

// Outcome takes in how a command ended on its device. It returns at once; the device gets its receipt when the
// outcome is written down.
func (d *Dispatcher) Outcome(device string, o *devicev1.Outcome) {
	d.mu.Lock()
	l := d.live[o.GetCommandId()]
	switch {
	case l == nil:
		d.mu.Unlock()
		d.tasks.Go(func() { d.late(device, o) })
		return
	case l.rec.Device != device || !l.recorded || l.rec.State == AwaitingApproval:
		d.mu.Unlock()
		d.Log.WarnContext(context.Background(), "outcome of a command that the device does not have ignored",
			slog.String("command_id", o.GetCommandId()), slog.String("device_id", device))
		return
	case l.ending: // its end is being written: then it is seen whether this is that very end or a late one
		if len(l.repeats) < maxRepeats {
			l.repeats = append(l.repeats, o)
		}
		d.mu.Unlock()
		return
	}
	l.ending = true
	d.mu.Unlock()
	e := d.endOf(l, o)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.settle(e)
}

// maxRepeats is how often an outcome is kept that comes again while an end is being written.
const maxRepeats = 4

// receiptsAfter is how long a receipt may wait for others of its device, to travel with them. A receipt that is lost with
// the process or the link does no harm: the device says its outcome again and gets another one.
const receiptsAfter = 10 * time.Millisecond

// receipt tells a device soon that an outcome is written down.
func (d *Dispatcher) receipt(device, commandID string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.receipts[device] = append(d.receipts[device], commandID)
	if !d.receipting {
		d.receipting = true
		time.AfterFunc(receiptsAfter, d.sendReceipts)
	}
}

func (d *Dispatcher) sendReceipts() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.receipting = false
	for device, ids := range d.receipts {
		if epoch := d.Links.Connected(device); epoch != 0 {
			d.Links.Send(device, epoch, &devicev1.ServerFrame{Kind: &devicev1.ServerFrame_Receipt{
				Receipt: &devicev1.OutcomeReceipt{CommandIds: ids},
			}})
		}
	}
	clear(d.receipts)
}

// deadline ends a command whose time is up. What a connected device has taken over gets a moment more, for it may have
// started in time; it is asked to stop.
func (d *Dispatcher) deadline(l *live, final bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if l.ending || d.closed {
		return
	}
	epoch := d.Links.Connected(l.rec.Device)
	if !final && l.rec.State != Accepted && epoch != 0 && l.sentOn == epoch {
		l.timer = time.AfterFunc(Grace, func() { d.deadline(l, true) })
		d.askToStop(l, epoch)
		return
	}
	d.expire(l)
}

// expire ends a command that ran out of time. The dispatcher's mu is held.
func (d *Dispatcher) expire(l *live) {
	state, err := Expired, fault.New(fault.Expired,
		"the device did not answer in time; it may be offline. Nothing runs any more").Retry()
	if l.rec.State == Acknowledged || (l.recovered && l.sentOn == 0) { // of the latter nobody knows whether it was taken over
		state, err = Interrupted, fault.New(fault.Interrupted,
			"the device may have started this and did not answer in time: nobody knows how it ended. Look before trying again")
	}
	l.ending = true
	d.settle(d.failure(l, state, err))
}

func (d *Dispatcher) askToStop(l *live, epoch uint64) {
	d.Links.Send(l.rec.Device, epoch, &devicev1.ServerFrame{Kind: &devicev1.ServerFrame_Cancel{
		Cancel: &devicev1.CancelRequest{CommandId: l.rec.ID},
	}})
}

// cancel ends a command that has not ended. A device that has it is asked to stop; what it still answers is late.
func (d *Dispatcher) cancel(l *live, why string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if l.ending {
		return
	}
	if l.starting {
		l.cancelled = why
		return
	}
	l.ending = true
	if epoch := d.Links.Connected(l.rec.Device); epoch != 0 && l.sentOn != 0 {
		d.askToStop(l, epoch)
	}
	d.settle(d.failure(l, Cancelled, fault.New(fault.Cancelled, "cancelled: %s", why)))
}
