package linktest

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"throwbar.dev/throwbar/app"
	"throwbar.dev/throwbar/app/apptest"
	throwbar "throwbar.dev/throwbar/clients/go"
	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	"throwbar.dev/throwbar/server/rpc"
)

// setup is a server, a proxy in front of it that breaks on demand, and one device behind the proxy.
type setup struct {
	*apptest.Server
	proxy    *apptest.Proxy
	identity throwbar.Identity
	status   chan throwbar.Status
	handler  *counter
	client   *throwbar.Client
	journal  *hooked // of R11
}

// counter opens tabs by counting them. A hook runs before each.
type counter struct {
	commandv1.DeclineTabs
	commandv1.DeclineCustom

	before, after func(url string)

	mu      sync.Mutex
	effects map[string]int // guarded by mu
}

func (c *counter) OpenTab(_ context.Context, a *commandv1.OpenTab) (*commandv1.OpenTab_Result, error) {
	if c.before != nil {
		c.before(a.GetUrl())
	}
	c.mu.Lock()
	c.effects[a.GetUrl()]++
	c.mu.Unlock()
	if c.after != nil {
		c.after(a.GetUrl())
	}
	return &commandv1.OpenTab_Result{Url: a.GetUrl()}, nil
}

func (c *counter) ran(url string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.effects[url]
}

func prepare(t *testing.T, cfg app.Config) *setup {
	t.Helper()
	cfg.DataDir = t.TempDir()
	identity := apptest.Seed(t, cfg.DataDir, 1)[0]
	proxy := apptest.NewProxy(t, "")
	proxy.HTTP2 = true
	cfg.Listener = rpc.Listener{Hosts: []string{proxy.Address}}
	s := apptest.Start(t, cfg)
	proxy.Retarget(s.Address)
	identity.Server = "http://" + proxy.Address
	client, err := throwbar.New(throwbar.Config{Server: s.URL, Token: s.Owner})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.CloseIdle)
	return &setup{
		Server: s, proxy: proxy, identity: identity, status: make(chan throwbar.Status, 1000),
		handler: &counter{effects: map[string]int{}}, client: client,
	}
}

