package dispatch_test

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"throwbar.dev/throwbar/catalog"
	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	devicev1 "throwbar.dev/throwbar/gen/go/throwbar/device/v1"
	"throwbar.dev/throwbar/server/approval"
	"throwbar.dev/throwbar/server/dispatch"
	"throwbar.dev/throwbar/server/fault"
	"throwbar.dev/throwbar/server/policy"
)

// book is a ledger in memory with the rules of the real one.
type book struct {
	mu    sync.Mutex
	rows  map[string]dispatch.Record
	saved map[string]*commandv1.SavedTab
	kept  map[string]bool
	taken map[string]bool   // claimed
	of    map[string]string // saved tab to command
	ends  map[string]int
	lates []string
	fail  error // of Accept
	lost  error // of Accept, which has written all the same
	stuck error // of Finish
	deaf  error // of Late
	steps []string
	shelf shelf
	hooks

	sweeps [][2]time.Time
}

func newBook() *book {
	return &book{
		rows: map[string]dispatch.Record{}, saved: map[string]*commandv1.SavedTab{}, kept: map[string]bool{},
		taken: map[string]bool{}, of: map[string]string{}, ends: map[string]int{},
		shelf: shelf{approvals: map[string]*approval.Approval{}},
	}
}

func (b *book) Accept(_ context.Context, commands []dispatch.Acceptance) error {
	if b.accepting != nil {
		b.accepting()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.fail != nil {
		return b.fail
	}
	for i := range commands {
		c := &commands[i]
		var claimed []string
		for _, id := range c.Claims {
			if b.kept[id] && !b.taken[id] {
				b.taken[id] = true
				claimed = append(claimed, id)
			} else {
				c.Lost = append(c.Lost, id)
			}
		}
		if c.Void() {
			continue
		}
		if len(c.Lost) > 0 {
			raw, err := c.Narrow(claimed)
			if err != nil {
				return err
			}
			c.Record.Action = raw
		}
		b.rows[c.Record.ID] = c.Record
		for _, s := range c.Saved {
			b.saved[s.GetSavedId()], b.of[s.GetSavedId()] = s, c.Record.ID
		}
	}
	return b.lost
}

// hold makes ends fail with an error until it is nil.
func (b *book) hold(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stuck = err
}

func (b *book) Advance(take func() []dispatch.Step) {
	go func() { b.advance(take()) }()
}

func (b *book) advance(steps []dispatch.Step) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range steps {
		b.steps = append(b.steps, s.Record.ID+" "+string(s.To))
		row := b.rows[s.Record.ID]
		if row.State == s.Record.State && row.State.CanGo(s.To) {
			row.State = s.To
			b.rows[s.Record.ID] = row
		}
	}
}

func (b *book) Finish(_ context.Context, ends []dispatch.End) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stuck != nil {
		return b.stuck
	}
	for _, end := range ends {
		row, ok := b.rows[end.Record.ID]
		if !ok || row.State.Ended() {
			continue
		}
		for _, s := range end.Steps {
			b.steps = append(b.steps, s.Record.ID+" "+string(s.To))
		}
		b.rows[end.Record.ID] = end.Record
		b.ends[end.Record.ID]++
		b.drop(row.Approval, end.Record.EndedAt)
		for _, id := range end.Kept {
			b.kept[id] = true
		}
		for _, id := range end.Released {
			delete(b.taken, id)
		}
		for _, id := range end.Dropped {
			delete(b.saved, id)
			delete(b.taken, id)
			delete(b.kept, id)
		}
	}
	return nil
}

// refuseLates makes notes of late outcomes fail with an error until it is nil.
func (b *book) refuseLates(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.deaf = err
}

func (b *book) Late(_ context.Context, rec dispatch.Record, detail string, dropped []string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.deaf != nil {
		return b.deaf
	}
	if note := rec.ID + " " + detail; !slices.Contains(b.lates, note) {
		b.lates = append(b.lates, note)
	}
	for _, id := range dropped {
		if !b.taken[id] {
			delete(b.saved, id)
			delete(b.kept, id)
		}
	}
	return nil
}

