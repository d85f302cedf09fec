package app

import (
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	throwbar "throwbar.dev/throwbar/clients/go"
)

// A generated certificate is renewed before its end, also while the server runs, and always of the same key.
func TestSecurityRow05GeneratedCertificatesAreRenewedOfTheSameKey(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := time.Now()
	now := func() time.Time { return at }
	log := slog.New(slog.DiscardHandler)
	g, err := generate(dir, []string{"b.test", "a.test", "192.0.2.1"}, now, log)
	if err != nil {
		t.Fatal(err)
	}
	first := g.get(t.Context()).Leaf
	key := throwbar.KeyFingerprint(first)
	for range 30 { // years
		at = at.Add(50 * 24 * time.Hour)
		leaf := g.get(t.Context()).Leaf
		if left := leaf.NotAfter.Sub(at); left < renewBefore || throwbar.KeyFingerprint(leaf) != key || at.Before(leaf.NotBefore) {
			t.Fatalf("%s before its end: key %s, was %s", left, throwbar.KeyFingerprint(leaf), key)
		}
	}
	last := g.get(t.Context()).Leaf
	if last.SerialNumber.Cmp(first.SerialNumber) == 0 {
		t.Error("nothing was renewed")
	}
	again, err := generate(dir, []string{"192.0.2.1", "a.test", "b.test", "a.test"}, now, log)
	if err != nil || again.get(t.Context()).Leaf.SerialNumber.Cmp(last.SerialNumber) != 0 {
		t.Errorf("a start takes the one that was kept: %v", err)
	}
	other, err := generate(dir, []string{"c.test"}, now, log)
	if err != nil || !slices.Equal(namesOf(other.get(t.Context()).Leaf), []string{"c.test"}) || other.fingerprint() != key {
		t.Errorf("other names are another certificate of the same key: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, certificateFile), []byte("nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	if mended, err := generate(dir, []string{"c.test"}, now, log); err != nil || mended.fingerprint() != key {
		t.Errorf("a certificate that is broken is made again: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, keyFile), []byte("nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := generate(dir, []string{"c.test"}, now, log); err == nil {
		t.Error("a key that is broken was replaced without a word")
	}
}

// Whatever the flags said: a listener that others can reach is not served in the clear.
func TestSecurityRow05TheServerItselfRefusesAPublicListener(t *testing.T) {
	t.Parallel()
	s := &Server{}
	for address, want := range map[string]bool{"127.0.0.1": true, "::1": true, "0.0.0.0": false, "::": false, "192.0.2.1": false, "10.0.0.1": false} {
		if got := s.private(&net.TCPAddr{IP: net.ParseIP(address), Port: 1}) == nil; got != want {
			t.Errorf("%s: served %v", address, got)
		}
	}
}

// Who may call the server by which name.
func TestSecurityRow07HostsOfAListener(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		flags   listenFlags
		names   []string // of its certificate
		address string
		has     []string
		hasNot  []string
		url     string
	}{
		"loopback": {
			flags: listenFlags{address: "127.0.0.1:3913"}, address: "127.0.0.1:3913",
			has: []string{"127.0.0.1:3913", "localhost:3913", "[::1]:3913"}, hasNot: []string{"127.0.0.1", "localhost", "0.0.0.0:3913"},
			url: "http://127.0.0.1:3913",
		},
		"behind a proxy": {
			flags: listenFlags{address: "127.0.0.1:3913", hosts: []string{"Proxy.example", "other.example:8443"}}, address: "127.0.0.1:3913",
			has: []string{"Proxy.example", "proxy.example:3913", "other.example:8443"}, hasNot: []string{"other.example:3913", "other.example"},
			url: "http://127.0.0.1:3913",
		},
		"everywhere, with a certificate": {
			flags: listenFlags{address: ":443"}, names: []string{"throwbar.example"}, address: "[::]:443",
			has:    []string{"throwbar.example", "throwbar.example:443", "localhost", "127.0.0.1:443"},
			hasNot: []string{":443", "[::]:443", "0.0.0.0:443"}, url: "https://throwbar.example:443",
		},
		"one address": {
			flags: listenFlags{address: "192.0.2.1:3913"}, names: []string{"192.0.2.1"}, address: "192.0.2.1:3913",
			has: []string{"192.0.2.1:3913"}, hasNot: []string{"localhost:3913", "127.0.0.1:3913"}, url: "https://192.0.2.1:3913",
		},
	} {
		host, port, err := net.SplitHostPort(row.flags.address)
		if err != nil {
			t.Fatal(err)
		}
		l := &listening{flags: row.flags, host: host, port: port, names: row.names}
		if row.names != nil {
			l.id = &generated{}
		}
		address, err := net.ResolveTCPAddr("tcp", row.address)
		if err != nil {
			t.Fatal(err)
		}
		hosts := l.rules(address).Hosts
		for _, h := range row.has {
			if !slices.Contains(hosts, h) {
				t.Errorf("%s: %s is not among %v", name, h, hosts)
			}
		}
		for _, h := range row.hasNot {
			if slices.Contains(hosts, h) {
				t.Errorf("%s: %s is among %v", name, h, hosts)
			}
		}
		if got := l.url(address); got != row.url {
			t.Errorf("%s: %s", name, got)
		}
	}
}
