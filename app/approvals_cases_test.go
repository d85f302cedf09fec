package app_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"throwbar.dev/throwbar/app"
	"throwbar.dev/throwbar/app/apptest"
	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	"throwbar.dev/throwbar/server/approval"
)

const (
	atOnce     = 32
	friendly   = "https://a.example/"
	threeDays  = 72 * time.Hour
	fourFifths = threeDays * 4 / 5
)

// TestApprovalCases goes through the cases of approvals with a whole server on each store and a device that counts what it
// runs. They share a server: those that move the clock come last.
func TestApprovalCases(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, cfg app.Config) {
		c := newCourt(t, cfg)
		for _, one := range []struct {
			name string
			test func(*testing.T, *court)
		}{
			{"07", case07},
			{"08", case08},
			{"13", case13},
			{"14", case14},
			{"two deciders", twoDeciders},
			{"06", case06},
			{"16", case16},
			{"11", case11},
			{"10", case10},
		} {
			if !t.Run(one.name, func(t *testing.T) { one.test(t, c) }) {
				return
			}
		}
	})
}

// case06: a policy that became stricter between the decision and the start asks again, and one that denies denies.
func case06(t *testing.T, c *court) {
	url := friendly + "06"
	command, a := c.submit(t, opens(url))
	change := func(verdict controlv1.Verdict, command string) {
		var once sync.Once
		var id string
		f := func(approval.Approval) { once.Do(func() { id = c.rule(t, verdict, command) }) }
		c.looks.Store(&f)
		t.Cleanup(func() {
			if _, err := c.rules.RemoveRule(context.WithoutCancel(t.Context()), &controlv1.RemoveRuleRequest{RuleId: id}); err != nil {
				t.Error(err)
			}
		})
	}
	change(controlv1.Verdict_VERDICT_ASK, "openTab")
	if out := c.decide(t, approve(a)); out.GetError() != nil {
		t.Fatal(out)
	}
	var next *controlv1.Approval
	apptest.Eventually(t, "it is asked again", func() bool {
		got, err := c.commands.GetCommand(t.Context(), &controlv1.GetCommandRequest{CommandId: command})
		if err != nil || got.GetCommand().GetApprovalId() == a.GetApprovalId() {
			return false
		}
		next = c.approval(t, got.GetCommand().GetApprovalId())
		return true
	})
	c.looks.Store(nil)
	if old := c.approval(t, a.GetApprovalId()); old.GetState() != voidState || next.GetState() != pendingState || c.tape.times(url) != 0 {
		t.Fatalf("old %v, new %v, ran %d times", old.GetState(), next.GetState(), c.tape.times(url))
	}
	if out := c.decide(t, approve(a)); out.GetError().GetCode() != codeRefused {
		t.Errorf("yes to the old one: %v", out)
	}
	if out := c.decide(t, approve(next)); out.GetError() != nil {
		t.Error(out)
	}
	if got := c.end(t, command); got.GetState() != controlv1.State_STATE_SUCCEEDED || c.tape.times(url) != 1 {
		t.Errorf("after the second yes: %v, ran %d times", got, c.tape.times(url))
	}
	command, a = c.submit(t, opens(url+"denied"))
	change(controlv1.Verdict_VERDICT_DENY, "openTab")
	c.decide(t, approve(a))
	if got := c.end(t, command); got.GetError().GetCode() != codeDenied || c.tape.times(url+"denied") != 0 {
		t.Errorf("denied since: %v", got)
	}
	c.looks.Store(nil)
}

// case07: a decision names what it was shown.
func case07(t *testing.T, c *court) {
	command, a := c.submit(t, opens(friendly+"07"))
	_, other := c.submit(t, opens(friendly+"07/other"))
	wrong := approve(a)
	wrong.Decisions[0].GetApprove().Hash = other.GetHash()
	if out := c.decide(t, wrong); out.GetError().GetCode() != codeInvalid || out.GetApproval().GetState() != pendingState {
		t.Errorf("with the hash of another: %v", out)
	}
	if c.tape.times(friendly+"07") != 0 {
		t.Error("it ran")
	}
	c.decide(t, denial(other, ""))
	c.decide(t, approve(a))
	if c.end(t, command); c.tape.times(friendly+"07") != 1 || c.tape.times(friendly+"07/other") != 0 {
		t.Error("the right hash does not count")
	}
}