func (b *book) Sweep(_ context.Context, clearBefore, removeBefore time.Time) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sweeps = append(b.sweeps, [2]time.Time{clearBefore, removeBefore})
	return nil
}

// clear empties the payloads of what has ended, as a sweep does after a while.
func (b *book) clear() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for id, row := range b.rows {
		if row.State.Ended() {
			row.Action, row.Result, row.Error = nil, nil, nil
			b.rows[id] = row
		}
	}
}

func (b *book) Get(_ context.Context, workspace, id string) (dispatch.Record, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	row, ok := b.rows[id]
	if !ok || (workspace != "" && workspace != row.Workspace) {
		return row, fault.New(fault.NotFound, "there is no command %q", id)
	}
	return row, nil
}

// List knows requests only.
func (b *book) List(_ context.Context, f dispatch.Filter) ([]dispatch.Record, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []dispatch.Record
	for _, row := range b.rows {
		if f.Request != "" && row.Request == f.Request && row.Principal == f.Principal && row.Workspace == f.Workspace {
			out = append(out, row)
		}
	}
	return out, nil
}

func (b *book) Pending(context.Context) ([]dispatch.Acceptance, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []dispatch.Acceptance
	for _, row := range b.rows {
		if !row.State.Ended() {
			out = append(out, dispatch.Acceptance{Record: row})
		}
	}
	slices.SortFunc(out, func(x, y dispatch.Acceptance) int { return x.Record.CreatedAt.Compare(y.Record.CreatedAt) })
	return out, nil
}

func (b *book) Saved(_ context.Context, _ string, ids []string) ([]dispatch.Saved, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []dispatch.Saved
	for _, id := range ids {
		if s := b.saved[id]; s != nil && b.kept[id] {
			out = append(out, dispatch.Saved{Tab: s, Claimed: b.taken[id]})
		}
	}
	return out, nil
}

func (b *book) Kept(_ context.Context, f dispatch.KeptFilter) ([]dispatch.Kept, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []dispatch.Kept
	for id, s := range b.saved {
		rec := b.rows[b.of[id]]
		switch {
		case !b.kept[id] || b.taken[id] || !f.BeforeTime.IsZero(), f.Device != "" && f.Device != s.GetDeviceId(),
			f.Command != "" && f.Command != rec.ID, f.Group != "" && f.Group != rec.Group:
			continue
		}
		out = append(out, dispatch.Kept{Tab: s, Command: rec.ID, Group: rec.Group, Name: rec.Name, State: rec.State})
	}
	slices.SortFunc(out, func(x, y dispatch.Kept) int {
		return cmp.Or(y.Tab.GetSavedAt().AsTime().Compare(x.Tab.GetSavedAt().AsTime()), cmp.Compare(y.Tab.GetTabId(), x.Tab.GetTabId()))
	})
	return out, nil
}

// Acted counts what is written down, like the real one.
func (b *book) Acted(_ context.Context, workspace, act string) (int, error) {
	b.mu.Lock()
	n := 0
	for _, row := range b.rows {
		if row.Workspace == workspace && row.Act == act {
			n += row.ActTargets
		}
	}
	b.mu.Unlock()
	if b.counting == nil {
		return n, nil
	}
	return n, b.counting()
}

func (b *book) OfGroup(_ context.Context, _, group string) (dispatch.Record, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, row := range b.rows {
		if row.Group == group {
			return row, nil
		}
	}
	return dispatch.Record{}, fault.New(fault.NotFound, "there is no dispatch %q", group)
}

func (b *book) row(t *testing.T) dispatch.Record {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.rows) != 1 {
		t.Fatalf("%d rows, want one", len(b.rows))
	}
	for _, row := range b.rows {
		return row
	}
	return dispatch.Record{}
}

