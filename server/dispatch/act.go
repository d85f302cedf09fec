package dispatch

import (
	"cmp"
	"context"
	"slices"

	"throwbar.dev/throwbar/catalog"
	optionv1 "throwbar.dev/throwbar/gen/go/throwbar/option/v1"
	"throwbar.dev/throwbar/server/fault"
)

// Acts says what acts have done so far.
type Acts interface {
	// Acted is the sum of the targets of all commands that were written down as counting for an act.
	Acted(ctx context.Context, workspace, act string) (int, error)
}

// actKey names an act over restarts of the server.
type actKey struct{ workspace, act string }

// actOf is the act that a command of a request counts for, if it counts: one that can destroy something does. A model that
// was misled cannot close everything by closing a few again and again, and not by outliving the server either.
func actOf(req *Request, entry *catalog.Entry) (actKey, bool) {
	if req.Act == "" || entry.Command.GetEffect() != optionv1.Effect_EFFECT_DESTRUCTIVE {
		return actKey{}, false
	}
	return actKey{req.Workspace, req.Act}, true
}

// acted is on how many targets an act has acted without anybody being asked.
func (d *Dispatcher) acted(ctx context.Context, key actKey) (int, error) {
	n, err := d.Acts.Acted(ctx, key.workspace, key.act)
	switch {
	case err == nil:
		return n, nil
	case ctx.Err() != nil:
		return 0, fault.Wrap(fault.Cancelled, context.Cause(ctx), wentAway)
	default:
		return 0, fault.Wrap(fault.Busy, err, "the server cannot read just now what was done before because of the same message: nothing was sent").Retry()
	}
}

// earlier is what counts for a command of a request besides the request itself.
func (d *Dispatcher) earlier(ctx context.Context, req *Request, entry *catalog.Entry) (int, error) {
	key, counts := actOf(req, entry)
	if !counts {
		return 0, nil
	}
	return d.acted(ctx, key)
}

// tally is what acts have done while nobody else's commands are accepted for them.
type tally struct {
	done    map[actKey]int
	failed  map[actKey]error // why it is not known
	release func()
}

// tally claims the acts of orders until it is released, and reads what they have done: between that and the acceptance of
// the orders nothing else counts for them. Of two orders that were planned side by side the second sees the first.
func (d *Dispatcher) tally(ctx context.Context, orders []*Order) *tally {
	var keys []actKey
	for _, o := range orders {
		for _, p := range o.parts {
			if key, counts := actOf(&o.Request, p.entry); counts && p.err == nil {
				keys = append(keys, key)
			}
		}
	}
	// In the same order by everybody, so that no two wait for each other.
	slices.SortFunc(keys, func(a, b actKey) int { return cmp.Or(cmp.Compare(a.workspace, b.workspace), cmp.Compare(a.act, b.act)) })
	t := &tally{done: map[actKey]int{}, failed: map[actKey]error{}}
	var releases []func()
	for _, key := range slices.Compact(keys) {
		release, err := d.acts.claim(ctx, key)
		if err == nil {
			releases = append(releases, release)
			t.done[key], err = d.acted(ctx, key)
		}
		if err != nil {
			t.failed[key] = err
		}
	}
	t.release = func() {
		for _, release := range releases {
			release()
		}
	}
	return t
}

// judge has policy decide again about the parts of an order whose act has done more than when they were planned. It is a fault
// if that is not known.
func (t *tally) judge(d *Dispatcher, o *Order) error {
	for _, p := range o.parts {
		key, counts := actOf(&o.Request, p.entry)
		if !counts || p.err != nil {
			continue
		}
		if err := t.failed[key]; err != nil {
			return err
		}
		if before := p.besides(t.done[key]); before != p.before {
			p.before = before
			p.err = d.decide(o.Request, p)
		}
	}
	return nil
}

// add counts a command that is about to be written down.
func (t *tally) add(rec *Record) {
	if rec.Act != "" {
		t.done[actKey{rec.Workspace, rec.Act}] += rec.ActTargets
	}
}

// countsFor is the act that a part counts for if it runs without anybody being asked, and on how many targets it acts.
func countsFor(req *Request, p *part) (act string, targets int) {
	key, counts := actOf(req, p.entry)
	if !counts {
		return "", 0
	}
	return key.act, max(targetCount(p), 1) // one whose targets nobody can count is one all the same
}

// besides is what an act has done besides what the request of a part acts on: what the request has done before a restart is
// a share of both.
func (p *part) besides(done int) int { return max(done-p.both, 0) }
