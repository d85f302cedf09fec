package browser

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	devicev1 "throwbar.dev/throwbar/gen/go/throwbar/device/v1"
	"throwbar.dev/throwbar/ident"
	"throwbar.dev/throwbar/server/fault"
)

// maxWaiting is how many deltas may come between the chunks of a snapshot.
const maxWaiting = 1000

// content is what a snapshot, a part of one, or a delta holds.
type content struct {
	tabs    []*commandv1.Tab
	windows []*commandv1.Window
	groups  []*commandv1.TabGroup
}

// incoming is a snapshot whose last part has not come.
type incoming struct {
	content

	sequence uint64
	parts    uint32
	bytes    int
	waiting  []*devicev1.Delta // came between its parts
}

// room says whether a snapshot in parts and what waits for it stay within bounds.
func (in *incoming) room(m proto.Message) bool {
	in.bytes += proto.Size(m)
	return len(in.waiting) <= maxWaiting && in.bytes <= 2*maxText && len(in.tabs) <= maxTabs && len(in.windows) <= maxWindows && len(in.groups) <= maxGroups
}

// Snapshot takes in one chunk of a device's whole state. The last one makes the state live; deltas that came between
// the chunks follow it.
func (s *State) Snapshot(device string, epoch uint64, chunk *devicev1.Snapshot) (string, error) {
	ds := s.device(device)
	if ds == nil {
		return "", nil
	}
	ds.ingest.Lock()
	defer ds.ingest.Unlock()
	if ds.epoch != epoch {
		return "", nil // a link that was replaced
	}
	part := content{tabs: chunk.GetTabs(), windows: chunk.GetWindows(), groups: chunk.GetGroups()}
	if err := part.check(device, ds.boot); err != nil {
		return "", err
	}
	if ds.has(chunk) {
		return "", nil
	}
	if chunk.GetChunk() == 0 {
		ds.incoming = &incoming{sequence: chunk.GetSequence(), waiting: ds.stillWaiting(chunk.GetSequence())}
	}
	in := ds.incoming
	if in == nil || in.sequence != chunk.GetSequence() || in.parts != chunk.GetChunk() {
		ds.incoming = nil
		s.lose(ds, false) // deltas that came meanwhile are lost with it
		return "a chunk of the snapshot is missing", nil
	}
	in.parts++
	in.tabs = append(in.tabs, part.tabs...)
	in.windows = append(in.windows, part.windows...)
	in.groups = append(in.groups, part.groups...)
	if !in.room(chunk) {
		ds.incoming = nil
		return "", tooMuch()
	}
	if !chunk.GetLast() {
		return "", nil
	}
	ds.incoming = nil
	if err := s.apply(ds, change{content: in.content, whole: true}, s.inStep(ds)); err != nil {
		return "", err
	}
	ds.sequence = in.sequence
	for _, d := range in.waiting {
		if resync, err := s.follow(ds, d); resync != "" || err != nil {
			return resync, err
		}
	}
	return "", nil
}

// has says whether a chunk came already: of the snapshot that is coming, or of one that the state has gone beyond.
func (ds *deviceState) has(chunk *devicev1.Snapshot) bool {
	if in := ds.incoming; in != nil && in.sequence == chunk.GetSequence() {
		return chunk.GetChunk() < in.parts
	}
	return ds.live && chunk.GetSequence() <= ds.sequence
}

// stillWaiting are the deltas after the beginning of a snapshot that another one takes the place of.
func (ds *deviceState) stillWaiting(sequence uint64) []*devicev1.Delta {
	if ds.incoming == nil {
		return nil
	}
	return slices.DeleteFunc(ds.incoming.waiting, func(d *devicev1.Delta) bool { return d.GetSequence() <= sequence })
}