// case08: a bad edit changes nothing, and a good one runs as edited and never as proposed.
func case08(t *testing.T, c *court) {
	proposed, edited := friendly+"08/proposed", friendly+"08/edited"
	command, a := c.submit(t, opens(proposed))
	if _, err := c.approvals.Decide(t.Context(), edit(a, command, opens(""))); err == nil {
		t.Error("arguments that break a rule were taken")
	}
	closing := &commandv1.Action{Kind: &commandv1.Action_CloseTabs{CloseTabs: &commandv1.CloseTabs{TabIds: []string{c.device + "_tb1-1"}}}}
	if out := c.decide(t, edit(a, command, closing)); out.GetError().GetCode() != codeInvalid || out.GetApproval().GetState() != pendingState {
		t.Errorf("an edit that is another command: %v", out)
	}
	if out := c.decide(t, edit(a, "another", opens(edited))); out.GetError().GetCode() != codeInvalid {
		t.Errorf("an edit of another command: %v", out)
	}
	out := c.decide(t, edit(a, command, opens(edited)))
	if out.GetError() != nil {
		t.Fatal(out)
	}
	c.end(t, command)
	call := c.approval(t, a.GetApprovalId()).GetCalls()[0]
	if call.GetProposed().GetOpenTab().GetUrl() != proposed || call.GetEdited().GetOpenTab().GetUrl() != edited || call.GetEffective().GetOpenTab().GetUrl() != edited {
		t.Errorf("kept: %v", call)
	}
	if c.tape.times(edited) != 1 || c.tape.times(proposed) != 0 {
		t.Errorf("ran edited %d times, proposed %d times", c.tape.times(edited), c.tape.times(proposed))
	}
}

// each runs a race many times, some at once.
func each(t *testing.T, one func(n int) error) {
	t.Helper()
	var all sync.WaitGroup
	for worker := range atOnce {
		all.Go(func() {
			for n := worker; n < races; n += atOnce {
				if err := one(n); err != nil {
					t.Errorf("%d: %v", n, err)
					return
				}
			}
		})
	}
	all.Wait()
}

// case13 decides in the moment of the ask, when it is written and the dispatcher does not know yet.
func case13(t *testing.T, c *court) {
	decide := func(a approval.Approval) {
		out, err := c.approvals.Decide(t.Context(), approve(&controlv1.Approval{ApprovalId: a.ID, Hash: a.Hash}))
		if err != nil || out.GetOutcomes()[0].GetError() != nil {
			t.Errorf("decide: %v, %v", out, err)
		}
	}
	c.asked.Store(&decide)
	defer c.asked.Store(nil)
	before := c.tape.total()
	each(t, func(n int) error {
		url := fmt.Sprint(friendly, "13/", n)
		res, err := c.commands.Dispatch(t.Context(), &controlv1.DispatchRequest{DeviceIds: []string{c.device}, Action: opens(url)})
		if err != nil || res.GetOutcomes()[0].GetResult() == nil || c.tape.times(url) != 1 {
			return fmt.Errorf("%v, %w, ran %d times", res, err, c.tape.times(url))
		}
		return nil
	})
	if n := c.tape.total() - before; n != races {
		t.Errorf("%d executions of %d", n, races)
	}
}

