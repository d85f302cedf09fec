package dispatch

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"

	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	optionv1 "throwbar.dev/throwbar/gen/go/throwbar/option/v1"
	"throwbar.dev/throwbar/server/fault"
)

const (
	planLife = 10 * time.Minute
	maxPlans = 10_000
)

// plan is the result of a dry run that may be run once.
type plan struct{ until time.Time }

// dryRun says what the parts would do, and remembers the plan.
func (d *Dispatcher) dryRun(parts []*part) *controlv1.DispatchResponse {
	res := &controlv1.DispatchResponse{PlanHash: hashOf(parts)}
	runnable := false
	for _, p := range parts {
		if p.err != nil {
			res.Outcomes = append(res.Outcomes, p.refusal())
			continue
		}
		runnable = true
		res.Outcomes = append(res.Outcomes, &controlv1.DeviceOutcome{
			DeviceId: p.device.ID, DeviceName: p.device.Name,
			Outcome: &controlv1.DeviceOutcome_Plan{Plan: &controlv1.Plan{Action: p.action, Targets: d.planned(p)}},
		})
	}
	if !runnable {
		res.PlanHash = ""
		return res
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.plans) < maxPlans {
		d.plans[res.GetPlanHash()] = plan{until: d.Now().Add(planLife)}
	}
	return res
}

// planned says what a part would act on, and what of it the server would keep.
func (d *Dispatcher) planned(p *part) []*controlv1.PlannedTarget {
	undoable := p.entry.Command.GetKeep() != optionv1.Keep_KEEP_UNSPECIFIED
	var out []*controlv1.PlannedTarget
	for _, id := range p.tabs {
		target := &controlv1.PlannedTarget{Id: id, Status: commandv1.ItemStatus_ITEM_STATUS_NOT_FOUND}
		if tab := d.Browser.Describe(id); tab != nil {
			target.Status, target.Title, target.Url = commandv1.ItemStatus_ITEM_STATUS_OK, tab.GetTitle(), tab.GetUrl()
			target.Undoable = undoable
		}
		out = append(out, target)
	}
	return out
}

// checkPlan uses up the plan with the given hash. It is a fault if there is none or the parts are not it any more.
func (d *Dispatcher) checkPlan(hash string, parts []*part) error {
	if hash == "" {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	known, ok := d.plans[hash]
	delete(d.plans, hash)
	if !ok || d.Now().After(known.until) {
		return fault.New(fault.Invalid, "there is no such plan: it was run already, is older than %s, or is of another server start", planLife)
	}
	if hashOf(parts) != hash {
		return fault.New(fault.Invalid, "the plan is not the same any more: make a dry run again")
	}
	return nil
}

func (d *Dispatcher) dropPlans(now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for hash, p := range d.plans {
		if now.After(p.until) {
			delete(d.plans, hash)
		}
	}
}

// hashOf is the same for the same actions on the same devices and tabs.
func hashOf(parts []*part) string {
	h := sha256.New()
	for _, p := range parts {
		raw, err := proto.MarshalOptions{Deterministic: true}.Marshal(p.action)
		if err != nil {
			continue // an action that was decoded can be encoded
		}
		_, _ = fmt.Fprintf(h, "%s %d %v\n", p.device.ID, len(raw), p.err != nil)
		_, _ = h.Write(raw)
		for _, id := range p.tabs {
			_, _ = fmt.Fprintf(h, "%s\n", id)
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}
