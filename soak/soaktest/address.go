package soaktest

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
)

// marks hold the addresses that this process has been given.
var marks sync.Map //nolint:gochecknoglobals // they last as long as the process

// FreeAddress finds an address on loopback that a server can have again and again until this process ends: outside of the
// range from which the system takes the ports of connections, and marked as taken for whoever looks for one like this while
// no server listens there. The mark is a socket of UDP, which does not stand in the way of a server.
func FreeAddress(ctx context.Context) (string, error) {
	first, last := outside(os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range"))
	for range 1000 {
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(first+rand.IntN(last-first)))
		mark, err := (&net.ListenConfig{}).ListenPacket(ctx, "udp", address)
		if err != nil {
			continue
		}
		listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
		if err != nil {
			_ = mark.Close()
			continue
		}
		marks.Store(address, mark)
		return address, listener.Close()
	}
	return "", errors.New("no port is free")
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
