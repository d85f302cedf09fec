package simulation

import (
	"bytes"
	"fmt"
	"sync"
	"time"

	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	"throwbar.dev/throwbar/server/dispatch"
)

// world is what is true: it stands outside of server, devices and callers, and knows the time.
type world struct {
	start time.Time

	mu       sync.Mutex
	lines    []string            // guarded by mu; the trace
	commands map[string]*command // guarded by mu; by id, all that a server tried to write down
	runs     map[string][]*run   // guarded by mu; by command id
	told     []told              // guarded by mu; what callers were told
	seen     []seen              // guarded by mu; what the watcher was told
	servers  []*server           // guarded by mu; in order
	broken   []string            // guarded by mu; promises that were seen to be broken on the way
	diskBad  []span              // guarded by mu; when the disk failed
}

// span is a time.
type span struct{ from, to time.Time }

// command is a command as the server that took it on wrote it down.
type command struct {
	rec      dispatch.Record
	server   *server // that accepted it
	at       time.Time
	written  bool // Accept said so, while that server was alive
	ttl      time.Duration
	deadline time.Time // by true time
	ends     []ending  // ends that were written down
}

type ending struct {
	state dispatch.State
	at    time.Time
}

// run is one execution of a handler.
type run struct {
	device, start int // number of the device, and which start of its process
	began         time.Time
	deadline      time.Time // of the handler's context
	transit       time.Duration
	effect        time.Time // zero if there was none
	result        *commandv1.Result
}

// told is an answer that reached a caller.
type told struct {
	request int
	device  int
	at      time.Time
	outcome *controlv1.DeviceOutcome
	submit  bool
}

// seen is an event that reached the watcher.
type seen struct {
	event *controlv1.Event
	at    time.Time
}

func newWorld() *world {
	return &world{start: time.Now(), commands: map[string]*command{}, runs: map[string][]*run{}}
}

// notef adds a line to the trace.
func (w *world) notef(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.noteLocked(format, args...)
}

func (w *world) noteLocked(format string, args ...any) {
	w.lines = append(w.lines, fmt.Sprintf("%12.6f  %s", time.Since(w.start).Seconds(), fmt.Sprintf(format, args...)))
}

// breakf notes a broken promise.
func (w *world) breakf(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.breakLocked(format, args...)
}

func (w *world) breakLocked(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	w.broken = append(w.broken, text)
	w.noteLocked("BROKEN %s", text)
}

// logWriter puts what programs log into the trace.
type logWriter struct {
	world *world
	who   string
}

// Write is one record.
func (l logWriter) Write(b []byte) (int, error) {
	l.world.notef("%s: %s", l.who, bytes.TrimSpace(b))
	return len(b), nil
}

func (w *world) accepting(s *server, rec dispatch.Record) {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := &command{
		rec: rec, server: s, at: time.Now(), ttl: rec.Deadline.Sub(rec.CreatedAt), deadline: rec.Deadline.Add(-s.clock),
	}
	w.commands[rec.ID] = c
	w.noteLocked("server%d accepts %s %s on %s until %.6f", s.n, rec.ID, rec.Name, rec.Device, c.deadline.Sub(w.start).Seconds())
}

func (w *world) accepted(s *server, id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if c := w.commands[id]; c != nil && !s.dead {
		c.written = true
	}
}

func (w *world) ended(s *server, id string, state dispatch.State, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.noteLocked("server%d ends %s %s: %v", s.n, id, state, err)
	if c := w.commands[id]; c != nil && err == nil && !s.dead {
		c.ends = append(c.ends, ending{state, time.Now()})
	}
}

// begins notes that a handler begins to run a command.
func (w *world) begins(id string, r *run) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r.began = time.Now()
	w.runs[id] = append(w.runs[id], r)
	w.noteLocked("device%d.%d runs %s, %v left, transit %v", r.device, r.start, id, time.Until(r.deadline), r.transit)
}

func (w *world) tell(t told) {
	t.at = time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.told = append(w.told, t)
	w.noteLocked("request %d is told %v", t.request, t.outcome)
}

// allowed is the latest time until which servers could let a command run: its deadline, and where a server's clock was
// set back while it was down, one more time to live from its start.
func (c *command) allowed(servers []*server) time.Time {
	until := c.deadline
	for _, s := range servers {
		if s.n > c.server.n && len(c.ends) == 0 || s.n > c.server.n && c.ends[0].at.After(s.started) {
			until = later(until, earlier(c.rec.Deadline.Add(-s.clock), s.started.Add(c.ttl)))
		}
	}
	return until
}
