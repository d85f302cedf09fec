package bench_test

import (
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"throwbar.dev/throwbar/app/apptest"
	"throwbar.dev/throwbar/soak/soaktest"
)

const (
	idleDevices = 2000
	fleetSpread = time.Second
)

// BenchmarkIdleDevice prints what the server holds for each device that is connected and idle, beside a server that
// holds as many bare streams.
func BenchmarkIdleDevice(b *testing.B) {
	for range b.N {
		listen := apptest.FreeAddress(b)
		bare := weigh(b, spawn(b, soaktest.RoleBare, listen), func() *soaktest.Process {
			return spawn(b, soaktest.RoleBareFleet, listen, strconv.Itoa(idleDevices))
		})
		p := startProduct(b, idleDevices)
		file := filepath.Join(b.TempDir(), "identities")
		check(b, soaktest.WriteIdentities(file, p.devices))
		ours := weigh(b, p.server, func() *soaktest.Process {
			return spawn(b, soaktest.RoleFleet, file, "0", strconv.Itoa(idleDevices), fleetSpread.String())
		})
		b.ReportMetric(0, "ns/op")
		b.ReportMetric(ours, "KiB/device")
		b.ReportMetric(bare, "KiB/bare-stream")
		b.ReportMetric(ours/bare, "memory-ratio")
	}
}

// weigh is by how many KiB for each device a server grows when a fleet connects, after a collection.
func weigh(b *testing.B, server *soaktest.Process, connect func() *soaktest.Process) float64 {
	b.Helper()
	before := held(b, server)
	fleet := connect()
	defer fleet.Kill()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		st, err := soaktest.AskStanding(b.Context(), fleet)
		check(b, err)
		if st.Connected == idleDevices {
			break
		}
		select {
		case <-tick.C:
		case <-fleet.Ended():
			b.Fatal("the fleet is gone")
		}
	}
	return float64(held(b, server)-before) / idleDevices
}

func held(b *testing.B, server *soaktest.Process) int64 {
	b.Helper()
	_, err := soaktest.AskHeap(b.Context(), server)
	check(b, err)
	now, _ := server.Memory()
	if now == 0 {
		b.Skip("this system keeps no books about memory")
	}
	return now
}
