package throwbar

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	devicev1 "throwbar.dev/throwbar/gen/go/throwbar/device/v1"
)

func TestBackoffIsJitteredFromTheFirstTry(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		jitter float64
		want   []time.Duration
	}{
		{0, []time.Duration{backoffLeast, backoffLeast, backoffLeast}},
		{0.999999, []time.Duration{4 * time.Second, 8 * time.Second, 16 * time.Second, 30 * time.Second, 30 * time.Second}},
	} {
		b := &backoff{jitter: func() float64 { return row.jitter }}
		for i, want := range row.want {
			if got := b.next(0).Round(time.Millisecond); got != want {
				t.Errorf("jitter %v, try %d: %v, want %v", row.jitter, i, got, want)
			}
		}
		b.reset()
		if got := b.next(time.Minute).Round(time.Millisecond); got != time.Minute+row.want[0] {
			t.Errorf("jitter %v: %v after being asked to wait a minute", row.jitter, got)
		}
	}
}

// TestStorm kills a server that 2,000 devices are connected to. The first tries must not come in the same moment.
func TestStorm(t *testing.T) {
	t.Parallel()
	const devices = 2000
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		var all sync.WaitGroup
		server := newMemServer()
		for range devices {
			d, err := NewDevice(DeviceConfig{
				Identity: Identity{Server: "http://127.0.0.1:1", DeviceID: "d", Token: "secret"},
				Handler:  &testHandler{}, Catalogue: catalogue(), HTTPClient: noHTTP{}, Spread: time.Second,
			})
			if err != nil {
				t.Fatal(err)
			}
			d.dialer = server
			all.Go(func() {
				if err := d.Run(ctx); err != nil {
					t.Errorf("Run = %v", err)
				}
			})
		}
		var links []*memLink
		for range devices {
			l := <-server.links
			l.welcome()
			links = append(links, l)
		}
		time.Sleep(time.Second)
		killed := time.Now()
		for _, l := range links {
			close(l.down)
		}
		buckets := map[time.Duration]int{}
		for range devices {
			l := <-server.links
			l.welcome()
			buckets[l.at.Sub(killed).Truncate(100*time.Millisecond)]++
		}
		for at, n := range buckets {
			if n > devices/20 {
				t.Errorf("%d of %d devices came back within 100 ms after %v", n, devices, at)
			}
			if at < backoffLeast || at > backoffFirst {
				t.Errorf("%d devices came back after %v", n, at)
			}
		}
		stop()
		all.Wait()
	})
}

func TestSilentServerIsLeft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var ends []error
		r := start(t, func(c *DeviceConfig) {
			c.OnStatus = func(s Status) {
				if !s.Connected {
					ends = append(ends, s.Err)
				}
			}
		})
		l := r.welcomed()
		for range 5 { // frames keep it
			time.Sleep(testLease - time.Second)
			l.heartbeat(1)
		}
		began := time.Now()
		r.welcomed()
		if after := time.Since(began); after < testLease || after > testLease+backoffFirst {
			t.Errorf("left after %v", after)
		}
		if len(ends) != 1 || !errors.Is(ends[0], errSilent) {
			t.Errorf("ends: %v", ends)
		}
		r.end()
	})
}

func TestServerThatDoesNotWelcomeIsLeft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var ends []error
		r := start(t, func(c *DeviceConfig) { c.OnStatus = func(s Status) { ends = append(ends, s.Err) } })
		r.link()
		r.link().heartbeat(1)
		r.link()
		if len(ends) != 2 || !errors.Is(ends[0], errNoWelcome) || !errors.Is(ends[1], errNotWelcome) {
			t.Errorf("ends: %v", ends)
		}
		r.end()
	})
}

func TestServerThatTakesNothingInIsLeft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var ends []error
		r := start(t, func(c *DeviceConfig) {
			c.OnStatus = func(s Status) {
				if !s.Connected {
					ends = append(ends, s.Err)
				}
			}
		})
		l := r.link()
		l.up = make(chan *devicev1.DeviceFrame) // nobody reads
		l.welcome()
		go func() {
			for sleep(l.ctx, testHeartbeat) { // its own heartbeats go on
				l.heartbeat(1)
			}
		}()
		r.welcomed()
		if len(ends) != 1 || !errors.Is(ends[0], errStuck) {
			t.Errorf("ends: %v", ends)
		}
		r.end()
	})
}

