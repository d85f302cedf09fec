package bench_test

import (
	"cmp"
	"context"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"throwbar.dev/throwbar/app"
	"throwbar.dev/throwbar/app/apptest"
	throwbar "throwbar.dev/throwbar/clients/go"
	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	"throwbar.dev/throwbar/gen/go/throwbar/control/v1/controlv1connect"
	devicev1 "throwbar.dev/throwbar/gen/go/throwbar/device/v1"
)

// rounds is how often product and floor take turns, so that whatever else the machine does meets both.
const (
	rounds   = 10
	perRound = 100
)

type handler struct {
	commandv1.DeclineTabs
	commandv1.DeclineCustom
}

// ActivateTab answers at once.
func (handler) ActivateTab(context.Context, *commandv1.ActivateTab) (*commandv1.ActivateTab_Result, error) {
	return &commandv1.ActivateTab_Result{Activated: true}, nil
}

// startProduct runs the whole server with one device of the Go library, which keeps its journal in a file.
func startProduct(b *testing.B) (controlv1connect.CommandServiceClient, string) {
	b.Helper()
	s := apptest.Start(b, app.Config{})
	code, err := s.Devices(b).CreatePairingCode(b.Context(), &controlv1.CreatePairingCodeRequest{})
	if err != nil {
		b.Fatal(err)
	}
	identity, err := throwbar.Pair(b.Context(), s.URL, throwbar.Pairing{
		Code: code.GetCode(), Name: "bench", Kind: devicev1.Kind_KIND_SERVER,
	})
	if err != nil {
		b.Fatal(err)
	}
	journal, err := throwbar.OpenJournal(filepath.Join(b.TempDir(), "journal"))
	if err != nil {
		b.Fatal(err)
	}
	up := make(chan struct{})
	var once sync.Once
	device, err := throwbar.NewDevice(throwbar.DeviceConfig{
		Identity: identity, Handler: handler{}, Actions: []string{"activateTab"}, BootTag: "b1", Journal: journal,
		OnStatus: func(st throwbar.Status) {
			if st.Connected {
				once.Do(func() { close(up) })
			}
		},
	})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(b.Context()))
	ended := make(chan error, 1)
	go func() { ended <- device.Run(ctx) }()
	b.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			b.Error(err)
		}
		_ = journal.Close()
	})
	<-up
	client, err := throwbar.New(throwbar.Config{Server: s.URL, Token: s.Owner})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(client.CloseIdle)
	return client.Commands, identity.DeviceID
}

func request(device string) *controlv1.DispatchRequest {
	return &controlv1.DispatchRequest{Action: &commandv1.Action{
		Kind: &commandv1.Action_ActivateTab{ActivateTab: &commandv1.ActivateTab{TabId: device + "_tb1-1"}},
	}}
}

// BenchmarkRoundTrip prints the median round trip of a durable command beside that of the bare relay.
func BenchmarkRoundTrip(b *testing.B) {
	for _, concurrency := range []int{1, 64} {
		name := map[int]string{1: "one-at-a-time", 64: "64-at-a-time"}[concurrency]
		b.Run(name, func(b *testing.B) {
			product, device := startProduct(b)
			floor := startRelay(b)
			measure(b, product, device, concurrency) // both warm up
			measure(b, floor, device, concurrency)
			var ours, bare sample
			b.ResetTimer()
			for range b.N {
				for range rounds {
					ours.add(measure(b, product, device, concurrency))
					bare.add(measure(b, floor, device, concurrency))
				}
			}
			b.ReportMetric(0, "ns/op") // a turn of the loop is no round trip
			b.ReportMetric(micros(ours.median()), "µs-product-p50")
			b.ReportMetric(micros(bare.median()), "µs-relay-p50")
			b.ReportMetric(float64(ours.median())/float64(bare.median()), "p50-ratio")
			b.ReportMetric(ours.perSecond()/bare.perSecond(), "throughput-ratio")
		})
	}
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }

// sample is many round trips.
type sample struct {
	each []time.Duration
	wall time.Duration
}

func (s *sample) add(other sample) {
	s.each = append(s.each, other.each...)
	s.wall += other.wall
}

func (s *sample) median() time.Duration {
	slices.SortFunc(s.each, cmp.Compare[time.Duration])
	return s.each[len(s.each)/2]
}

func (s *sample) perSecond() float64 { return float64(len(s.each)) / s.wall.Seconds() }

// measure makes one round of calls.
func measure(b *testing.B, client controlv1connect.CommandServiceClient, device string, concurrency int) sample {
	b.Helper()
	var mu sync.Mutex
	var out sample
	var callers sync.WaitGroup
	start := time.Now()
	for range concurrency {
		callers.Go(func() {
			for range perRound {
				began := time.Now()
				res, err := client.Dispatch(b.Context(), request(device))
				took := time.Since(began)
				if err != nil || !res.GetOutcomes()[0].GetResult().GetActivateTab().GetActivated() {
					b.Errorf("dispatch: %v, %v", res, err)
					return
				}
				mu.Lock()
				out.each = append(out.each, took)
				mu.Unlock()
			}
		})
	}
	callers.Wait()
	out.wall = time.Since(start)
	return out
}
