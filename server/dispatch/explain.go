package dispatch

import (
	"context"

	"throwbar.dev/throwbar/catalog"
	"throwbar.dev/throwbar/server/policy"
)

// Explained is a command on one device as policy would see it. Err says why it would not even come to policy.
type Explained struct {
	Call policy.Call
	Name string // of the device
	Err  error
}

// Resolve says what policy would be asked about a request, for each device that it would go to. Nothing is sent, and
// no device has to be connected.
func (d *Dispatcher) Resolve(ctx context.Context, req Request) ([]Explained, error) {
	entry, split, saved, err := d.read(ctx, req)
	if err != nil {
		return nil, err
	}
	out := make([]Explained, 0, len(split))
	together := 0
	for _, s := range split {
		p := &part{entry: entry, action: s.action, args: s.args, refs: catalog.Targets(s.args), device: Device{ID: s.device}}
		if _, err := d.Devices.Find(req.Workspace, s.device); err != nil {
			return nil, err // a device that is not the caller's is not there
		}
		err := d.find(req, p, saved)
		if err == nil {
			together += targetCount(p)
		}
		out = append(out, Explained{Name: p.device.Name, Err: err, Call: d.policyCall(req, p)})
	}
	for i := range out {
		out[i].Call.Together = together
	}
	return out, nil
}

// addresses are those of the tabs that a part would act on; empty for one that is not known.
func (d *Dispatcher) addresses(p *part) []string {
	out := make([]string, 0, len(p.tabs)+len(p.saved))
	for _, id := range p.tabs {
		out = append(out, d.Browser.Describe(id).GetUrl())
	}
	for _, s := range p.saved {
		out = append(out, s.GetUrl())
	}
	return out
}
