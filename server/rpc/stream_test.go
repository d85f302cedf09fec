package rpc_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"testing"
	"time"

	"connectrpc.com/connect/v2"
	"google.golang.org/protobuf/types/known/durationpb"

	"throwbar.dev/throwbar/app"
	"throwbar.dev/throwbar/app/apptest"
	throwbar "throwbar.dev/throwbar/clients/go"
	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	"throwbar.dev/throwbar/gen/go/throwbar/control/v1/controlv1connect"
	optionv1 "throwbar.dev/throwbar/gen/go/throwbar/option/v1"
)

// orderStream is one stream of commands, as a caller plays it by hand.
type orderStream struct {
	t      *testing.T
	stream controlv1connect.CommandServiceDispatchStreamClientStream
	cancel context.CancelFunc
	rest   []*controlv1.DispatchStreamAnswer
}

func openStream(t *testing.T, s *apptest.Server) *orderStream {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	stream, err := s.Commands(t).DispatchStream(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.SendHeaders(); err != nil {
		t.Fatal(err)
	}
	o := &orderStream{t: t, stream: stream, cancel: cancel}
	t.Cleanup(o.close)
	return o
}

func (o *orderStream) close() {
	_ = o.stream.Close()
	o.cancel()
}

func (o *orderStream) send(items ...*controlv1.DispatchStreamItem) {
	o.t.Helper()
	if err := o.stream.Send(&controlv1.DispatchStreamRequest{Items: items}); err != nil {
		o.t.Fatal(err)
	}
}

func (o *orderStream) receive() (*controlv1.DispatchStreamAnswer, error) {
	for len(o.rest) == 0 {
		msg, err := o.stream.Receive()
		if err != nil {
			return nil, err
		}
		o.rest = msg.GetAnswers()
	}
	a := o.rest[0]
	o.rest = o.rest[1:]
	return a, nil
}

// answers are the next n answers by number.
func (o *orderStream) answers(n int) map[uint64]*controlv1.DispatchStreamAnswer {
	o.t.Helper()
	out := map[uint64]*controlv1.DispatchStreamAnswer{}
	for range n {
		a, err := o.receive()
		if err != nil {
			o.t.Fatalf("after %d answers: %v", len(out), err)
		}
		if out[a.GetNumber()] != nil {
			o.t.Errorf("number %d is answered twice", a.GetNumber())
		}
		out[a.GetNumber()] = a
	}
	return out
}

func item(number uint64, req *controlv1.DispatchRequest) *controlv1.DispatchStreamItem {
	return &controlv1.DispatchStreamItem{Number: number, Kind: &controlv1.DispatchStreamItem_Dispatch{Dispatch: req}}
}

func cancelling(number uint64) *controlv1.DispatchStreamItem {
	return &controlv1.DispatchStreamItem{
		Number: number, Kind: &controlv1.DispatchStreamItem_Cancel{Cancel: &controlv1.DispatchCancel{}},
	}
}

// codeOf is the code of an answer, wherever it is.
func codeOf(a *controlv1.DispatchStreamAnswer) string {
	code := a.GetError().GetCode()
	if outs := a.GetResponse().GetOutcomes(); len(outs) > 0 {
		code = outs[0].GetError().GetCode()
	}
	return code.String()[len("ERROR_CODE_"):]
}

func TestTenThousandCommandsOnOneStreamRunOnceEach(t *testing.T) {
	t.Parallel()
	const total = 10_000
	s := apptest.Start(t, app.Config{})
	var devices []string
	var counters []*counter
	for i, transport := range []throwbar.Transport{throwbar.Bidi, throwbar.WatchReport, throwbar.Bidi} {
		c := &counter{times: map[string]int{}}
		devices = append(devices, runDevice(t, s, fmt.Sprintf("device %d", i), transport, c))
		counters = append(counters, c)
	}
	o := openStream(t, s)
	answered := map[uint64]bool{}
	pump(t, o.stream, total, 512,
		func(n int) *controlv1.DispatchRequest { return activating(devices[n%len(devices)], n) },
		func(a *controlv1.DispatchStreamAnswer) {
			out := a.GetResponse().GetOutcomes()
			if len(out) != 1 || !out[0].GetResult().GetActivateTab().GetActivated() || answered[a.GetNumber()] ||
				out[0].GetDeviceId() != devices[int(a.GetNumber())%len(devices)] {
				t.Errorf("answer: %v", a)
			}
			answered[a.GetNumber()] = true
		})
	ran := 0
	for i, c := range counters {
		for tab, times := range c.seen() {
			if times != 1 {
				t.Errorf("device %d activated %s %d times", i, tab, times)
			}
			ran++
		}
	}
	if ran != total || len(answered) != total {
		t.Errorf("%d ran, %d were answered", ran, len(answered))
	}
}

func TestAnswersComeInTheOrderOfTheEnds(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, app.Config{})
	d := pair(t, s, "laptop")
	l, _ := dial(t, s, d, dialConnect, nil)
	o := openStream(t, s)
	id := d.GetDeviceId()
	o.send(item(7, closing(id+"_tb1-1")), item(5, closing(id+"_tb1-2")))
	first, second := next(t, l).GetCommand(), next(t, l).GetCommand()
	if err := l.send(outcome(closedOutcome(second.GetCommandId(), id+"_tb1-2"))); err != nil {
		t.Fatal(err)
	}
	if a := o.answers(1)[5]; a.GetResponse().GetOutcomes()[0].GetCommandId() != second.GetCommandId() {
		t.Errorf("the first answer: %v", a)
	}
	// Half-closing waits for what is under way.
	if err := o.stream.CloseSend(); err != nil {
		t.Fatal(err)
	}
	if err := l.send(outcome(closedOutcome(first.GetCommandId(), id+"_tb1-1"))); err != nil {
		t.Fatal(err)
	}
	if a := o.answers(1)[7]; a.GetResponse().GetOutcomes()[0].GetResult().GetCloseTabs().GetClosedCount() != 1 {
		t.Errorf("the second answer: %v", a)
	}
	if a, err := o.receive(); !errors.Is(err, io.EOF) {
		t.Errorf("after the last answer: %v, %v", a, err)
	}
}