// Delta takes in what changed. A number that does not follow the last one asks for a snapshot.
func (s *State) Delta(device string, epoch uint64, d *devicev1.Delta) (string, error) {
	ds := s.device(device)
	if ds == nil {
		return "", nil
	}
	ds.ingest.Lock()
	defer ds.ingest.Unlock()
	if ds.epoch != epoch {
		return "", nil
	}
	part := content{tabs: d.GetTabs(), windows: d.GetWindows(), groups: d.GetGroups()}
	if err := part.check(device, ds.boot); err != nil {
		return "", err
	}
	if err := checkReplaced(device, ds.boot, d.GetReplaced()); err != nil {
		return "", err
	}
	if in := ds.incoming; in != nil {
		in.waiting = append(in.waiting, d)
		s.lose(ds, false) // what queries see is behind the device until the last chunk is there
		if !in.room(d) {
			ds.incoming = nil
			return "too many deltas between the chunks of a snapshot", nil
		}
		return "", nil
	}
	if !ds.live {
		return "", nil // the snapshot that was asked for has it
	}
	return s.follow(ds, d)
}

// follow applies a delta to a live state.
func (s *State) follow(ds *deviceState, d *devicev1.Delta) (string, error) {
	switch {
	case d.GetSequence() <= ds.sequence:
		return "", nil
	case d.GetSequence() != ds.sequence+1:
		s.lose(ds, false)
		return fmt.Sprintf("delta %d came after %d", d.GetSequence(), ds.sequence), nil
	}
	part := content{tabs: d.GetTabs(), windows: d.GetWindows(), groups: d.GetGroups()}
	if err := s.apply(ds, change{content: part, replaced: d.GetReplaced(), removed: d.GetRemoved()}, s.inStep(ds)); err != nil {
		return "", err
	}
	ds.sequence = d.GetSequence()
	return "", nil
}

// inStep makes a state live when a change is shown.
func (s *State) inStep(ds *deviceState) func() {
	return func() {
		ds.live, ds.asOf = true, s.now()
		ds.changed++
	}
}

// check refuses ids that are not this device's, or not of its current start: a device speaks for itself only.
func (c content) check(device, boot string) error {
	own := func(id string, kind ident.Kind) error { return checkOwn(device, boot, id, kind) }
	ifAny := func(id string, kind ident.Kind) error {
		if id == "" {
			return nil
		}
		return own(id, kind)
	}
	for _, t := range c.tabs {
		if err := own(t.GetTabId(), ident.Tab); err != nil {
			return err
		}
		if err := ifAny(t.GetWindowId(), ident.Window); err != nil {
			return err
		}
		if err := ifAny(t.GetGroupId(), ident.Group); err != nil {
			return err
		}
	}
	for _, w := range c.windows {
		if err := own(w.GetWindowId(), ident.Window); err != nil {
			return err
		}
	}
	for _, g := range c.groups {
		if err := own(g.GetGroupId(), ident.Group); err != nil {
			return err
		}
		if err := ifAny(g.GetWindowId(), ident.Window); err != nil {
			return err
		}
	}
	return nil
}

func checkOwn(device, boot, id string, kind ident.Kind) error {
	p, err := ident.Parse(id)
	if err != nil {
		return fault.New(fault.Invalid, "browser state: %v", err)
	}
	if p.Device != device || p.Boot != boot || p.Kind != kind {
		return fault.New(fault.Invalid, "browser state: %q is no %s of this device's current start", id, kind)
	}
	return nil
}

func checkReplaced(device, boot string, replaced []*devicev1.Replacement) error {
	for _, r := range replaced {
		for _, id := range []string{r.GetOldTabId(), r.GetNewTabId()} {
			if err := checkOwn(device, boot, id, ident.Tab); err != nil {
				return err
			}
		}
	}
	return nil
}

// boot is the boot tag of the first id there is.
func (c content) boot() string {
	var first string
	switch {
	case len(c.tabs) > 0:
		first = c.tabs[0].GetTabId()
	case len(c.windows) > 0:
		first = c.windows[0].GetWindowId()
	case len(c.groups) > 0:
		first = c.groups[0].GetGroupId()
	}
	id, err := ident.Parse(first)
	if err != nil {
		return ""
	}
	return id.Boot
}

func tooMuch() error {
	return fault.New(fault.Invalid, "a device may have %d tabs, %d windows and %d groups with %d MiB of titles and addresses",
		maxTabs, maxWindows, maxGroups, maxText>>20)
}
