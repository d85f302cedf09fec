package bench_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"throwbar.dev/throwbar/app"
	"throwbar.dev/throwbar/app/apptest"
	throwbar "throwbar.dev/throwbar/clients/go"
	"throwbar.dev/throwbar/gen/go/throwbar/control/v1/controlv1connect"
	"throwbar.dev/throwbar/server/rpc"
	"throwbar.dev/throwbar/soak/soaktest"
	"throwbar.dev/throwbar/store"
)

// The ways to run a server that are compared.
const (
	wayBare    = "bare"    // nothing is written into the audit record
	wayEffects = "effects" // as serve does by default
	wayAll     = "all"     // serve --audit-sync all
)

// serveWay is the server of the product, with parts taken out. Its arguments are an address, a data folder and a way.
func serveWay(ctx context.Context, s *soaktest.Stage) error {
	ctx = s.Listen(ctx, func(string) any { return nil })
	listen, dir, way := s.Args[0], s.Args[1], s.Args[2]
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", listen)
	if err != nil {
		return err
	}
	server, err := app.NewServer(ctx, app.Config{
		DataDir: dir, Listener: rpc.Listener{Hosts: rpc.LoopbackHosts(listen)}, AuditSyncAll: way == wayAll,
		Log: slog.New(slog.DiscardHandler), Parts: app.Parts{Unaudited: way == wayBare},
	})
	if err != nil {
		return err
	}
	return server.Serve(ctx, listener, s.Ready)
}

// startWay starts a server in one of the ways, and its device.
func startWay(b *testing.B, way string) (controlv1connect.CommandServiceClient, string) {
	b.Helper()
	dir, listen := b.TempDir(), apptest.FreeAddress(b)
	p := &product{url: "http://" + listen}
	var err error
	p.devices, err = apptest.Enrol(b.Context(), store.Config{Dir: dir}, p.url, 1)
	check(b, err)
	spawn(b, roleWay, listen, dir, way)
	token, err := os.ReadFile(filepath.Join(dir, "owner.token"))
	check(b, err)
	p.client, err = throwbar.New(throwbar.Config{Server: p.url, Token: strings.TrimSpace(string(token))})
	check(b, err)
	b.Cleanup(p.client.CloseIdle)
	return p.client.Commands, p.startDevice(b)
}

// BenchmarkOverhead prints what the audit record adds to the round trip of a durable command: the same server with it, in
// both ways, beside the same server without, which take turns. What policy takes is in all of them: it is measured by
// itself (server/policy).
func BenchmarkOverhead(b *testing.B) {
	type server struct {
		client controlv1connect.CommandServiceClient
		device string
	}
	ways := []string{wayBare, wayEffects, wayAll}
	servers := map[string]server{}
	for _, way := range ways {
		client, device := startWay(b, way)
		servers[way] = server{client, device}
	}
	for _, concurrency := range []int{1, 64} {
		b.Run(fmt.Sprintf("callers=%d", concurrency), func(b *testing.B) {
			samples := map[string]*sample{}
			for _, way := range ways {
				samples[way] = &sample{}
				measure(b, servers[way].client, servers[way].device, concurrency) // warms up
			}
			b.ResetTimer()
			for range b.N {
				for round := range 3 * rounds {
					for n := range ways { // each comes after each other as often
						way := ways[(n+round)%len(ways)]
						samples[way].add(measure(b, servers[way].client, servers[way].device, concurrency))
					}
				}
			}
			b.ReportMetric(0, "ns/op") // a turn of the loop is no round trip
			bare := samples[wayBare]
			b.ReportMetric(micros(bare.median()), "µs-bare-p50")
			for _, way := range ways[1:] {
				b.ReportMetric(float64(samples[way].median())/float64(bare.median()), way+"-p50-ratio")
				b.ReportMetric(samples[way].perSecond()/bare.perSecond(), way+"-throughput-ratio")
			}
		})
	}
}
