package simulation

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	throwbar "throwbar.dev/throwbar/clients/go"
	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
)

func always() bool { return true }

// callerHTTP is the library's own client for callers, but for the network.
func callerHTTP(h *host) *http.Client {
	protocols := &http.Protocols{}
	protocols.SetHTTP1(true)
	return &http.Client{Transport: &http.Transport{
		DialContext:     func(ctx context.Context, _, _ string) (net.Conn, error) { return h.dial(ctx, always) },
		Protocols:       protocols,
		MaxIdleConns:    64,
		IdleConnTimeout: 90 * time.Second,
	}}
}

func (s *sim) newCaller(name string) *throwbar.Client {
	web := callerHTTP(s.net.host(name))
	s.webs = append(s.webs, web)
	c, err := throwbar.New(throwbar.Config{Server: serverURL, Token: s.fixture.owner, HTTPClient: web})
	if err != nil {
		s.world.breakf("make a caller: %v", err)
	}
	return c
}

// ask makes one request and notes what its caller is told.
func (s *sim) ask(i int) {
	r := s.plan.requests[i]
	pause(r.at)
	s.world.notef("request %d: %v", i, r)
	client := s.callers[r.caller]
	ctx, cancel := context.WithTimeout(background(), 2*time.Minute)
	defer cancel()
	if r.leaveIn > 0 {
		ctx, cancel = context.WithTimeout(ctx, r.leaveIn)
		defer cancel()
	}
	if r.submit {
		s.submit(ctx, client, i, r)
		return
	}
	req := &controlv1.DispatchRequest{Action: s.action(i, r), Detached: r.detach}
	if r.action == openTab {
		req.DeviceIds = s.ids(r.devices)
	}
	if r.ttl > 0 {
		req.Ttl = durationpb.New(r.ttl)
	}
	res, err := client.Commands.Dispatch(ctx, req)
	if err != nil {
		s.world.notef("request %d failed: %v", i, err)
		return
	}
	s.tellAll(i, res.GetOutcomes(), false)
}

func (s *sim) submit(ctx context.Context, client *throwbar.Client, i int, r request) {
	req := &controlv1.SubmitRequest{Action: s.action(i, r)}
	if r.action == openTab {
		req.DeviceIds = s.ids(r.devices)
	}
	if r.ttl > 0 {
		req.Ttl = durationpb.New(r.ttl)
	}
	res, err := client.Commands.Submit(ctx, req)
	if err != nil {
		s.world.notef("request %d failed: %v", i, err)
		return
	}
	s.tellAll(i, res.GetOutcomes(), true)
	if r.stopIn == 0 {
		return
	}
	pause(r.stopIn)
	for _, o := range res.GetOutcomes() {
		if o.GetCommandId() == "" {
			continue
		}
		got, err := client.Commands.CancelCommand(ctx, &controlv1.CancelCommandRequest{CommandId: o.GetCommandId()})
		s.world.notef("request %d cancels %s: %v, %v", i, o.GetCommandId(), got.GetCommand().GetState(), err)
		if c := got.GetCommand(); err == nil {
			s.tellAll(i, []*controlv1.DeviceOutcome{outcomeOf(c)}, c.GetEndedAt() == nil)
		}
	}
}

// outcomeOf is a command's end as a dispatch would have told it.
func outcomeOf(c *controlv1.Command) *controlv1.DeviceOutcome {
	o := &controlv1.DeviceOutcome{DeviceId: c.GetDeviceId(), CommandId: c.GetCommandId()}
	switch {
	case c.GetResult() != nil:
		o.Outcome = &controlv1.DeviceOutcome_Result{Result: c.GetResult()}
	case c.GetError() != nil:
		o.Outcome = &controlv1.DeviceOutcome_Error{Error: c.GetError()}
	}
	return o
}

func (s *sim) tellAll(i int, outcomes []*controlv1.DeviceOutcome, submit bool) {
	for _, o := range outcomes {
		s.world.tell(told{request: i, device: s.number(o.GetDeviceId()), outcome: o, submit: submit})
	}
}

func (s *sim) ids(numbers []int) []string {
	var ids []string
	for _, n := range numbers {
		ids = append(ids, s.fixture.identities[n].DeviceID)
	}
	return ids
}

func (s *sim) number(id string) int {
	for i, identity := range s.fixture.identities {
		if identity.DeviceID == id {
			return i
		}
	}
	return -1
}

// action is what a request asks for; what is in it says which request it was.
func (s *sim) action(i int, r request) *commandv1.Action {
	b := s.devices[r.devices[0]].browser
	switch r.action {
	case closeTab:
		return &commandv1.Action{Kind: &commandv1.Action_CloseTabs{CloseTabs: &commandv1.CloseTabs{
			TabIds: []string{b.id(toClose + int64(i))},
		}}}
	case activateTab:
		return &commandv1.Action{Kind: &commandv1.Action_ActivateTab{ActivateTab: &commandv1.ActivateTab{
			TabId: b.id(toActivate + int64(i)),
		}}}
	default:
		return openAction(i)
	}
}

func openAction(i int) *commandv1.Action {
	return &commandv1.Action{Kind: &commandv1.Action_OpenTab{OpenTab: &commandv1.OpenTab{Url: fmt.Sprint(openURL, i)}}}
}

// watch follows the event log as a good client does: it goes on after its last cursor whatever happens to the stream.
// What it returns ends it and waits until it has.
func (s *sim) watch() func() {
	ctx, cancel := context.WithCancel(background())
	over := make(chan struct{})
	client := s.newCaller("watcher")
	go func() {
		defer close(over)
		cursor := s.fixture.cursor
		for ctx.Err() == nil {
			err := s.follow(ctx, client, &cursor)
			s.world.notef("the watcher has %d: %v", cursor, err)
			_ = wait(ctx, 500*time.Millisecond)
		}
	}()
	return func() {
		cancel()
		<-over
	}
}

var errSilent = errors.New("the stream is silent")

func (s *sim) follow(ctx context.Context, client *throwbar.Client, cursor *uint64) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silent := time.AfterFunc(40*time.Second, func() { cancel(errSilent) }) // the server says something every 15
	defer silent.Stop()
	stream, err := client.Commands.WatchEvents(ctx, &controlv1.WatchEventsRequest{Cursor: cursor})
	if err != nil {
		return err
	}
	defer func() { _ = stream.Close() }()
	for {
		msg, err := stream.Receive()
		if err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		silent.Reset(40 * time.Second)
		if msg.GetReset_() {
			s.world.breakf("the watcher is told that events before its cursor %d are gone", *cursor)
		}
		if e := msg.GetEvent(); e != nil {
			*cursor = e.GetCursor()
			s.world.mu.Lock()
			s.world.seen = append(s.world.seen, seen{e, time.Now()})
			s.world.noteLocked("event %v", e)
			s.world.mu.Unlock()
		}
	}
}
