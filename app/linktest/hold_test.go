package linktest

import (
	"context"
	"syscall"
	"testing"

	"throwbar.dev/throwbar/app/apptest"
	"throwbar.dev/throwbar/catalog"
	throwbar "throwbar.dev/throwbar/clients/go"
	"throwbar.dev/throwbar/gen"
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
	held, many := memory()
	rss := metric(t, address, token, "process_resident_memory_bytes")
	perDevice, goroutines := (held-before)/devices, (many-idle)/devices
	t.Logf("%.1f KiB and %.2f goroutines for each idle device; %.1f MiB resident in all", perDevice/1024, goroutines, rss/(1<<20))
	if perDevice > most {
		t.Errorf("an idle device costs %.1f KiB, the limit is %d", perDevice/1024, most>>10)
	}
	if goroutines > 3.1 { // two of the connection, one of the stream
		t.Errorf("an idle device costs %.2f goroutines", goroutines)
	}
	f.stop()
	apptest.Eventually(t, "all devices are gone", func() bool {
		return links() == 0 && metric(t, address, token, "go_goroutines") < idle+20
	})
	if after, _ := memory(); after > before+devices*8<<10 {
		t.Errorf("%.1f KiB of each device stay behind", (after-before)/devices/1024)
	}
}