func TestFloodEndsTheLinkAndNotTheMemory(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var ends []error
		r := start(t, func(c *DeviceConfig) {
			c.OnStatus = func(s Status) {
				if !s.Connected {
					ends = append(ends, s.Err)
				}
			}
		})
		r.handler.open = func(ctx context.Context, _ *commandv1.OpenTab) (*commandv1.OpenTab_Result, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		l := r.link()
		l.up = make(chan *devicev1.DeviceFrame) // nobody reads
		l.welcome()
		for range outboxMost + 100 {
			l.command("same", openTab("a"), time.Minute)
			synctest.Wait()
		}
		r.welcomed("same")
		if len(ends) != 1 || !errors.Is(ends[0], errOverflow) {
			t.Errorf("ends: %v", ends)
		}
		if r.handler.ran("same") != 1 {
			t.Error("it did not run once")
		}
		r.end()
	})
}

func TestLinkEnds(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		reason devicev1.EndReason
		fail   error
		want   error
		code   Code
	}{
		"replaced":            {devicev1.EndReason_END_REASON_REPLACED, nil, ErrReplaced, CodeInternal},
		"revoked":             {devicev1.EndReason_END_REASON_REVOKED, nil, ErrRevoked, CodeInternal},
		"replaced, by a code": {0, &Error{Code: CodeConflict, remote: true}, ErrReplaced, CodeConflict},
		"token refused":       {0, &Error{Code: CodeUnauthenticated, remote: true}, nil, CodeUnauthenticated},
	} {
		for _, welcomed := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					r := start(t, nil)
					l := r.link()
					l.fail = row.fail
					if welcomed {
						l.welcome()
					}
					if row.fail == nil {
						l.end(row.reason, time.Second)
					} else {
						close(l.down)
					}
					err := <-r.ended
					if CodeOf(err) != row.code || (row.want != nil && !errors.Is(err, row.want)) {
						t.Errorf("Run = %v", err)
					}
					time.Sleep(time.Hour)
					if len(r.server.links) != 0 {
						t.Error("it came back")
					}
				})
			})
		}
	}
}

// A frame on a link that was replaced is refused before the stream says why: the device must not come back for that.
func TestReplacedWhileSending(t *testing.T) {
	t.Parallel()
	for _, refusal := range []error{io.EOF, &Error{Code: CodeNotFound, Message: "no such link", remote: true}} {
		synctest.Test(t, func(t *testing.T) {
			r := start(t, nil)
			l := r.link()
			l.deaf = refusal
			l.welcome()
			l.command("c", openTab("a"), time.Minute)
			time.Sleep(byeWithin / 2)
			l.end(devicev1.EndReason_END_REASON_REPLACED, 0)
			if err := <-r.ended; !errors.Is(err, ErrReplaced) {
				t.Errorf("Run = %v", err)
			}
		})
		synctest.Test(t, func(t *testing.T) { // and one that never says why is left
			r := start(t, nil)
			l := r.link()
			l.deaf = refusal
			l.welcome()
			l.command("c", openTab("a"), time.Minute)
			if l = r.welcomed(); len(l.hello.GetOutcomes()) != 1 {
				t.Errorf("hello %v", l.hello)
			}
			r.end()
		})
	}
}

func TestRefusedDialWithABadTokenIsFinal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := newMemServer()
		tries := 0
		server.refuse = func(*devicev1.Hello) error {
			tries++
			if tries < 3 {
				return &Error{Code: CodeUnavailable, Message: "connection refused"}
			}
			return &Error{Code: CodeUnauthenticated, Message: "unknown token", remote: true}
		}
		d, err := NewDevice(DeviceConfig{
			Identity: Identity{Server: "http://h", DeviceID: "d", Token: "t"}, Handler: &testHandler{}, Catalogue: catalogue(),
			HTTPClient: noHTTP{},
		})
		if err != nil {
			t.Fatal(err)
		}
		d.dialer = server
		if err := d.Run(t.Context()); CodeOf(err) != CodeUnauthenticated || tries != 3 {
			t.Errorf("Run = %v after %d tries", err, tries)
		}
	})
}

func TestGoingAwayIsObeyed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := start(t, nil)
		l := r.welcomed()
		l.end(devicev1.EndReason_END_REASON_GOING_AWAY, 20*time.Second)
		began := time.Now()
		r.welcomed()
		if after := time.Since(began); after < 20*time.Second+backoffLeast || after > 20*time.Second+backoffFirst {
			t.Errorf("came back after %v", after)
		}
		r.end()
	})
}

func TestShortLinksDoNotResetTheBackoff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := start(t, func(c *DeviceConfig) { c.Jitter = func() float64 { return 0.99 } })
		began := time.Now()
		for range 10 {
			r.welcomed().end(devicev1.EndReason_END_REASON_VIOLATION, 0)
		}
		if after := time.Since(began); after < 3*time.Minute {
			t.Errorf("ten links in %v", after)
		}
		l := r.welcomed()
		time.Sleep(healthyAfter)
		began = time.Now()
		close(l.down)
		r.welcomed()
		if after := time.Since(began); after > backoffFirst {
			t.Errorf("came back after %v", after)
		}
		r.end()
	})
}