func opening(device string) *controlv1.DispatchRequest {
	return &controlv1.DispatchRequest{DeviceIds: []string{device}, Action: &commandv1.Action{
		Kind: &commandv1.Action_OpenTab{OpenTab: &commandv1.OpenTab{Url: "https://a.example/"}},
	}}
}

func TestBadItemsAreAnsweredAndTheStreamGoesOn(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, app.Config{})
	d := pair(t, s, "laptop")
	away := pair(t, s, "away")
	l, _ := dial(t, s, d, dialConnect, nil)
	o := openStream(t, s)
	id := d.GetDeviceId()
	short := closing(id + "_tb1-2")
	short.Ttl = durationpb.New(200 * time.Millisecond)
	o.send(
		item(1, closing(id+"_tb1-1")),
		item(1, closing(id+"_tb1-9")),                  // a number under way
		item(2, closing()),                             // breaks a rule
		item(3, &controlv1.DispatchRequest{}),          // no action
		&controlv1.DispatchStreamItem{Number: 4},       // nothing
		item(6, opening(away.GetDeviceId())),           // offline
		item(8, closing("seven")),                      // no id
		cancelling(99),                                 // nothing to cancel
		item(9, short),                                 // expires: the device never acknowledges it
		item(10, closing(id+"_tb1-3")), cancelling(10), // cancelled before or after it is sent
	)
	got := map[string]int{}
	for range 8 {
		a, err := o.receive()
		if err != nil {
			t.Fatal(err)
		}
		got[fmt.Sprintf("%d %s", a.GetNumber(), codeOf(a))]++
	}
	for _, want := range []string{"1 INVALID", "2 INVALID", "3 INVALID", "4 INVALID", "6 OFFLINE", "8 INVALID", "9 EXPIRED", "10 CANCELLED"} {
		if got[want] != 1 {
			t.Errorf("%d answers %q: %v", got[want], want, got)
		}
	}
	c := next(t, l).GetCommand()
	if c.GetAction().GetCloseTabs().GetTabIds()[0] != id+"_tb1-1" {
		t.Fatalf("first command: %v", c)
	}
	if err := l.send(outcome(closedOutcome(c.GetCommandId(), id+"_tb1-1"))); err != nil {
		t.Fatal(err)
	}
	if a := o.answers(1)[1]; a.GetResponse().GetOutcomes()[0].GetResult() == nil {
		t.Errorf("the good one: %v", a)
	}
	o.send(cancelling(1), item(11, opening(away.GetDeviceId()))) // what has ended stays ended
	if a := o.answers(1)[11]; codeOf(a) != "OFFLINE" {
		t.Errorf("after the cancel: %v", a)
	}
}

