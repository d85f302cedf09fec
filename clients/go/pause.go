package throwbar

import (
	"sync"

	devicev1 "throwbar.dev/throwbar/gen/go/throwbar/device/v1"
)

// pause is whether a person has paused a device. It outlives links.
type pause struct {
	starting sync.RWMutex // held for reading while a command starts, which may take as long as the journal does

	mu  sync.Mutex // never held while anything waits
	on  bool       // guarded by mu
	out *outbox    // guarded by mu; the current link's, nil while there is none
}

// SetPaused pauses a device, or ends the pause. A paused device stays connected and goes on to say what its browser shows,
// but answers each command REFUSED, those that were sent earlier and wait here too. When SetPaused has returned nothing
// more starts; what has started goes on to its end, and a command that comes again is answered with what it had.
// The server is told, now or with the next link. The pause lasts as long as the Device does, across links and runs: a
// program that wants it to outlive a restart writes it down, and calls SetPaused before Run.
//
// Only a person at the device is to pause it: no command does.
func (d *Device) SetPaused(paused bool) {
	d.pause.set(paused)
	d.pause.starting.Lock() // what is about to start has started, and what comes now finds it paused
	defer d.pause.starting.Unlock()
}

// Paused says whether the device is paused.
func (d *Device) Paused() bool { return d.pause.is() }

func (p *pause) set(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.on == on {
		return
	}
	p.on = on
	if p.out != nil {
		p.out.offer(condition(on))
	}
}

func (p *pause) is() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.on
}

// attach makes a link the current one, whose Hello has said something already.
func (p *pause) attach(out *outbox, said bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.out = out
	if p.on != said {
		out.offer(condition(p.on))
	}
}

// detach takes the current link away.
func (p *pause) detach(out *outbox) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.out == out {
		p.out = nil
	}
}

// begin calls start unless the device is paused, and says whether it is.
func (p *pause) begin(start func() error) (paused bool, err error) {
	p.starting.RLock()
	defer p.starting.RUnlock()
	if p.is() {
		return true, nil
	}
	return false, start()
}

func errPaused() *Error {
	return Errorf(CodeRefused, "a person has paused this device: nothing was done, and nothing runs there until they end the pause")
}

// errPausedSince is for a command that was interrupted by a restart and would run again.
func errPausedSince() *Error {
	return Errorf(CodeInterrupted, "the device was restarted while it was at it, and a person has paused it since: nobody knows how it ended")
}

func condition(paused bool) *devicev1.DeviceFrame {
	return &devicev1.DeviceFrame{Kind: &devicev1.DeviceFrame_Condition{Condition: &devicev1.Condition{Paused: paused}}}
}
