package simulation

import (
	"context"
	"errors"
	"io"
	"time"

	"google.golang.org/protobuf/proto"

	throwbar "throwbar.dev/throwbar/clients/go"
	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	"throwbar.dev/throwbar/server/dispatch"
)

// final is what the server says when all is over.
type final struct {
	at     time.Time
	rows   map[string]*controlv1.Command
	events []*controlv1.Event
	byID   map[string][]*controlv1.Event // of commands
	tabs   [devices][]*commandv1.Tab
	live   [devices]bool
}

// probe sends one command to each device when nothing has gone wrong for a while. It has to be carried out.
func (s *sim) probe() {
	for i := range devices {
		res, err := s.callers[0].Commands.Dispatch(background(), &controlv1.DispatchRequest{
			Action: openAction(requests + i), DeviceIds: s.ids([]int{i}),
		})
		if err != nil || len(res.GetOutcomes()) != 1 || res.GetOutcomes()[0].GetResult() == nil {
			s.world.breakf("device%d does not run a command long after the last fault: %v, %v", i, res, err)
			continue
		}
		s.tellAll(requests+i, res.GetOutcomes(), false)
	}
	pause(2 * time.Second) // receipts, deltas and the watcher
}

// collect reads everything back through the API.
func (s *sim) collect() *final {
	f := &final{at: time.Now(), rows: map[string]*controlv1.Command{}, byID: map[string][]*controlv1.Event{}}
	ctx, cancel := context.WithTimeout(background(), time.Minute)
	defer cancel()
	client := s.callers[0]
	token := ""
	for {
		req := &controlv1.ListCommandsRequest{PageSize: proto.Uint32(7)}
		if token != "" {
			req.PageToken = &token
		}
		res, err := client.Commands.ListCommands(ctx, req)
		if err != nil {
			s.world.breakf("list commands: %v", err)
			return f
		}
		for _, c := range res.GetCommands() {
			if f.rows[c.GetCommandId()] != nil {
				s.world.breakf("%s is listed twice", c.GetCommandId())
			}
			f.rows[c.GetCommandId()] = c
		}
		if token = res.GetNextPageToken(); token == "" {
			break
		}
	}
	f.events = s.log0(client)
	for _, e := range f.events {
		if c := e.GetCommand(); c != nil {
			f.byID[c.GetCommandId()] = append(f.byID[c.GetCommandId()], e)
		}
	}
	for i := range devices {
		id := s.fixture.identities[i].DeviceID
		res, err := client.Browser.ListTabs(ctx, &controlv1.ListTabsRequest{DeviceId: &id, PageSize: proto.Uint32(500)})
		if err != nil || len(res.GetDevices()) != 1 {
			s.world.breakf("list the tabs of device%d: %v, %v", i, res, err)
			continue
		}
		f.tabs[i], f.live[i] = res.GetTabs(), res.GetDevices()[0].GetFreshness().GetLive()
	}
	return f
}

// log0 is the event log since the fixture.
func (s *sim) log0(client *throwbar.Client) []*controlv1.Event {
	ctx, cancel := context.WithTimeout(background(), time.Second)
	defer cancel()
	stream, err := client.Commands.WatchEvents(ctx, &controlv1.WatchEventsRequest{Cursor: &s.fixture.cursor})
	if err != nil {
		s.world.breakf("read the event log: %v", err)
		return nil
	}
	defer func() { _ = stream.Close() }()
	var events []*controlv1.Event
	for {
		msg, err := stream.Receive()
		if err != nil {
			if !errors.Is(err, io.EOF) && ctx.Err() == nil {
				s.world.breakf("read the event log: %v", err)
			}
			return events
		}
		if e := msg.GetEvent(); e != nil {
			events = append(events, e)
		}
	}
}

var states = map[controlv1.State]dispatch.State{
	controlv1.State_STATE_ACCEPTED: dispatch.Accepted, controlv1.State_STATE_SENT: dispatch.Sent,
	controlv1.State_STATE_ACKNOWLEDGED: dispatch.Acknowledged, controlv1.State_STATE_SUCCEEDED: dispatch.Succeeded,
	controlv1.State_STATE_FAILED: dispatch.Failed, controlv1.State_STATE_EXPIRED: dispatch.Expired,
	controlv1.State_STATE_CANCELLED: dispatch.Cancelled, controlv1.State_STATE_INTERRUPTED: dispatch.Interrupted,
}

