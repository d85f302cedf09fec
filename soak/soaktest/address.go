package soaktest

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
)

// FreeAddress finds an address on loopback that a server can have again and again: below the range from which the
// system takes the ports of connections, so that nobody gets it between two lives of a server.
func FreeAddress(ctx context.Context) (string, error) {
	for range 100 {
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(15_000+rand.IntN(17_000)))
		listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
		if err == nil {
			return address, listener.Close()
		}
	}
	return "", errors.New("no port is free")
}
