package linktest

import (
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"throwbar.dev/throwbar/app"
	"throwbar.dev/throwbar/app/apptest"
	"throwbar.dev/throwbar/catalog"
	throwbar "throwbar.dev/throwbar/clients/go"
	"throwbar.dev/throwbar/gen"
	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	devicev1 "throwbar.dev/throwbar/gen/go/throwbar/device/v1"
)

// run runs devices of a server. Their handler does nothing.
func run(t *testing.T, address string, identities []throwbar.Identity, change func(*throwbar.DeviceConfig)) *fleet {
	t.Helper()
	catalogue, err := catalog.New(gen.Descriptors)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	f := &fleet{cancel: cancel}
	for _, identity := range identities {
		identity.Server = "http://" + address
		cfg := throwbar.DeviceConfig{
			Identity: identity, Handler: &effects{path: t.TempDir() + "/effects"}, Actions: []string{"openTab"}, Catalogue: catalogue,
		}
		if change != nil {
			change(&cfg)
		}
		d, err := throwbar.NewDevice(cfg)
		if err != nil {
			t.Fatal(err)
		}
		f.all.Go(func() { _ = d.Run(ctx) })
	}
	t.Cleanup(f.stop)
	return f
}

// R8: an idle device costs the server little, and nothing once it is gone.
//
//nolint:paralleltest // it measures memory while the machine is quiet
func TestR08AnIdleDeviceIsCheap(t *testing.T) {
	const devices, most = 500, 80 << 10
	dir := t.TempDir()
	identities := apptest.Seed(t, dir, devices)
	server := spawn(t, "server "+dir)
	address, token := server.line(t), owner(t, dir)
	links := func() float64 { return metric(t, address, token, `throwbar_links{transport="bidi"}`) }
	memory := func() (bytes, goroutines float64) {
		for range 2 { // a pool gives its memory back at the second collection
			server.signal(t, syscall.SIGUSR1)
			server.line(t)
		}
		return metric(t, address, token, "go_memstats_heap_alloc_bytes") + metric(t, address, token, "go_memstats_stack_inuse_bytes"),
			metric(t, address, token, "go_goroutines")
	}
	before, idle := memory()
	f := run(t, address, identities, nil)
	apptest.Eventually(t, "all devices are connected", func() bool { return links() == devices })
	var perDevice, goroutines float64
	soon(func() bool { // what has begun a moment ago holds more for a while
		held, many := memory()
		perDevice, goroutines = (held-before)/devices, (many-idle)/devices
		return (perDevice <= most || raced) && goroutines <= 3.1
	})
	rss := metric(t, address, token, "process_resident_memory_bytes")
	t.Logf("%.1f KiB and %.2f goroutines for each idle device; %.1f MiB resident in all", perDevice/1024, goroutines, rss/(1<<20))
	if perDevice > most && !raced {
		t.Errorf("an idle device costs %.1f KiB, the limit is %d", perDevice/1024, most>>10)
	}
	if goroutines > 3.1 { // two of the connection, one of the stream
		t.Errorf("an idle device costs %.2f goroutines", goroutines)
	}
	f.stop()
	apptest.Eventually(t, "all devices are gone", func() bool {
		return links() == 0 && metric(t, address, token, "go_goroutines") < idle+20
	})
	var stays float64
	soon(func() bool {
		after, _ := memory()
		stays = (after - before) / devices
		return stays <= 8<<10
	})
	if stays > 8<<10 {
		t.Errorf("%.1f KiB of each device stay behind", stays/1024)
	}
}

// soon measures until what it measures is as it should be, or half a minute is over.
func soon(measure func() bool) {
	for late := time.Now().Add(30 * time.Second); !measure() && time.Now().Before(late); {
		<-time.After(100 * time.Millisecond)
	}
}

