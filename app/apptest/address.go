package apptest

import (
	"errors"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
)

// FreeAddress finds an address on loopback that a server can have again and again until the test ends: outside of the range from
// which the system takes the ports of connections, and marked as taken for all tests that look for one, of other packages too,
// while no server listens there. The mark is a socket of UDP, which does not stand in the way of a server and ends with its
// process.
func FreeAddress(t testing.TB) string {
	t.Helper()
	first, last := outside(os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range"))
	for range 1000 {
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(first+rand.IntN(last-first)))
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

// outside gives ports that are not in the range for connections, as Linux writes it: below it, else above it. Where that
// leaves too few, or nothing is written, they are those below the usual range.
func outside(written []byte, err error) (first, last int) {
	const low, usual, highest, enough = 15_000, 32_000, 65_536, 1000
	fields := strings.Fields(string(written))
	if err != nil || len(fields) != 2 {
		return low, usual
	}
	from, err1 := strconv.Atoi(fields[0])
	to, err2 := strconv.Atoi(fields[1])
	switch {
	case errors.Join(err1, err2) != nil || from >= usual:
		return low, usual
	case from >= low+enough:
		return low, from
	case to+1+enough <= highest:
		return to + 1, highest
	default:
		return low, usual
	}
}