// check compares what everybody was told with what is true.
func (s *sim) check(f *final) {
	w := s.world
	w.mu.Lock()
	defer w.mu.Unlock()
	for id, row := range f.rows {
		s.checkCommand(f, id, row)
	}
	for id, c := range w.commands {
		if c.written && f.rows[id] == nil {
			w.breakLocked("%s was written down and is not there", id)
		}
	}
	for id, runs := range w.runs {
		if f.rows[id] == nil {
			w.breakLocked("%s was run by device%d and was never written down", id, runs[0].device)
		}
	}
	for _, t := range w.told {
		s.checkTold(f, t)
	}
	s.checkWatcher(f)
	for i, d := range s.devices {
		s.checkDevice(f, i, d)
	}
}

// checkCommand checks one command's row, events and runs.
func (s *sim) checkCommand(f *final, id string, row *controlv1.Command) {
	w := s.world
	c := w.commands[id]
	if c == nil {
		w.breakLocked("%s is listed and was never written down", id)
		return
	}
	state := states[row.GetState()]
	if !state.Ended() {
		w.breakLocked("%s is still %s long after its deadline", id, state)
		return
	}
	s.checkEvents(f, id, state)
	runs := w.runs[id]
	var effects int
	for _, r := range runs {
		if !r.effect.IsZero() {
			effects++
		}
	}
	if len(runs) > 1 && row.GetName() != activateTab.String() {
		w.breakLocked("%s was run %d times and is not idempotent", id, len(runs))
	}
	for i := 1; i < len(runs); i++ {
		if runs[i].start == runs[i-1].start {
			w.breakLocked("%s was run twice by device%d.%d", id, runs[i].device, runs[i].start)
		}
	}
	for _, r := range runs {
		s.checkRun(c, id, r)
	}
	switch state {
	case dispatch.Succeeded:
		if effects == 0 {
			w.breakLocked("%s has succeeded without an effect", id)
		}
	case dispatch.Failed:
		if effects > 0 {
			w.breakLocked("%s has failed (%v) and had an effect", id, row.GetError())
		} else if !s.interrupted(c) {
			w.breakLocked("%s has failed for no reason: %v", id, row.GetError())
		}
	case dispatch.Interrupted:
		s.checkInterrupted(f, c, id)
	case dispatch.Expired:
		for _, e := range c.ends {
			if e.at.Before(c.deadline.Add(-time.Millisecond)) && c.server == s.serverAt(e.at) {
				w.breakLocked("%s has expired at %.6f, before its deadline", id, e.at.Sub(w.start).Seconds())
			}
		}
	case dispatch.Cancelled:
		s.checkCancelled(f, c, id)
	default:
	}
	if len(c.ends) > 1 {
		w.breakLocked("%s has %d ends", id, len(c.ends))
	}
	s.checkPrompt(c, id)
}

// checkRun checks when a handler ran: it began and did what it does before its own deadline, which is the command's
// but for the time that the command was on its way.
func (s *sim) checkRun(c *command, id string, r *run) {
	w := s.world
	if c.rec.Device != s.fixture.identities[r.device].DeviceID {
		w.breakLocked("%s was run by device%d, which it was not for", id, r.device)
	}
	if !r.began.Before(r.deadline) {
		w.breakLocked("%s began %v after the device's deadline", id, r.began.Sub(r.deadline))
	}
	if r.effect.After(r.deadline) {
		w.breakLocked("%s had its effect %v after the device's deadline", id, r.effect.Sub(r.deadline))
	}
	until := c.allowed(w.servers).Add(r.transit + 2*time.Millisecond)
	if r.deadline.After(until) {
		w.breakLocked("%s may run on the device for %v longer than the server allowed", id, r.deadline.Sub(until))
	}
	for _, e := range c.ends {
		if r.began.After(e.at.Add(r.transit + 2*time.Millisecond)) {
			w.breakLocked("%s began %v after it had ended", id, r.began.Sub(e.at))
		}
	}
}

func (s *sim) checkEvents(f *final, id string, state dispatch.State) {
	w := s.world
	var at dispatch.State
	for i, e := range f.byID[id] {
		next := states[e.GetCommand().GetState()]
		switch {
		case i == 0:
			if next != dispatch.Accepted {
				w.breakLocked("the first event of %s is %s", id, next)
			}
		case e.GetCommand().GetLate():
			if at != dispatch.Expired && at != dispatch.Cancelled && at != dispatch.Interrupted {
				w.breakLocked("%s has a late outcome after %s", id, at)
			}
			continue
		case !at.CanGo(next):
			w.breakLocked("%s has the event %s after %s", id, next, at)
		}
		at = next
	}
	if at != state {
		w.breakLocked("%s is %s, and its last event says %q", id, state, at)
	}
}