func (b *book) all() map[string]dispatch.Record {
	b.mu.Lock()
	defer b.mu.Unlock()
	return maps.Clone(b.rows)
}

// wire has the links of devices.
type wire struct {
	mu     sync.Mutex
	epochs map[string]uint64
	frames map[string][]*devicev1.ServerFrame
	on     func(device string, frame *devicev1.ServerFrame)
}

func newWire() *wire {
	return &wire{epochs: map[string]uint64{}, frames: map[string][]*devicev1.ServerFrame{}}
}

func (w *wire) Connected(device string) uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.epochs[device]
}

func (w *wire) Send(device string, epoch uint64, frame *devicev1.ServerFrame) bool {
	w.mu.Lock()
	if w.epochs[device] != epoch {
		w.mu.Unlock()
		return false
	}
	w.frames[device] = append(w.frames[device], frame)
	on := w.on
	w.mu.Unlock()
	if on != nil {
		go on(device, frame)
	}
	return true
}

func (w *wire) set(device string, epoch uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.epochs[device] = epoch
}

// hush makes every device silent.
func (w *wire) hush() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.on = nil
}

// commands are the commands that were sent to a device.
func (w *wire) commands(device string) []*devicev1.CommandRequest {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []*devicev1.CommandRequest
	for _, f := range w.frames[device] {
		if c := f.GetCommand(); c != nil {
			out = append(out, c)
		}
	}
	return out
}

func (w *wire) cancels(device string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, f := range w.frames[device] {
		if f.GetCancel() != nil {
			n++
		}
	}
	return n
}

// rule is a policy that a test sets: what the commands' options say, or one verdict for all.
type rule struct {
	mu       sync.Mutex
	decide   func(policy.Call) policy.Decision // guarded by mu
	settings controlv1.PolicySettings          // guarded by mu
}

func (r *rule) Decide(c policy.Call) policy.Decision {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.decide == nil {
		return policy.Option(c)
	}
	return r.decide(c)
}

func (r *rule) Settings(string) *controlv1.PolicySettings {
	r.mu.Lock()
	defer r.mu.Unlock()
	return proto.CloneOf(&r.settings)
}

// say makes policy give one verdict.
func (r *rule) say(v controlv1.Verdict, version uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.decide = func(policy.Call) policy.Decision {
		return policy.Decision{Verdict: v, Reason: "the test says so", Rule: "r1", Version: version}
	}
}

// world is a dispatcher with two devices, lap and desk, each with three tabs.
type world struct {
	*dispatch.Dispatcher
	book    *book
	wire    *wire
	more    map[string]bool           // further devices
	rule    rule                      // policy
	reach   atomic.Bool               // somebody can be asked
	blank   atomic.Bool               // a pattern matches nothing
	grown   atomic.Bool               // a pattern matches one more tab
	renamed atomic.Pointer[[2]string] // a tab that has another id now: the old one and the new one
	hidden  string                    // a tab that is private
	lost    atomic.Bool               // the devices are revoked
	skew    atomic.Int64              // of the wall clock
}

func (w *world) Find(workspace, id string) (dispatch.Device, error) {
	if workspace != "w" || w.lost.Load() || (id != "lap" && id != "desk" && !w.more[id]) {
		return dispatch.Device{}, fault.New(fault.NotFound, "there is no device %q", id)
	}
	return dispatch.Device{ID: id, Name: "my " + id, Boot: "b1"}, nil
}

func (w *world) Describe(id string) *commandv1.SavedTab {
	if !w.Exists(id) {
		return nil
	}
	return &commandv1.SavedTab{TabId: id, Url: "https://example.org/" + id}
}

