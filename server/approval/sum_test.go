package approval_test

import (
	"fmt"
	"testing"
	"time"

	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	optionv1 "throwbar.dev/throwbar/gen/go/throwbar/option/v1"
	"throwbar.dev/throwbar/server/approval"
)

func some(text string, n uint64) approval.Approval {
	who := approval.Caller{Workspace: "w", Principal: text, Conversation: "c", Group: "g", Request: "r", Origin: 1}
	return approval.Approval{
		Caller: who, ID: "a", Version: n, ExpiresAt: time.UnixMilli(1000),
		Calls: []approval.Call{{
			Caller: who, Command: "c1", Device: "d", Name: "closeTabs", TTL: time.Second, Proposed: []byte("p"), Effective: []byte("e"),
			Targets: []*controlv1.PlannedTarget{{Id: "t1"}, {Id: "t2"}},
		}},
	}
}

// FuzzSum puts text into one bound field and moves it to the next one: the hash is never the same.
func FuzzSum(f *testing.F) {
	f.Add("x", "y", uint64(1))
	f.Add("", "\x00\x00\x00\x00\x00\x00\x00\x01", uint64(0))
	f.Fuzz(func(t *testing.T, x, y string, n uint64) {
		sums := map[string]string{}
		for name, set := range map[string]func(*approval.Approval){
			"as it is":          func(*approval.Approval) {},
			"id":                func(a *approval.Approval) { a.ID += "1" + x },
			"workspace":         func(a *approval.Approval) { a.Workspace += "1" + x },
			"conversation":      func(a *approval.Approval) { a.Conversation += "1" + x },
			"group":             func(a *approval.Approval) { a.Group += "1" + x },
			"request":           func(a *approval.Approval) { a.Request += "1" + x },
			"version":           func(a *approval.Approval) { a.Version++ },
			"expiry":            func(a *approval.Approval) { a.ExpiresAt = a.ExpiresAt.Add(time.Millisecond) },
			"command":           func(a *approval.Approval) { a.Calls[0].Command += "1" + y },
			"device":            func(a *approval.Approval) { a.Calls[0].Device += "1" + y },
			"name":              func(a *approval.Approval) { a.Calls[0].Name += "1" + y },
			"ttl":               func(a *approval.Approval) { a.Calls[0].TTL += time.Millisecond },
			"proposed":          func(a *approval.Approval) { a.Calls[0].Proposed = []byte("p1" + y) },
			"edited":            func(a *approval.Approval) { a.Calls[0].Edited = []byte("1" + y) },
			"effective":         func(a *approval.Approval) { a.Calls[0].Effective = []byte("e1" + y) },
			"target":            func(a *approval.Approval) { a.Calls[0].Targets[0].Id = "t1" + y + "1" },
			"target's title":    func(a *approval.Approval) { a.Calls[0].Targets[0].Title = "1" + y },
			"target's address":  func(a *approval.Approval) { a.Calls[0].Targets[0].Url = "1" + y },
			"target's status":   func(a *approval.Approval) { a.Calls[0].Targets[0].Status = commandv1.ItemStatus_ITEM_STATUS_NOT_FOUND },
			"target's way back": func(a *approval.Approval) { a.Calls[0].Targets[0].Undoable = true },
			"damaged":           func(a *approval.Approval) { a.Damaged = true },
			"targets joined":    func(a *approval.Approval) { a.Calls[0].Targets = []*controlv1.PlannedTarget{{Id: "t1t2"}} },
			"no targets":        func(a *approval.Approval) { a.Calls[0].Targets = nil },
			"call's caller":     func(a *approval.Approval) { a.Calls[0].Principal += "1" + y },
			"two calls":         func(a *approval.Approval) { a.Calls = append(a.Calls, a.Calls[0]) },
		} {
			a := some(x, n)
			set(&a)
			sum := a.Sum()
			if other, ok := sums[sum]; ok {
				t.Errorf("%s and %s have one hash", name, other)
			}
			sums[sum] = name
		}
	})
}

func TestWhoIsReachable(t *testing.T) {
	t.Parallel()
	var reach approval.Reach
	if reach.Reachable("w", "p") {
		t.Error("somebody is reachable where nobody follows")
	}
	for n, row := range []struct {
		who  approval.Decider
		want bool
	}{
		{approval.Decider{Workspace: "w", Token: "v", Scope: optionv1.Scope_SCOPE_VIEWER}, false},
		{approval.Decider{Workspace: "w", Token: "h", Scope: optionv1.Scope_SCOPE_HOOK}, false},
		{approval.Decider{Workspace: "w", Token: "d", Scope: optionv1.Scope_SCOPE_DEVICE}, false},
		{approval.Decider{Workspace: "w", Token: "p", Scope: optionv1.Scope_SCOPE_OPERATOR}, false},
		{approval.Decider{Workspace: "other", Token: "o", Scope: optionv1.Scope_SCOPE_OWNER}, false},
		{approval.Decider{Workspace: "w", Token: "q", Scope: optionv1.Scope_SCOPE_OPERATOR}, true},
		{approval.Decider{Workspace: "w", Token: "p", Scope: optionv1.Scope_SCOPE_OWNER}, true},
	} {
		leave := reach.Join(row.who)
		again := reach.Join(row.who)
		again()
		if got := reach.Reachable("w", "p"); got != row.want {
			t.Error(fmt.Sprint(n), got)
		}
		leave()
		leave()
		if reach.Reachable("w", "p") {
			t.Error("reachable after they left")
		}
	}
}
