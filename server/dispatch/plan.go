package dispatch

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
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

// plan is the result of a dry run that may be run once, by whoever made it. Plans are kept in memory only: none
// outlives the server's process.
type plan struct {
	until                time.Time
	workspace, principal string
}

// dryRun says what the parts would do, and remembers the plan.
func (d *Dispatcher) dryRun(req Request, parts []*part) *controlv1.DispatchResponse {
	res := &controlv1.DispatchResponse{PlanHash: hashOf(req, parts)}
	runnable := false
	for _, p := range parts {
		if p.err != nil {
			res.Outcomes = append(res.Outcomes, p.refusal())
			continue
		}
		runnable = true
		plan := &controlv1.Plan{Action: p.action, Targets: d.planned(p)}
		if p.asks() {
			plan.Asks, plan.AskReason = true, p.decision.Reason
			if err := d.askable(req.Workspace, req.Principal, req.origin()); err != nil {
				plan.AskReason += "; as it is now it would be denied: " + fault.Command(err).GetMessage()
			}
		}
		res.Outcomes = append(res.Outcomes, &controlv1.DeviceOutcome{
			DeviceId: p.device.ID, DeviceName: p.device.Name, Outcome: &controlv1.DeviceOutcome_Plan{Plan: plan},
		})
	}
	if !runnable {
		res.PlanHash = ""
		return res
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.plans) < maxPlans {
		d.plans[res.GetPlanHash()] = plan{until: time.Now().Add(planLife), workspace: req.Workspace, principal: req.Principal}
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
			target.Undoable = undoable && !d.Browser.Private(id)
		}
		out = append(out, target)
	}
	for _, s := range p.saved {
		out = append(out, &controlv1.PlannedTarget{
			Id: s.GetSavedId(), Status: commandv1.ItemStatus_ITEM_STATUS_OK, Title: s.GetTitle(), Url: s.GetUrl(),
		})
	}
	return out
}

// checkPlan uses up the plan that a request names. It is a fault if there is none or the parts are not it any more.
func (d *Dispatcher) checkPlan(req Request, parts []*part) error {
	if req.PlanHash == "" {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	known, ok := d.plans[req.PlanHash]
	ok = ok && known.workspace == req.Workspace && known.principal == req.Principal
	if ok {
		delete(d.plans, req.PlanHash)
	}
	if !ok || time.Now().After(known.until) {
		return fault.New(fault.Invalid, "there is no such plan of yours: it was run already, is older than %s, or the server was restarted", planLife)
	}
	if hashOf(req, parts) != req.PlanHash {
		return fault.New(fault.Invalid, "the plan is not the same any more: make a dry run again")
	}
	return nil
}

func (d *Dispatcher) dropPlans() {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	for hash, p := range d.plans {
		if now.After(p.until) {
			delete(d.plans, hash)
		}
	}
}

// hashOf is the same for the same actions of the same caller on the same devices, tabs and saved tabs.
func hashOf(req Request, parts []*part) string {
	e := newEncoding()
	e.text(req.Workspace)
	e.text(req.Principal)
	e.number(len(parts))
	for _, p := range parts {
		raw, err := proto.MarshalOptions{Deterministic: true}.Marshal(p.action)
		if err != nil {
			continue // an action that was decoded can be encoded
		}
		e.text(p.device.ID)
		e.text(string(raw))
		refused := ""
		if p.err != nil {
			refused = fault.Command(p.err).GetCode().String()
		}
		e.text(refused)
		e.list(p.tabs)
		e.list(savedIDs(p.saved))
	}
	return e.sum()
}

// encoding writes texts and lists so that different ones never look alike: each with its length before it.
type encoding struct{ bytes []byte }

func newEncoding() *encoding { return &encoding{bytes: []byte("throwbar plan 1\n")} }

func (e *encoding) number(n int) { e.bytes = binary.BigEndian.AppendUint64(e.bytes, uint64(n)) }

func (e *encoding) text(s string) {
	e.number(len(s))
	e.bytes = append(e.bytes, s...)
}

func (e *encoding) list(items []string) {
	e.number(len(items))
	for _, s := range items {
		e.text(s)
	}
}

func (e *encoding) sum() string {
	sum := sha256.Sum256(e.bytes)
	return hex.EncodeToString(sum[:])
}
