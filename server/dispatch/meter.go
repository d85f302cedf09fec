package dispatch

import "time"

// Meter counts what happens to commands. Its methods must not wait.
type Meter interface {
	// CommandSent is a command handed to its device's link; again on each link that it is sent on.
	CommandSent(command string, age time.Duration)
	CommandEnded(command string, state State, took time.Duration)
}

func (d *Dispatcher) countSent(rec Record) {
	if d.Meter != nil {
		d.Meter.CommandSent(rec.Name, d.Now().Sub(rec.CreatedAt))
	}
}

func (d *Dispatcher) countEnd(rec Record) {
	if d.Meter != nil {
		d.Meter.CommandEnded(rec.Name, rec.State, rec.EndedAt.Sub(rec.CreatedAt))
	}
}