// stopping is how much later a server may learn that a device's program is down.
const stopping = 5 * time.Second

// interrupted says whether something happened to the device's program while a command was under way.
func (s *sim) interrupted(c *command) bool {
	d := s.devices[s.number(c.rec.Device)]
	for _, down := range d.downs {
		if down.to.After(c.at.Add(-stopping)) && (len(c.ends) == 0 || down.from.Before(c.ends[0].at.Add(time.Millisecond))) {
			return true
		}
	}
	return false
}

// checkInterrupted checks that nobody could know better: the device's program went down in between, or the time was up
// and the device, which had the command or might have had it before the server went down, had not answered.
func (s *sim) checkInterrupted(f *final, c *command, id string) {
	if s.interrupted(c) || len(c.ends) == 0 {
		return
	}
	w := s.world
	end := c.ends[0].at
	acknowledged := false
	for _, e := range f.byID[id] {
		acknowledged = acknowledged || e.GetCommand().GetState() == controlv1.State_STATE_ACKNOWLEDGED
	}
	restarted := w.servers[len(w.servers)-1] != c.server && !w.servers[c.server.n+1].started.After(end)
	bad := s.diskWasBad(c.at, end)
	if !acknowledged && !restarted && !bad {
		w.breakLocked("%s was interrupted, though the device never took it over", id)
	}
	if end.Before(c.deadline) && !restarted {
		w.breakLocked("%s was interrupted before its deadline, though nothing happened to the device", id)
	}
}

// checkCancelled checks that what was cancelled before it was sent was never run.
func (s *sim) checkCancelled(f *final, c *command, id string) {
	w := s.world
	if len(c.ends) == 0 || c.server != s.serverAt(c.ends[0].at) || s.diskWasBad(c.at, c.ends[0].at) {
		return // that it was sent may not have been noted
	}
	for _, e := range f.byID[id] {
		if e.GetCommand().GetState() == controlv1.State_STATE_SENT {
			return
		}
	}
	if len(w.runs[id]) > 0 {
		w.breakLocked("%s was cancelled before it was sent, and run", id)
	}
}

// checkPrompt checks that an end came in time: by the deadline and the grace, or soon after the server and its disk
// worked again.
func (s *sim) checkPrompt(c *command, id string) {
	w := s.world
	if len(c.ends) == 0 {
		return // written down by a server that died before it could say so
	}
	const slack = time.Second
	end := c.ends[0].at
	limit := c.allowed(w.servers).Add(dispatch.Grace + slack)
	for _, v := range w.servers {
		if v.n > c.server.n && !v.started.After(end) {
			limit = later(limit, v.started.Add(dispatch.Grace+slack))
		}
	}
	for _, bad := range w.diskBad {
		if bad.from.Before(limit) {
			limit = later(limit, bad.to.Add(dispatch.Grace+diskSlack))
		}
	}
	if end.After(limit) {
		w.breakLocked("%s ended %v too late", id, end.Sub(limit))
	}
}

// diskSlack is how long after a disk works again an end that could not be written may take.
const diskSlack = 10 * time.Second

func (s *sim) diskWasBad(from, to time.Time) bool {
	for _, bad := range s.world.diskBad {
		if bad.from.Before(to) && bad.to.After(from) {
			return true
		}
	}
	return false
}

func (s *sim) serverAt(at time.Time) *server {
	var v *server
	for _, other := range s.world.servers {
		if !other.started.After(at) {
			v = other
		}
	}
	return v
}

// checkTold checks that what a caller was told is true and stays.
func (s *sim) checkTold(f *final, t told) {
	w := s.world
	id := t.outcome.GetCommandId()
	if id == "" { // refused: nothing was written down
		for id, runs := range w.runs {
			c := w.commands[id]
			if c != nil && runs[0].device == t.device && c.rec.Device == t.outcome.GetDeviceId() && s.requestOf(c) == t.request {
				w.breakLocked("request %d was told %v, and %s was run", t.request, t.outcome.GetError(), id)
			}
		}
		return
	}
	row := f.rows[id]
	if row == nil {
		w.breakLocked("request %d was told of %s, which is not there", t.request, id)
		return
	}
	if t.submit {
		return
	}
	if t.outcome.GetResult() == nil && t.outcome.GetError() == nil {
		w.breakLocked("request %d was told that %s ended, and not how", t.request, id)
		return
	}
	if t.outcome.GetError().GetCode() == commandv1.ErrorCode_ERROR_CODE_INTERRUPTED && s.couldNotWrite(t.at) {
		return // it was told to look the outcome up
	}
	if want := outcomeOf(row); !sameOutcome(want, t.outcome) && !s.mayBeCleared(f, row, want) {
		w.breakLocked("request %d was told %v of %s, and the row says %v", t.request, t.outcome, id, want)
	}
	if result := t.outcome.GetResult(); result != nil {
		isTrue := false
		for _, r := range w.runs[id] {
			isTrue = isTrue || !r.effect.IsZero() && !r.effect.After(t.at) && proto.Equal(r.result, result)
		}
		if !isTrue {
			w.breakLocked("request %d was told that %s came to %v, which is not true", t.request, id, result)
		}
	}
}