func (w *world) Match(device, _ string) []string {
	if w.blank.Load() {
		return nil
	}
	if w.grown.Load() {
		return []string{device + "_tb1-1", device + "_tb1-2", device + "_tb1-3"}
	}
	return []string{w.Current(device + "_tb1-1"), w.Current(device + "_tb1-2")}
}

// Current knows one tab that has another id now.
func (w *world) Current(id string) string {
	if renamed := w.renamed.Load(); renamed != nil && id == renamed[0] {
		return renamed[1]
	}
	return id
}

func (w *world) Private(id string) bool { return w.hidden != "" && id == w.hidden }

func (w *world) Exists(id string) bool {
	if renamed := w.renamed.Load(); renamed != nil && id == renamed[1] {
		return true
	}
	for _, device := range []string{"lap", "desk"} {
		for n := range 3 {
			if id == fmt.Sprintf("%s_tb1-%d", device, n+1) {
				return true
			}
		}
	}
	return false
}

func newWorld(t *testing.T) *world {
	t.Helper()
	image, err := os.ReadFile("../../gen/descriptors.binpb")
	if err != nil {
		t.Fatal(err)
	}
	cat, err := catalog.New(image)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{book: newBook(), wire: newWire()}
	w.wire.set("lap", 1)
	w.restart(cat)
	return w
}

// restart makes a new dispatcher over the same book, as a restarted server would.
func (w *world) restart(cat *catalog.Catalogue) {
	ids := 0
	var mu sync.Mutex
	w.book.mu.Lock()
	prefix := fmt.Sprintf("id%d-", len(w.book.rows))
	w.book.mu.Unlock()
	w.Dispatcher = dispatch.New(dispatch.Config{
		Catalogue: cat, Ledger: w.book, Reader: w.book, Acts: w.book, Devices: w, Links: w.wire, Browser: w,
		Approvals: w.book, Policy: &w.rule, Reachable: func(string, string) bool { return w.reach.Load() },
		NewID: func() string {
			mu.Lock()
			defer mu.Unlock()
			ids++
			return fmt.Sprintf("%s%d", prefix, ids)
		},
		Now: func() time.Time { return time.Now().Add(time.Duration(w.skew.Load())) }, Log: slog.New(slog.DiscardHandler),
	})
}

// answer makes a device that acknowledges each command and answers it with what reply says; nil means silence.
func (w *world) answer(reply func(c *devicev1.CommandRequest) *devicev1.Outcome) {
	w.wire.mu.Lock()
	defer w.wire.mu.Unlock()
	w.wire.on = func(device string, frame *devicev1.ServerFrame) {
		c := frame.GetCommand()
		if c == nil {
			return
		}
		w.Acknowledged(device, c.GetCommandId())
		if o := reply(c); o != nil {
			o.CommandId = c.GetCommandId()
			w.Outcome(device, o)
		}
	}
}

func closing(ids ...string) *commandv1.Action {
	return &commandv1.Action{Kind: &commandv1.Action_CloseTabs{CloseTabs: &commandv1.CloseTabs{TabIds: ids}}}
}

func closed(ids ...string) *devicev1.Outcome {
	r := &commandv1.CloseTabs_Result{ClosedCount: uint32(len(ids))}
	for _, id := range ids {
		r.Items = append(r.Items, &commandv1.ItemOutcome{Id: id, Status: commandv1.ItemStatus_ITEM_STATUS_OK})
	}
	return &devicev1.Outcome{Outcome: &devicev1.Outcome_Result{
		Result: &commandv1.Result{Kind: &commandv1.Result_CloseTabs{CloseTabs: r}},
	}}
}

func request(action *commandv1.Action, devices ...string) dispatch.Request {
	return dispatch.Request{Workspace: "w", Principal: "p", Action: action, Devices: devices}
}

func codeOf(t *testing.T, err error, want fault.Code) {
	t.Helper()
	if err == nil || fault.CodeOf(err) != want {
		t.Errorf("error %v has code %d, want %d", err, fault.CodeOf(err), want)
	}
}