// Epochs never go back, whatever a crash loses: the server is killed right after a link was opened.
func TestEpochsGrowOverCrashes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	identity := apptest.Seed(t, dir, 1)[0]
	last := uint64(0)
	for range 5 {
		server := spawn(t, "server "+dir)
		g := newGateway(t, "http://"+server.line(t), 0)
		for range 2 {
			welcome := g.dial(t, identity, &devicev1.Hello{}).welcome
			if welcome.GetEpoch() <= last {
				t.Errorf("epoch %d after %d", welcome.GetEpoch(), last)
			}
			last = welcome.GetEpoch()
		}
		server.kill()
	}
}

// During the grace after a start a command for a device that is away is taken on, and runs when the device is back.
func TestACommandForADeviceThatIsAwayWaits(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	identity := apptest.Seed(t, dir, 1)[0]
	cfg := unhurried()
	cfg.DataDir = dir
	s := apptest.Start(t, cfg)
	newGateway(t, s.URL, 0).dial(t, identity, &devicev1.Hello{})
	s.Stop()
	s = apptest.Start(t, cfg)
	done := make(chan *controlv1.DispatchResponse, 1)
	go func() {
		res, err := s.Commands(t).Dispatch(t.Context(), opening(identity.DeviceID, "https://a.example/"))
		if err != nil {
			t.Error(err)
		}
		done <- res
	}()
	apptest.Eventually(t, "the command is accepted", func() bool {
		list, err := s.Commands(t).ListCommands(t.Context(), &controlv1.ListCommandsRequest{PendingOnly: new(true)})
		return err == nil && len(list.GetCommands()) == 1
	})
	l := newGateway(t, s.URL, 0).dial(t, identity, &devicev1.Hello{})
	c := l.hear(t).GetCommand()
	l.say(t, &devicev1.DeviceFrame{Kind: &devicev1.DeviceFrame_Outcome{Outcome: &devicev1.Outcome{
		CommandId: c.GetCommandId(), Outcome: &devicev1.Outcome_Result{Result: &commandv1.Result{
			Kind: &commandv1.Result_OpenTab{OpenTab: &commandv1.OpenTab_Result{Url: "https://a.example/"}},
		}},
	}}})
	if res := <-done; res.GetOutcomes()[0].GetResult() == nil {
		t.Errorf("outcome %v", res)
	}
}

// Metrics are for those who may read, and name no device.
func TestMetricsAreGuardedAndNameNobody(t *testing.T) {
	t.Parallel()
	s := prepare(t, app.Config{})
	s.start(t, nil)
	s.wait(t, true)
	if out := <-s.dispatch(t, "https://a.example/"); out.GetResult() == nil {
		t.Fatal(out)
	}
	get := func(token string) (int, string) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+"/metrics", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, string(body)
	}
	for token, want := range map[string]int{"": 401, "thb_wrong": 401, s.identity.Token: 403} {
		if status, _ := get(token); status != want {
			t.Errorf("status %d, want %d", status, want)
		}
	}
	all := []string{
		`throwbar_links{transport="bidi"} 1`, `throwbar_links_opened_total{transport="bidi"} 1`,
		`throwbar_dispatch_seconds_count{command="openTab",state="succeeded"} 1`, `throwbar_dispatch_sent_age_seconds_count{command="openTab"} 1`,
		"throwbar_link_frames_sent_total", "throwbar_store_write_seconds_count", "throwbar_store_queue", "go_goroutines",
		"process_resident_memory_bytes", "throwbar_http_streams", "throwbar_http_connections", "throwbar_link_queue_frames",
	}
	var body string
	var missing []string
	soon(func() bool { // an answer may be there before it is counted
		_, body = get(s.Owner)
		missing = slices.DeleteFunc(slices.Clone(all), func(want string) bool { return strings.Contains(body, want) })
		return len(missing) == 0
	})
	if len(missing) > 0 {
		t.Errorf("no %q in %s", missing, body)
	}
	if strings.Contains(body, s.identity.DeviceID) || strings.Contains(body, "device 0") || strings.Contains(body, "a.example") {
		t.Error("the metrics name a device or an address")
	}
}