// start runs the device until the returned function is called. It comes back without any jitter.
func (s *setup) start(t *testing.T, change func(*throwbar.DeviceConfig)) (stop func() error) {
	t.Helper()
	cfg := throwbar.DeviceConfig{
		Identity: s.identity, Handler: s.handler, Actions: []string{"openTab"}, Jitter: func() float64 { return 0 },
		OnStatus: func(st throwbar.Status) { s.status <- st },
	}
	if change != nil {
		change(&cfg)
	}
	d, err := throwbar.NewDevice(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	stop = sync.OnceValue(func() error { cancel(); return <-ended })
	t.Cleanup(func() { _ = stop() })
	return stop
}

// wait takes statuses until one is as wanted.
func (s *setup) wait(t *testing.T, connected bool) throwbar.Status {
	t.Helper()
	for late := time.After(time.Minute); ; {
		select {
		case st := <-s.status:
			if st.Connected == connected {
				return st
			}
		case <-late:
			t.Fatalf("the device never says connected %v", connected)
		}
	}
}

func (s *setup) online(t *testing.T) bool {
	t.Helper()
	res, err := s.client.Devices.ListDevices(t.Context(), &controlv1.ListDevicesRequest{})
	if err != nil || len(res.GetDevices()) != 1 {
		t.Fatal(res, err)
	}
	return res.GetDevices()[0].GetOnline()
}

// ttl is how long a command may wait for its device: longer than any device here is away on a slow machine.
const ttl = 4 * time.Minute

func opening(device, url string) *controlv1.DispatchRequest {
	return &controlv1.DispatchRequest{
		DeviceIds: []string{device}, Ttl: durationpb.New(ttl),
		Action: &commandv1.Action{Kind: &commandv1.Action_OpenTab{OpenTab: &commandv1.OpenTab{Url: url}}},
	}
}

// dispatch opens a tab in the background.
func (s *setup) dispatch(t *testing.T, url string) <-chan *controlv1.DeviceOutcome {
	t.Helper()
	done := make(chan *controlv1.DeviceOutcome, 1)
	go func() {
		res, err := s.client.Commands.Dispatch(t.Context(), opening(s.identity.DeviceID, url))
		if err != nil || len(res.GetOutcomes()) != 1 {
			t.Errorf("dispatch of %s: %v, %v", url, res, err)
			done <- nil
			return
		}
		done <- res.GetOutcomes()[0]
	}()
	return done
}

// state is a stored command's; unspecified if there is none for this address.
func (s *setup) state(t *testing.T, url string) controlv1.State {
	t.Helper()
	list, err := s.client.Commands.ListCommands(t.Context(), &controlv1.ListCommandsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range list.GetCommands() {
		if c.GetAction().GetOpenTab().GetUrl() == url {
			return c.GetState()
		}
	}
	return controlv1.State_STATE_UNSPECIFIED
}

func (s *setup) pending(t *testing.T) int {
	t.Helper()
	list, err := s.client.Commands.ListCommands(t.Context(), &controlv1.ListCommandsRequest{PendingOnly: new(true)})
	if err != nil {
		t.Fatal(err)
	}
	return len(list.GetCommands())
}

// unhurried is a server that takes no link for dead because a test plays its other end by hand, and that says nothing in
// between.
func unhurried() app.Config { return app.Config{Heartbeat: time.Hour, Lease: 2 * time.Hour} }

func quick() app.Config {
	return app.Config{Heartbeat: 50 * time.Millisecond, Lease: 400 * time.Millisecond}
}

// G4: a frozen peer is noticed by pings alone, on both sides: heartbeats and leases are an hour here.
func TestTrapG4PingsNoticeAFrozenPeer(t *testing.T) {
	t.Parallel()
	s := prepare(t, app.Config{
		Heartbeat: time.Hour, Lease: time.Hour, PingAfter: 100 * time.Millisecond, PingTimeout: 100 * time.Millisecond,
	})
	protocols := &http.Protocols{}
	protocols.SetUnencryptedHTTP2(true)
	s.start(t, func(c *throwbar.DeviceConfig) {
		c.HTTPClient = &http.Client{Transport: &http.Transport{
			Protocols: protocols, DisableKeepAlives: true,
			HTTP2: &http.HTTP2Config{SendPingTimeout: 100 * time.Millisecond, PingTimeout: 100 * time.Millisecond},
		}}
	})
	s.wait(t, true)
	s.proxy.Freeze()
	s.wait(t, false)
	apptest.Eventually(t, "the server has noticed", func() bool { return !s.online(t) })
	s.proxy.Renew()
	s.wait(t, true)
	apptest.Eventually(t, "it is back", func() bool { return s.online(t) })
}

// R3: a device that was frozen and has come back elsewhere does not fight for its link when it thaws.
func TestR03AThawedDeviceDoesNotFight(t *testing.T) {
	t.Parallel()
	s := prepare(t, app.Config{})
	dir := t.TempDir()
	if err := s.identity.Save(filepath.Join(dir, "identity")); err != nil {
		t.Fatal(err)
	}
	old := spawn(t, "device "+dir)
	if line := old.line(t); line != "connected" {
		t.Fatal(line)
	}
	old.signal(t, syscall.SIGSTOP)
	s.start(t, nil) // accepted although the old link has not ended
	s.wait(t, true)
	old.signal(t, syscall.SIGCONT)
	if line := old.line(t); !strings.HasPrefix(line, "ended "+throwbar.ErrReplaced.Error()) {
		t.Errorf("the old one says %q", line)
	}
	if line := old.line(t); !strings.HasPrefix(line, "stopped "+throwbar.ErrReplaced.Error()) {
		t.Errorf("the old one says %q", line)
	}
	if out := <-s.dispatch(t, "https://a.example/"); out.GetResult() == nil || s.handler.ran("https://a.example/") != 1 {
		t.Errorf("the new one: %v", out)
	}
}

// R4: a command between two links is refused at once if the device is offline, and sent again if it was on its way.
func TestR04ACommandInTheGapIsNotLost(t *testing.T) {
	t.Parallel()
	s := prepare(t, app.Config{})
	s.start(t, nil)
	s.wait(t, true)
	s.proxy.Set(apptest.ToClient, apptest.Fault{Drop: true}) // what the server sends is lost and nobody notices
	out := s.dispatch(t, "https://a.example/")
	apptest.Eventually(t, "it is sent", func() bool { return s.state(t, "https://a.example/") == controlv1.State_STATE_SENT })
	s.proxy.Refuse(true)
	s.proxy.Reset()
	apptest.Eventually(t, "the device is offline", func() bool { return !s.online(t) })
	if refused := <-s.dispatch(t, "https://b.example/"); refused.GetError().GetCode() != commandv1.ErrorCode_ERROR_CODE_OFFLINE {
		t.Errorf("in the gap: %v", refused)
	}
	s.proxy.Mend()
	s.proxy.Refuse(false)
	if o := <-out; o.GetResult() == nil || s.handler.ran("https://a.example/") != 1 {
		t.Errorf("after the gap: %v", o)
	}
	if s.handler.ran("https://b.example/") != 0 || s.pending(t) != 0 {
		t.Error("a refused command ran")
	}
}

// R5: a connection that answers pings while its streams are dead does not count as life, on either side.
func TestR05PingsAreNoLife(t *testing.T) {
	t.Parallel()
	cfg := quick()
	cfg.Lease = 2 * time.Second // many pings pass before it ends, also on a machine that is busy
	cfg.PingAfter, cfg.PingTimeout = 20*time.Millisecond, time.Minute
	s := prepare(t, cfg)
	s.start(t, nil)
	s.wait(t, true)
	s.proxy.Set(apptest.ToServer, apptest.Fault{Data: true})
	s.proxy.Set(apptest.ToClient, apptest.Fault{Data: true})
	before := s.proxy.Passed(apptest.ToClient)
	if st := s.wait(t, false); st.Err == nil || !strings.Contains(st.Err.Error(), "silent") {
		t.Errorf("the device left because of %v", st.Err)
	}
	apptest.Eventually(t, "the server says offline", func() bool { return !s.online(t) })
	if s.proxy.Passed(apptest.ToClient) == before {
		t.Error("no ping passed: the test shows nothing")
	}
	s.proxy.Mend()
	s.wait(t, true)
	apptest.Eventually(t, "it is back", func() bool { return s.online(t) })
}

// R9: both directions carry something in every heartbeat, so that no proxy takes the link for idle.
func TestR09NoDirectionFallsSilent(t *testing.T) {
	t.Parallel()
	cfg := quick()
	cfg.Lease = time.Hour // a machine that is busy is no silence
	s := prepare(t, cfg)
	s.start(t, nil)
	s.wait(t, true)
	for range 5 {
		up, down := s.proxy.Passed(apptest.ToServer), s.proxy.Passed(apptest.ToClient)
		apptest.Eventually(t, "both directions have carried something", func() bool {
			return s.proxy.Passed(apptest.ToServer) > up && s.proxy.Passed(apptest.ToClient) > down
		})
	}
	if n := s.proxy.Accepted(); n != 1 {
		t.Errorf("%d connections while nothing happened", n)
	}
}

// R9, the rest: when a proxy forgets one direction all the same, nothing is lost. A command that comes after the device has
// left for it is refused, which is no loss: the next round is quicker.
func TestR09AForgottenDirectionLosesNothing(t *testing.T) {
	t.Parallel()
	cfg := quick()
	cfg.Lease = 2 * time.Second
	s := prepare(t, cfg)
	s.start(t, nil)
	s.wait(t, true)
	const rounds = 20
	for n := range rounds {
		url := fmt.Sprint("https://a.example/", n)
		s.proxy.Set(apptest.ToClient, apptest.Fault{Hold: true})
		out := s.dispatch(t, url)
		s.wait(t, false)
		s.proxy.Mend()
		s.wait(t, true)
		o := <-out
		if o.GetError().GetCode() == commandv1.ErrorCode_ERROR_CODE_OFFLINE && s.handler.ran(url) == 0 && n < rounds-1 {
			continue
		}
		if o.GetResult() == nil || s.handler.ran(url) != 1 {
			t.Errorf("the command: %v", o)
		}
		return
	}
}

// R12: a device that is killed in the middle of commands runs none twice, and leaves none without an end.
func TestR12KillsLeaveNothingStuck(t *testing.T) {
	t.Parallel()
	kills := 10
	if os.Getenv("THROWBAR_SOAK") != "" {
		kills = 50
	}
	s := prepare(t, app.Config{})
	dir := t.TempDir()
	if err := s.identity.Save(filepath.Join(dir, "identity")); err != nil {
		t.Fatal(err)
	}
	var outcomes []<-chan *controlv1.DeviceOutcome
	for n := range kills {
		p := spawn(t, "device "+dir)
		for line := p.line(t); line != "connected"; line = p.line(t) {
		}
		outcomes = append(outcomes, s.dispatch(t, "https://a.example/wait/"+string(rune('a'+n))))
		for line := p.line(t); !strings.HasPrefix(line, "ran "); line = p.line(t) {
		}
		p.kill()
	}
	p := spawn(t, "device "+dir) // the last life ends what the others began
	for line := p.line(t); line != "connected"; line = p.line(t) {
	}
	for n, out := range outcomes {
		// The effect was there, its outcome was not: nobody knows, and it is not tried again.
		if o := <-out; o.GetError().GetCode() != commandv1.ErrorCode_ERROR_CODE_INTERRUPTED {
			t.Errorf("command %d: %v", n, o)
		}
	}
	raw, err := os.ReadFile(filepath.Join(dir, "effects"))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for line := range strings.Lines(string(raw)) {
		seen[line]++
	}
	if len(seen) != kills || strings.Count(string(raw), "\n") != kills {
		t.Errorf("%d kills, effects %v", kills, seen)
	}
	if n := s.pending(t); n != 0 {
		t.Errorf("%d commands have no end", n)
	}
}

// R14: after any number of cuts both sides agree: every command has an end, and the device runs nothing.
func TestR14BothSidesAgreeAfterCuts(t *testing.T) {
	t.Parallel()
	s := prepare(t, quick())
	s.start(t, nil)
	s.wait(t, true)
	var outcomes []<-chan *controlv1.DeviceOutcome
	urls := []string{}
	for round := range 6 {
		for n := range 10 {
			url := "https://a.example/" + string(rune('a'+round)) + string(rune('a'+n))
			urls = append(urls, url)
			outcomes = append(outcomes, s.dispatch(t, url))
		}
		if round%2 == 0 {
			s.proxy.Set(apptest.Way(round/2%2), apptest.Fault{After: int64(100 * round), Drop: true})
		}
		s.proxy.Renew()
		s.wait(t, true)
	}
	for i, out := range outcomes {
		o := <-out
		ran := s.handler.ran(urls[i])
		if ok := o.GetResult() != nil && ran == 1 || o.GetError().GetCode() == commandv1.ErrorCode_ERROR_CODE_OFFLINE && ran == 0; !ok {
			t.Errorf("%s ran %d times and ended with %v", urls[i], ran, o)
		}
	}
	if n := s.pending(t); n != 0 {
		t.Errorf("%d commands have no end", n)
	}
}

// R18: a device that leaves on purpose is offline at once.
func TestR18AGoodbyeCountsAtOnce(t *testing.T) {
	t.Parallel()
	s := prepare(t, app.Config{})
	stop := s.start(t, nil)
	s.wait(t, true)
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	out := <-s.dispatch(t, "https://a.example/")
	if out.GetError().GetCode() != commandv1.ErrorCode_ERROR_CODE_OFFLINE {
		t.Errorf("after the goodbye: %v", out)
	}
}