// couldNotWrite says whether a server had a bad disk a moment ago, or was stopped with ends not written down.
func (s *sim) couldNotWrite(at time.Time) bool {
	if s.diskWasBad(at.Add(-dispatch.Grace-time.Second), at) {
		return true
	}
	for _, v := range s.world.servers {
		if !v.stopped.IsZero() && at.Sub(v.stopped).Abs() < 11*time.Second {
			return true
		}
	}
	return false
}

// mayBeCleared says whether the payloads of an ended command may be gone: for that it has to have ended more than five
// minutes ago by the clock of some server since.
func (s *sim) mayBeCleared(f *final, row *controlv1.Command, now *controlv1.DeviceOutcome) bool {
	if now.GetOutcome() != nil {
		return false
	}
	for i, v := range s.world.servers {
		until := f.at
		if i+1 < len(s.world.servers) {
			until = s.world.servers[i+1].started
		}
		if until.Add(v.clock).Sub(row.GetEndedAt().AsTime()) >= dispatch.Readable {
			return true
		}
	}
	return false
}

func sameOutcome(a, b *controlv1.DeviceOutcome) bool {
	return proto.Equal(a.GetResult(), b.GetResult()) && a.GetError().GetCode() == b.GetError().GetCode()
}

// requestOf is the request that a command belongs to, as its action says.
func (s *sim) requestOf(c *command) int {
	action := &commandv1.Action{}
	if err := proto.Unmarshal(c.rec.Action, action); err != nil {
		return -1
	}
	return requestIn(action)
}

// checkWatcher checks that the watcher was told every event, once, in order, and that each is still the same.
func (s *sim) checkWatcher(f *final) {
	w := s.world
	for i, e := range f.events {
		if i > 0 && e.GetCursor() <= f.events[i-1].GetCursor() {
			w.breakLocked("the event log has %d after %d", e.GetCursor(), f.events[i-1].GetCursor())
		}
	}
	seen := w.seen
	for i, e := range f.events {
		switch {
		case i >= len(seen):
			w.breakLocked("the watcher has not been told of %v", e)
			return
		case !proto.Equal(seen[i].event, e):
			w.breakLocked("the watcher was told %v, and the log has %v", seen[i].event, e)
			return
		}
	}
	if len(seen) > len(f.events) {
		w.breakLocked("the watcher was told %v, which is not in the log", seen[len(f.events)].event)
	}
}

// checkDevice checks that server and device agree in the end.
func (s *sim) checkDevice(f *final, i int, d *device) {
	w := s.world
	if !f.live[i] {
		w.breakLocked("the server does not know the tabs of device%d", i)
	}
	d.browser.mu.Lock()
	defer d.browser.mu.Unlock()
	want := d.browser.all()
	got := map[string]*commandv1.Tab{}
	for _, tab := range f.tabs[i] {
		got[tab.GetTabId()] = tab
	}
	for _, tab := range want {
		if other := got[tab.GetTabId()]; other.GetUrl() != tab.GetUrl() || other.GetActive() != tab.GetActive() {
			w.breakLocked("device%d has %v, and the server has %v", i, tab, other)
		}
		delete(got, tab.GetTabId())
	}
	for _, tab := range got {
		w.breakLocked("the server has %v, and device%d has not", tab, i)
	}
	for _, e := range d.left {
		switch {
		case e.Outcome == nil && e.Action.GetActivateTab() != nil: // it would be run again, and nobody asks any more
		case e.Outcome == nil:
			w.breakLocked("%s is still under way on device%d", e.CommandID, i)
		case !e.Receipted:
			w.breakLocked("device%d has no receipt for the outcome of %s", i, e.CommandID)
		}
	}
}
