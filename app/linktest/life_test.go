package linktest

import (
	"sync/atomic"
	"testing"

	"throwbar.dev/throwbar/app"
	"throwbar.dev/throwbar/app/apptest"
	throwbar "throwbar.dev/throwbar/clients/go"
	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	devicev1 "throwbar.dev/throwbar/gen/go/throwbar/device/v1"
)

// hooked is a journal that tells what is written into it. Hooks run once.
type hooked struct {
	throwbar.Journal

	started, finished, received func()
	did                         [3]atomic.Bool
	receipts                    atomic.Int64
	wait                        chan struct{}
}

func (h *hooked) once(n int, hook func()) {
	if hook != nil && h.did[n].CompareAndSwap(false, true) {
		hook()
	}
}

func (h *hooked) Start(id string, action *commandv1.Action) error {
	err := h.Journal.Start(id, action)
	h.once(0, h.started)
	return err
}

func (h *hooked) Finish(o *devicev1.Outcome) error {
	err := h.Journal.Finish(o)
	h.once(1, h.finished)
	return err
}

func (h *hooked) Receipt(ids []string) error {
	err := h.Journal.Receipt(ids)
	h.receipts.Add(int64(len(ids)))
	h.once(2, h.received)
	return err
}

// cut is one point of a command's life at which the stream is cut.
type cut struct {
	arm   func(t *testing.T, s *setup, j *hooked) // before the device starts
	trap  func(s *setup)                          // when it is connected
	after func(t *testing.T, s *setup)            // when the command is dispatched
}

const cutURL = "https://a.example/"

func cuts() map[string]cut {
	is := func(t *testing.T, s *setup, want controlv1.State) {
		t.Helper()
		apptest.Eventually(t, "the command is "+want.String(), func() bool { return s.state(t, cutURL) == want })
	}
	reset := func(s *setup) { s.proxy.Renew() }
	lose := func(way apptest.Way, f apptest.Fault) func(*setup) { return func(s *setup) { s.proxy.Set(way, f) } }
	when := func(state controlv1.State) func(*testing.T, *setup) {
		return func(t *testing.T, s *setup) { is(t, s, state); reset(s) }
	}
	return map[string]cut{
		"1 sent and never received": {
			trap: lose(apptest.ToClient, apptest.Fault{Drop: true}), after: when(controlv1.State_STATE_SENT),
		},
		"2 a part of it received": {
			trap: lose(apptest.ToClient, apptest.Fault{After: 20, Hold: true}), after: when(controlv1.State_STATE_SENT),
		},
		"3 written down and not acknowledged": {arm: func(_ *testing.T, s *setup, j *hooked) {
			j.started = func() { reset(s) }
		}},
		"4 the acknowledgement lost": {arm: func(_ *testing.T, s *setup, j *hooked) {
			j.started = func() { s.proxy.Set(apptest.ToServer, apptest.Fault{Drop: true}) }
			s.handler.before = func(string) { reset(s) }
		}},
		"5 acknowledged and not run": {arm: func(t *testing.T, s *setup, _ *hooked) {
			s.handler.before = func(string) { is(t, s, controlv1.State_STATE_ACKNOWLEDGED); reset(s) }
		}},
		"6 run and no outcome written": {arm: func(_ *testing.T, s *setup, _ *hooked) {
			s.handler.after = func(string) { reset(s) }
		}},
		"7 the outcome lost": {
			arm: func(_ *testing.T, s *setup, j *hooked) {
				s.handler.after = func(string) { s.proxy.Set(apptest.ToServer, apptest.Fault{Drop: true}) }
				j.finished = func() { close(j.wait) }
				s.journal = j
			},
			after: func(_ *testing.T, s *setup) { <-s.journal.wait; reset(s) },
		},
		"8 taken in and the receipt lost": {
			arm: func(_ *testing.T, s *setup, _ *hooked) {
				s.handler.after = func(string) { s.proxy.Set(apptest.ToClient, apptest.Fault{Drop: true}) }
			},
			after: when(controlv1.State_STATE_SUCCEEDED),
		},
		"9 the receipt taken in": {arm: func(_ *testing.T, s *setup, j *hooked) {
			j.received = func() { reset(s) }
		}},
	}
}

// R11: wherever in a command's life the stream is cut, the command has one effect and its caller one result.
func TestR11OneEffectAndOneResultWhereverItIsCut(t *testing.T) {
	t.Parallel()
	for name, c := range cuts() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := prepare(t, app.Config{})
			journal := &hooked{Journal: throwbar.NewMemoryJournal(), wait: make(chan struct{})}
			if c.arm != nil {
				c.arm(t, s, journal)
			}
			s.start(t, func(cfg *throwbar.DeviceConfig) { cfg.Journal = journal })
			s.wait(t, true)
			if c.trap != nil {
				c.trap(s)
			}
			out := s.dispatch(t, cutURL)
			if c.after != nil {
				c.after(t, s)
			}
			if o := <-out; o.GetResult().GetOpenTab().GetUrl() != cutURL {
				t.Errorf("the caller got %v", o)
			}
			apptest.Eventually(t, "the device has its receipt", func() bool { return journal.receipts.Load() > 0 })
			s.wait(t, false)
			s.wait(t, true) // the cut was one
			if n := s.handler.ran(cutURL); n != 1 {
				t.Errorf("it ran %d times", n)
			}
			if n := s.pending(t); n != 0 || s.state(t, cutURL) != controlv1.State_STATE_SUCCEEDED {
				t.Errorf("%d have no end; it is %v", n, s.state(t, cutURL))
			}
		})
	}
}