func TestMoreThanAStreamTakesIsBusy(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, app.Config{Lease: time.Hour}) // the device is silent
	d := pair(t, s, "laptop")
	l, _ := dial(t, s, d, dialConnect, nil)
	o := openStream(t, s)
	const most = 1024
	for n := 0; n < most+5; {
		var items []*controlv1.DispatchStreamItem
		for ; n < most+5 && len(items) < 256; n++ {
			lasting := activating(d.GetDeviceId(), n)
			lasting.Ttl = durationpb.New(5 * time.Minute)
			items = append(items, item(uint64(n+1), lasting))
		}
		o.send(items...)
	}
	for number, a := range o.answers(5) {
		if number <= most || codeOf(a) != "BUSY" || !a.GetError().GetRetryable() {
			t.Errorf("answer: %v", a)
		}
	}
	for range most {
		if f := next(t, l); f.GetCommand() == nil {
			t.Fatalf("frame: %v", f)
		}
	}
	// The stream breaks: all of it is cancelled, and the device is told.
	o.close()
	stops := 0
	for stops < most {
		if next(t, l).GetCancel() != nil {
			stops++
		}
	}
	pendingGoes(t, s)
}

func pendingGoes(t *testing.T, s *apptest.Server) {
	t.Helper()
	client := s.Commands(t)
	apptest.Eventually(t, "nothing is pending", func() bool {
		pending := true
		list, err := client.ListCommands(t.Context(), &controlv1.ListCommandsRequest{PendingOnly: &pending})
		return err == nil && len(list.GetCommands()) == 0
	})
}

func TestABrokenStreamLeavesWhatIsDetached(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, app.Config{})
	d := pair(t, s, "laptop")
	l, _ := dial(t, s, d, dialConnect, nil)
	o := openStream(t, s)
	id := d.GetDeviceId()
	detached := closing(id + "_tb1-2")
	detached.Detached = true
	o.send(item(1, closing(id+"_tb1-1")), item(2, detached))
	attached, other := next(t, l).GetCommand(), next(t, l).GetCommand()
	o.close()
	if stop := next(t, l).GetCancel(); stop.GetCommandId() != attached.GetCommandId() {
		t.Errorf("the device was told %v", stop)
	}
	if err := l.send(outcome(closedOutcome(other.GetCommandId(), id+"_tb1-2"))); err != nil {
		t.Fatal(err)
	}
	pendingGoes(t, s)
	for command, want := range map[string]controlv1.State{
		attached.GetCommandId(): controlv1.State_STATE_CANCELLED, other.GetCommandId(): controlv1.State_STATE_SUCCEEDED,
	} {
		got, err := s.Commands(t).GetCommand(t.Context(), &controlv1.GetCommandRequest{CommandId: command})
		if err != nil || got.GetCommand().GetState() != want {
			t.Errorf("%v, %v, want %v", got, err, want)
		}
	}
}

