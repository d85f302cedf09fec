package bench_test

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	throwbar "throwbar.dev/throwbar/clients/go"
	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	"throwbar.dev/throwbar/gen/go/throwbar/control/v1/controlv1connect"
	"throwbar.dev/throwbar/soak/soaktest"
)

// rounds is how often product and floor take turns, so that whatever else the machine does meets both.
const (
	rounds    = 10
	perRound  = 100 // commands at least
	perCaller = 25  // commands of each of many callers
)

type handler struct {
	commandv1.DeclineTabs
	commandv1.DeclineCustom
}

// ActivateTab answers at once.
func (handler) ActivateTab(context.Context, *commandv1.ActivateTab) (*commandv1.ActivateTab_Result, error) {
	return &commandv1.ActivateTab_Result{Activated: true}, nil
}

// runProductDevice is a device of the Go library that keeps its journal in a file.
func runProductDevice(ctx context.Context, s *soaktest.Stage) error {
	ctx, dir := s.Listen(ctx, func(string) any { return nil }), s.Args[0]
	identity, err := throwbar.LoadIdentity(filepath.Join(dir, "identity"))
	if err != nil {
		return err
	}
	journal, err := throwbar.OpenJournal(filepath.Join(dir, "journal"))
	if err != nil {
		return err
	}
	var once sync.Once
	device, err := throwbar.NewDevice(throwbar.DeviceConfig{
		Identity: identity, Handler: handler{}, Actions: []string{"activateTab"}, BootTag: "b1", Journal: journal,
		OnStatus: func(st throwbar.Status) {
			if st.Connected {
				once.Do(s.Ready)
			}
		},
	})
	if err != nil {
		return err
	}
	return device.Run(ctx)
}

func request(device string) *controlv1.DispatchRequest {
	return &controlv1.DispatchRequest{Action: &commandv1.Action{
		Kind: &commandv1.Action_ActivateTab{ActivateTab: &commandv1.ActivateTab{TabId: device + "_tb1-1"}},
	}}
}

// BenchmarkRoundTrip prints the median round trip of a durable command beside that of the bare relay. Servers and
// devices are processes of their own, as they are in use; the callers are this one.
func BenchmarkRoundTrip(b *testing.B) {
	p := startProduct(b, 1)
	product, device := p.client.Commands, p.startDevice(b)
	floor := startRelay(b)
	for _, concurrency := range []int{1, 64} {
		b.Run(fmt.Sprintf("callers=%d", concurrency), func(b *testing.B) {
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
	return spread(b, client, device, concurrency, max(perRound, concurrency*perCaller))
}

// spread shares n calls between callers.
func spread(b *testing.B, client controlv1connect.CommandServiceClient, device string, concurrency, n int) sample {
	b.Helper()
	var mu sync.Mutex
	var out sample
	var next atomic.Int64
	var callers sync.WaitGroup
	start := time.Now()
	for range concurrency {
		callers.Go(func() {
			for next.Add(1) <= int64(n) {
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
	if b.Failed() {
		b.FailNow()
	}
	return out
}