// ask is submit outside of the test's goroutine.
func (c *court) ask(t *testing.T, url string) (command string, a *controlv1.Approval, err error) {
	res, err := c.commands.Submit(t.Context(), &controlv1.SubmitRequest{DeviceIds: []string{c.device}, Action: opens(url)})
	if err != nil {
		return "", nil, err
	}
	got, err := c.approvals.GetApproval(t.Context(), &controlv1.GetApprovalRequest{ApprovalId: res.GetOutcomes()[0].GetApprovalId()})
	return res.GetOutcomes()[0].GetCommandId(), got.GetApproval(), err
}

// ended is end outside of the test's goroutine.
func (c *court) ended(t *testing.T, id string) (*controlv1.Command, error) {
	for late := time.Now().Add(time.Minute); ; {
		res, err := c.commands.GetCommand(t.Context(), &controlv1.GetCommandRequest{CommandId: id})
		switch {
		case err != nil || res.GetCommand().GetEndedAt() != nil:
			return res.GetCommand(), err
		case time.Now().After(late):
			return nil, fmt.Errorf("never ends: %v", res)
		}
		<-time.After(2 * time.Millisecond)
	}
}

// case14 races a decision against a cancel: one end, and an execution only of what was approved.
func case14(t *testing.T, c *court) {
	each(t, func(n int) error {
		url := fmt.Sprint(friendly, "14/", n)
		command, a, err := c.ask(t, url)
		if err != nil {
			return err
		}
		done := make(chan error, 2)
		go func() {
			_, err := c.approvals.Decide(t.Context(), approve(a))
			done <- err
		}()
		go func() {
			_, err := c.commands.CancelCommand(t.Context(), &controlv1.CancelCommandRequest{CommandId: command})
			done <- err
		}()
		for range 2 {
			if err := <-done; err != nil {
				return err
			}
		}
		end, err := c.ended(t, command)
		if err != nil {
			return err
		}
		got, err := c.approvals.GetApproval(t.Context(), &controlv1.GetApprovalRequest{ApprovalId: a.GetApprovalId()})
		ran, state := c.tape.times(url), got.GetApproval().GetState()
		switch {
		case err != nil:
			return err
		case ran > 1, ran == 0 && end.GetState() == controlv1.State_STATE_SUCCEEDED, ran == 1 && state != approvedState,
			state == pendingState, end.GetState() != controlv1.State_STATE_SUCCEEDED && end.GetState() != controlv1.State_STATE_CANCELLED:
			return fmt.Errorf("%v, approval %v, ran %d times", end, state, ran)
		}
		return nil
	})
}

// twoDeciders has two people decide at once: one wins, and a yes that won runs once.
func twoDeciders(t *testing.T, c *court) {
	each(t, func(n int) error {
		url := fmt.Sprint(friendly, "two/", n)
		command, a, err := c.ask(t, url)
		if err != nil {
			return err
		}
		second := approve(a)
		if n%2 == 0 {
			second = denial(a, "")
		}
		won := make(chan *controlv1.DecisionOutcome, 2)
		for _, req := range []*controlv1.DecideRequest{approve(a), second} {
			go func() {
				out, err := c.approvals.Decide(t.Context(), req)
				if err != nil {
					t.Error(err)
				}
				won <- out.GetOutcomes()[0]
			}()
		}
		first, other := <-won, <-won
		if (first.GetError() == nil) == (other.GetError() == nil) {
			return fmt.Errorf("%v and %v", first, other)
		}
		winner := first
		if first.GetError() != nil {
			winner = other
		}
		end, err := c.ended(t, command)
		yes := winner.GetApproval().GetState() == approvedState
		if ran := c.tape.times(url); err != nil || yes != (ran == 1) || ran > 1 || yes != (end.GetState() == controlv1.State_STATE_SUCCEEDED) {
			return fmt.Errorf("%v won, it ran %d times and ended as %v, %w", winner.GetApproval().GetState(), ran, end, err)
		}
		return nil
	})
}

// later moves the clock.
func (c *court) later(by time.Duration) { c.skew.Add(int64(by)) }