func TestACallerThatDoesNotReadLosesItsStream(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, app.Config{})
	d := pair(t, s, "laptop")
	o := openStream(t, s)
	bad := make([]*controlv1.DispatchStreamItem, 256)
	for i := range bad {
		bad[i] = item(uint64(i+1), closing())
	}
	var err error
	for n := 0; err == nil; n++ {
		if n > 10_000 {
			t.Fatal("the answers of 2,560,000 items were kept for a caller that reads none")
		}
		err = o.stream.Send(&controlv1.DispatchStreamRequest{Items: bad})
	}
	// Others are served.
	l, _ := dial(t, s, d, dialConnect, nil)
	done := dispatch(t.Context(), t, s, closing(d.GetDeviceId()+"_tb1-1"))
	c := next(t, l).GetCommand()
	if err := l.send(outcome(closedOutcome(c.GetCommandId(), d.GetDeviceId()+"_tb1-1"))); err != nil {
		t.Fatal(err)
	}
	if a := <-done; a.err != nil || a.res.GetOutcomes()[0].GetResult() == nil {
		t.Errorf("outcome: %v, %v", a.res, a.err)
	}
}

func TestAMessageWithoutItemsEndsTheStream(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, app.Config{})
	o := openStream(t, s)
	o.send()
	if a, err := o.receive(); connect.CodeOf(err) != connect.CodeInvalidArgument {
		t.Errorf("answer %v, %v", a, err)
	}
}

func TestARevokedTokenSendsNothingMore(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, app.Config{})
	tokens := controlv1connect.NewTokenServiceClient(s.Client(t, s.Owner, nil))
	made, err := tokens.CreateToken(t.Context(), &controlv1.CreateTokenRequest{Name: "program", Scope: optionv1.Scope_SCOPE_OPERATOR})
	if err != nil {
		t.Fatal(err)
	}
	client := controlv1connect.NewCommandServiceClient(s.Client(t, made.GetSecret(), nil))
	stream, err := client.DispatchStream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(&controlv1.DispatchStreamRequest{Items: []*controlv1.DispatchStreamItem{item(1, closing())}}); err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Receive(); err != nil {
		t.Fatal(err)
	}
	if _, err := tokens.RevokeToken(t.Context(), &controlv1.RevokeTokenRequest{TokenId: made.GetToken().GetTokenId()}); err != nil {
		t.Fatal(err)
	}
	// The stream is ended at once, so that this may not be taken any more.
	_ = stream.Send(&controlv1.DispatchStreamRequest{Items: []*controlv1.DispatchStreamItem{item(2, closing())}})
	if msg, err := stream.Receive(); connect.CodeOf(err) != connect.CodeUnauthenticated {
		t.Errorf("after the revocation: %v, %v", msg, err)
	}
	_ = stream.Close()
}

func TestStreamsLeaveNoGoroutines(t *testing.T) { //nolint:paralleltest // counts goroutines
	s := apptest.Start(t, app.Config{})
	d := pair(t, s, "laptop")
	l, _ := dial(t, s, d, dialConnect, nil)
	client := s.Commands(t)
	round := func(n int) {
		for range n {
			ctx, cancel := context.WithCancel(t.Context())
			stream, err := client.DispatchStream(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if err := stream.Send(&controlv1.DispatchStreamRequest{Items: []*controlv1.DispatchStreamItem{
				item(1, closing(d.GetDeviceId()+"_tb1-1")),
			}}); err != nil {
				t.Fatal(err)
			}
			for next(t, l).GetCommand() == nil { // a cancel of the round before
			}
			_ = stream.Close()
			cancel()
		}
		pendingGoes(t, s)
	}
	round(5)
	before := settled(t)
	round(50)
	apptest.Eventually(t, "the goroutines are gone", func() bool { return runtime.NumGoroutine() <= before+5 })
}
