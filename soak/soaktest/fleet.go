package soaktest

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"throwbar.dev/throwbar/catalog"
	throwbar "throwbar.dev/throwbar/clients/go"
	"throwbar.dev/throwbar/gen"
	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
)

// RoleFleet is many devices in one process, each with a connection of its own and a journal in memory. Its arguments
// are a file of identities, the first one and the one after the last, and how far the first links are spread.
const RoleFleet = "fleet"

// Standing is how a fleet stands.
type Standing struct {
	Connected int
	Executed  int64
	Hellos    []int64        // of each device: when the link that stands was begun, as Unix milliseconds; 0 without one
	Lost      map[string]int // links that have ended, by reason
	Ended     string         // why a device gave up, if one did
}

// WriteIdentities writes identities to a file for the fleets.
func WriteIdentities(path string, all []throwbar.Identity) error {
	raw, err := json.Marshal(all)
	if err != nil {
		return fmt.Errorf("encode identities: %w", err)
	}
	return os.WriteFile(path, raw, 0o600)
}

// Handler opens no tab and says that it has: which one is counted.
type Handler struct {
	commandv1.DeclineTabs
	commandv1.DeclineCustom

	Device   string
	Executed *atomic.Int64
}

// OpenTab answers at once.
func (h Handler) OpenTab(_ context.Context, req *commandv1.OpenTab) (*commandv1.OpenTab_Result, error) {
	n := h.Executed.Add(1)
	return &commandv1.OpenTab_Result{TabId: fmt.Sprintf("%s_tb1-%d", h.Device, n), Url: req.GetUrl()}, nil
}

// Action is what a caller asks of a Handler. It is not idempotent: a device that is in doubt does not run it again.
func Action() *commandv1.Action {
	return &commandv1.Action{Kind: &commandv1.Action_OpenTab{OpenTab: &commandv1.OpenTab{Url: "https://a.example/"}}}
}

// Actions are the names of what a Handler runs.
func Actions() []string { return []string{"openTab"} }

// member is one device of a fleet.
type member struct {
	fleet  *fleet
	client *http.Client
	begun  atomic.Int64 // when the last link was begun, as Unix milliseconds
	stands atomic.Int64 // when the link that stands was begun; zero without one
}

// Do notes when a link is begun: each is one request.
func (m *member) Do(req *http.Request) (*http.Response, error) {
	m.begun.Store(time.Now().UnixMilli())
	return m.client.Do(req)
}

func (m *member) status(st throwbar.Status) {
	if st.Connected {
		m.stands.Store(m.begun.Load())
		return
	}
	if m.stands.Swap(0) != 0 && st.Err != nil {
		m.fleet.mu.Lock()
		defer m.fleet.mu.Unlock()
		m.fleet.lost[st.Err.Error()]++
	}
}

// fleet is what the members share.
type fleet struct {
	members  []*member
	executed atomic.Int64

	mu    sync.Mutex
	lost  map[string]int // guarded by mu
	ended string         // guarded by mu
}

func playFleet(ctx context.Context, s *Stage) error {
	identities, spread, err := fleetArgs(s.Args)
	if err != nil {
		return err
	}
	catalogue, err := catalog.New(gen.Descriptors)
	if err != nil {
		return fmt.Errorf("read catalogue: %w", err)
	}
	f := &fleet{lost: map[string]int{}}
	devices := make([]*throwbar.Device, 0, len(identities))
	for _, identity := range identities {
		m := &member{fleet: f, client: &http.Client{Transport: linkTransport()}}
		f.members = append(f.members, m)
		d, err := throwbar.NewDevice(throwbar.DeviceConfig{
			Identity: identity, Catalogue: catalogue, Actions: Actions(), BootTag: "b1", Spread: spread, HTTPClient: m,
			OnStatus: m.status, Handler: Handler{Device: identity.DeviceID, Executed: &f.executed},
		})
		if err != nil {
			return fmt.Errorf("make device: %w", err)
		}
		devices = append(devices, d)
	}
	ctx = s.Listen(ctx, f.answer)
	s.Ready()
	var group sync.WaitGroup
	for _, d := range devices {
		group.Go(func() {
			if err := d.Run(ctx); err != nil {
				f.mu.Lock()
				f.ended = err.Error()
				f.mu.Unlock()
			}
		})
	}
	group.Wait()
	return nil
}

func (f *fleet) answer(string) any {
	f.mu.Lock()
	defer f.mu.Unlock()
	st := Standing{Executed: f.executed.Load(), Lost: maps.Clone(f.lost), Ended: f.ended}
	for _, m := range f.members {
		begun := m.stands.Load()
		if begun != 0 {
			st.Connected++
		}
		st.Hellos = append(st.Hellos, begun)
	}
	return st
}

func fleetArgs(args []string) (identities []throwbar.Identity, spread time.Duration, err error) {
	raw, err := os.ReadFile(args[0])
	if err != nil {
		return nil, 0, fmt.Errorf("read identities: %w", err)
	}
	if err := json.Unmarshal(raw, &identities); err != nil {
		return nil, 0, fmt.Errorf("read identities: %w", err)
	}
	from, fromErr := strconv.Atoi(args[1])
	to, toErr := strconv.Atoi(args[2])
	if fromErr != nil || toErr != nil {
		return nil, 0, fmt.Errorf("read arguments of the fleet %s", strings.Join(args, " "))
	}
	if spread, err = time.ParseDuration(args[3]); err != nil {
		return nil, 0, fmt.Errorf("read the fleet's spread: %w", err)
	}
	return identities[from:to], spread, nil
}

// AskStanding asks a fleet how it stands.
func AskStanding(ctx context.Context, p *Process) (Standing, error) {
	var st Standing
	return st, p.askFor(ctx, "standing", &st)
}

// AskHeap asks a process what it holds after a forced collection.
func AskHeap(ctx context.Context, p *Process) (Heap, error) {
	var h Heap
	return h, p.askFor(ctx, "memory", &h)
}

func (p *Process) askFor(ctx context.Context, question string, into any) error {
	raw, err := p.Ask(ctx, question)
	if err != nil {
		return err
	}
	if err := json.Unmarshal([]byte(raw), into); err != nil {
		return fmt.Errorf("read the answer to %s: %w", question, err)
	}
	return nil
}
