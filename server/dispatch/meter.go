package dispatch

import "time"

// Meter counts what happens to commands. Its methods must not wait.
type Meter interface {
	// CommandSent is a command handed to its device's link; again on each link that it is sent on.
	CommandSent(command string, age time.Duration)
	CommandEnded(command string, state State, took time.Duration)
}

// countSent counts a command that was sent. What a person took to decide is not the server's time.
func (d *Dispatcher) countSent(l *live) {
	if d.Meter == nil {
		return
	}
	since := l.rec.CreatedAt
	if !l.startedAt.IsZero() {
		since = l.startedAt
	}
	d.Meter.CommandSent(l.rec.Name, d.Now().Sub(since))
}

func (d *Dispatcher) countEnd(l *live, rec Record) {
	if d.Meter == nil {
		return
	}
	since := rec.CreatedAt
	if !l.startedAt.IsZero() {
		since = l.startedAt
	}
	d.Meter.CommandEnded(rec.Name, rec.State, rec.EndedAt.Sub(since))
}