// case16: a late yes is for its own call, never for the next one.
func case16(t *testing.T, c *court) {
	url := friendly + "16"
	command, old := c.submit(t, opens(url))
	c.later(threeDays + time.Hour)
	if got := c.end(t, command); got.GetState() != controlv1.State_STATE_EXPIRED || got.GetError().GetCode() != codeTimedOut {
		t.Errorf("expired: %v", got)
	}
	c.online(t)
	_, next := c.submit(t, opens(url))
	if out := c.decide(t, approve(old)); out.GetError().GetCode() != codeRefused || !strings.Contains(out.GetError().GetMessage(), "expired") {
		t.Errorf("yes to the one that expired: %v", out)
	}
	if got := c.approval(t, next.GetApprovalId()); got.GetState() != pendingState || c.tape.times(url) != 0 {
		t.Errorf("the next one is %v, ran %d times", got.GetState(), c.tape.times(url))
	}
	c.decide(t, denial(next, ""))
}

// case11: from Friday to Monday is in time, the warning comes at four fifths of it, and what expires while the server is down
// ends when it starts.
func case11(t *testing.T, c *court) {
	url := friendly + "11"
	command, a := c.submit(t, opens(url))
	c.later(fourFifths - time.Minute)
	if c.warned(t, a.GetApprovalId(), 1500*time.Millisecond) {
		t.Error("warned too early")
	}
	c.later(2 * time.Minute)
	if !c.warned(t, a.GetApprovalId(), time.Minute) {
		t.Error("no warning at four fifths")
	}
	c.later(12 * time.Hour)
	c.online(t)
	if out := c.decide(t, approve(a)); out.GetError() != nil {
		t.Errorf("on Monday: %v", out)
	}
	if got := c.end(t, command); got.GetState() != controlv1.State_STATE_SUCCEEDED || c.tape.times(url) != 1 {
		t.Errorf("on Monday: %v, ran %d times", got, c.tape.times(url))
	}
	command, a = c.submit(t, opens(url+"/down"))
	c.Stop()
	c.later(100 * time.Hour)
	c.start(t)
	got := c.end(t, command)
	if state := c.approval(t, a.GetApprovalId()).GetState(); got.GetError().GetCode() != codeTimedOut || state != expiredState || c.tape.times(url+"/down") != 0 {
		t.Errorf("expired while the server was down: %v, %v", got, state)
	}
	c.online(t)
}

// warned says whether it was warned, within a time, that an approval is about to expire.
func (c *court) warned(t *testing.T, id string, within time.Duration) bool {
	t.Helper()
	for late := time.Now().Add(within); time.Now().Before(late); <-time.After(50 * time.Millisecond) {
		if c.row(t, "select warned_at from srv_approval where id = $1", id) > 0 {
			return true
		}
	}
	return false
}

// case10: what waits has no lease. Three days, a new link and a restart later it is there, and runs once.
func case10(t *testing.T, c *court) {
	_, err := c.rules.SetPolicySettings(t.Context(), &controlv1.SetPolicySettingsRequest{Settings: &controlv1.PolicySettings{
		Background: controlv1.Unreachable_UNREACHABLE_WAIT, ApprovalWithin: durationpb.New(10 * threeDays),
	}})
	if err != nil {
		t.Fatal(err)
	}
	url := friendly + "10"
	command, a := c.submit(t, opens(url))
	c.later(threeDays)
	c.proxy.Reset()
	c.online(t)
	c.Stop()
	c.later(threeDays)
	c.start(t)
	c.online(t)
	if got := c.approval(t, a.GetApprovalId()); got.GetState() != pendingState || c.tape.times(url) != 0 {
		t.Errorf("after six days: %v, ran %d times", got.GetState(), c.tape.times(url))
	}
	if out := c.decide(t, approve(a)); out.GetError() != nil {
		t.Errorf("after six days: %v", out)
	}
	if got := c.end(t, command); got.GetState() != controlv1.State_STATE_SUCCEEDED || c.tape.times(url) != 1 {
		t.Errorf("after six days: %v, ran %d times", got, c.tape.times(url))
	}
}
