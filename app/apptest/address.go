package apptest

import (
	"math/rand/v2"
	"net"
	"strconv"
	"testing"
)

// FreeAddress finds an address on loopback that a server can have again and again until the test ends: below the range from
// which the system takes the ports of connections, and marked as taken for all tests that look for one, of other packages too,
// while no server listens there. The mark is a socket of UDP, which does not stand in the way of a server and ends with its
// process.
func FreeAddress(t testing.TB) string {
	t.Helper()
	for range 100 {
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(15_000+rand.IntN(17_000)))
		mark, err := (&net.ListenConfig{}).ListenPacket(t.Context(), "udp", address)
		if err != nil {
			continue
		}
		listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", address)
		if err != nil {
			_ = mark.Close()
			continue
		}
		if err := listener.Close(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = mark.Close() })
		return address
	}
	t.Fatal("no port is free")
	return ""
}