func TestCommandOutlivesItsLink(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		r := start(t, nil)
		r.handler.open = func(ctx context.Context, a *commandv1.OpenTab) (*commandv1.OpenTab_Result, error) {
			select {
			case <-release:
				return &commandv1.OpenTab_Result{Url: a.GetUrl()}, nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		l := r.welcomed()
		l.command("kept", openTab("a"), time.Hour)
		l.command("dropped", openTab("a"), time.Hour)
		l.command("ends offline", closeTabs("a"), time.Hour)
		synctest.Wait()
		close(l.down)

		l = r.link() // the outcome was sent, but there was no receipt
		if len(l.hello.GetRunningCommandIds()) != 2 || len(l.hello.GetOutcomes()) != 1 {
			t.Fatalf("hello: %v", l.hello)
		}
		l.welcome("kept")
		l.wantError(t, "dropped", commandv1.ErrorCode_ERROR_CODE_CANCELLED)
		l.command("kept", openTab("a"), time.Hour) // a server may send it again all the same
		l.wantAck(t, "kept")
		l.receipt("ends offline", "dropped")
		synctest.Wait()
		close(l.down)

		l = r.link()
		close(release) // between hello and welcome
		synctest.Wait()
		l.welcome("kept")
		if l.wantOutcome(t, "kept").GetResult() == nil {
			t.Error("no result")
		}
		l.receipt("kept")
		synctest.Wait()
		close(l.down)
		if l = r.link(); len(l.hello.GetOutcomes())+len(l.hello.GetRunningCommandIds()) != 0 {
			t.Errorf("hello: %v", l.hello)
		}
		for _, id := range []string{"kept", "dropped", "ends offline"} {
			if r.handler.ran(id) != 1 {
				t.Errorf("%s ran %d times", id, r.handler.ran(id))
			}
		}
		r.end()
	})
}

// TestCutAnywhere cuts the link after each step of a command's life: it runs once, and its outcome arrives.
func TestCutAnywhere(t *testing.T) {
	t.Parallel()
	for cut := range 6 {
		synctest.Test(t, func(t *testing.T) {
			r := start(t, nil)
			r.handler.close = func(context.Context, *commandv1.CloseTabs) (*commandv1.CloseTabs_Result, error) {
				time.Sleep(time.Second)
				return &commandv1.CloseTabs_Result{ClosedCount: 1}, nil
			}
			l := r.link()
			pause := time.Duration(rand.IntN(1500)) * time.Millisecond
			steps := []func(){
				func() { l.welcome() },
				func() { l.command("c", closeTabs("a"), time.Hour) },
				synctest.Wait,
				func() { time.Sleep(pause) },
				func() { time.Sleep(2 * time.Second) },
			}
			for i, step := range steps {
				if i < cut {
					step()
				}
			}
			close(l.down)
			l = r.link()
			var got *devicev1.Outcome
			for _, o := range l.hello.GetOutcomes() {
				got = o
			}
			l.welcome("c")
			l.command("c", closeTabs("a"), time.Hour)
			for got == nil {
				f := <-l.up
				got = f.GetOutcome()
			}
			if got.GetResult().GetCloseTabs().GetClosedCount() != 1 || r.handler.ran("c") != 1 {
				t.Errorf("cut after step %d, of which the third sleeps %v: %v, ran %d times", cut, pause, got, r.handler.ran("c"))
			}
			r.end()
		})
	}
}

func TestStopWhileDialling(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := start(t, nil)
		r.link() // never welcomed
		r.end()
		r = start(t, func(c *DeviceConfig) { c.Spread = time.Hour; c.Jitter = func() float64 { return 0.5 } })
		r.end()
		if len(r.server.links) != 0 {
			t.Error("it dialled")
		}
	})
}

func TestSleepOfTheComputerCounts(t *testing.T) {
	t.Parallel()
	now := time.Now()
	awake := &command{received: now, deadline: now.Add(time.Minute), timeLeft: time.Minute}
	if awake.expired(time.Now().Round(0)) {
		t.Error("expired at once")
	}
	// The monotonic clock stood still for an hour: the wall clock of the receipt is that much older.
	slept := &command{received: now.Round(0).Add(-time.Hour), deadline: now.Add(time.Minute), timeLeft: time.Minute}
	if !slept.expired(time.Now().Round(0)) {
		t.Error("not expired after an hour's sleep")
	}
	back := &command{received: now.Round(0).Add(time.Hour), deadline: now.Add(-time.Second), timeLeft: time.Minute}
	if !back.expired(time.Now().Round(0)) {
		t.Error("not expired, because the wall clock was set back")
	}
}
