package app_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"throwbar.dev/throwbar/app"
	"throwbar.dev/throwbar/clients/cli"
	library "throwbar.dev/throwbar/clients/go"
)

// pair is a key and a self-signed certificate in files.
type pair struct {
	cert, key string
	leaf      *x509.Certificate
}

func newPair(t *testing.T, dir, name string, from, until time.Time, names ...string) pair {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), NotBefore: from, NotAfter: until, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, n := range names {
		if ip := net.ParseIP(n); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, n)
		}
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(raw)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	p := pair{cert: filepath.Join(dir, name+".pem"), key: filepath.Join(dir, name+".key"), leaf: leaf}
	write(t, p.cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}), 0o644)
	write(t, p.key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded}), 0o600)
	return p
}

func write(t *testing.T, path string, raw []byte, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, raw, mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

// output is what a program writes, safe to read meanwhile.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
	wake chan struct{}
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n, err := o.text.Write(p)
	select {
	case o.wake <- struct{}{}:
	default:
	}
	return n, err
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// started is a run of the verb serve.
type started struct {
	out, errors *output
	code        int    // once ended
	url         string // if it listens
	key         string
	stop        func()
}

// serveWith runs the program's own verb until it listens or ends.
func serveWith(t *testing.T, dir string, args ...string) *started {
	t.Helper()
	s := &started{out: &output{wake: make(chan struct{}, 1)}, errors: &output{wake: make(chan struct{}, 1)}}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan int, 1)
	env := func(name string) string { return map[string]string{"THROWBAR_DATA_DIR": dir, "HOME": dir}[name] }
	go func() {
		ended <- app.Run(ctx, append([]string{"serve", "--data-dir", dir}, args...), env, strings.NewReader(""), s.out, s.errors)
	}()
	s.stop = sync.OnceFunc(func() {
		cancel()
		s.code = <-ended
	})
	t.Cleanup(s.stop)
	listens := regexp.MustCompile(`listens on (\S+)\n  data [^\n]*\n  token [^\n]*\n(?:  key    (\S+)\n)?`)
	for {
		select {
		case code := <-ended:
			s.code = code
			s.stop = func() {}
			ended <- code
			return s
		case <-s.out.wake:
			if m := listens.FindStringSubmatch(s.out.String()); m != nil {
				s.url, s.key = m[1], m[2]
				return s
			}
		case <-time.After(5 * time.Minute): // a name that nobody knows takes long where nobody answers
			t.Fatalf("neither listens nor ends: %s%s", s.out, s.errors)
		}
	}
}

// Row 5: no address that others can reach without TLS; and a certificate that clients would not accept is told at the start.
func TestSecurityRow05StartMatrix(t *testing.T) {
	t.Parallel()
	files := t.TempDir()
	now := time.Now()
	good := newPair(t, files, "good", now.Add(-time.Hour), now.Add(time.Hour), "throwbar.test")
	other := newPair(t, files, "other", now.Add(-time.Hour), now.Add(time.Hour), "throwbar.test")
	expired := newPair(t, files, "expired", now.Add(-2*time.Hour), now.Add(-time.Hour), "throwbar.test")
	early := newPair(t, files, "early", now.Add(time.Hour), now.Add(2*time.Hour), "throwbar.test")
	nameless := newPair(t, files, "nameless", now.Add(-time.Hour), now.Add(time.Hour), "*.throwbar.test")
	broken := filepath.Join(files, "broken.pem")
	write(t, broken, []byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"), 0o600)
	open := filepath.Join(files, "open.key")
	raw, err := os.ReadFile(good.key)
	if err != nil {
		t.Fatal(err)
	}
	write(t, open, raw, 0o644)
	own := lanAddress(t)
	addresses := map[string]bool{ // whether others can reach it
		"127.0.0.1:0": false, "[::1]:0": false, "localhost:0": false, "127.0.0.9:0": false,
		"0.0.0.0:0": true, "[::]:0": true, ":0": true, own + ":0": true, "throwbar.test:0": true, "localhost.:0": true, "[::ffff:0.0.0.0]:0": true,
	}
	ways := map[string]struct {
		args []string
		want string // what it says; it listens if that is empty
		lan  bool   // only where others can reach it
	}{
		"no TLS":           {nil, "needs TLS", true},
		"certificate":      {[]string{"--tls-cert", good.cert, "--tls-key", good.key}, "", false},
		"generated":        {[]string{"--tls-generate", "--allow-host", "throwbar.test"}, "", false},
		"broken":           {[]string{"--tls-cert", broken, "--tls-key", good.key}, "no certificate and its key", false},
		"missing":          {[]string{"--tls-cert", broken + "x", "--tls-key", good.key}, "cannot be read", false},
		"expired":          {[]string{"--tls-cert", expired.cert, "--tls-key", expired.key}, "has expired", false},
		"not yet":          {[]string{"--tls-cert", early.cert, "--tls-key", early.key}, "not valid before", false},
		"another key":      {[]string{"--tls-cert", good.cert, "--tls-key", other.key}, "no certificate and its key", false},
		"a key for all":    {[]string{"--tls-cert", good.cert, "--tls-key", open}, "everybody on this machine", false},
		"half":             {[]string{"--tls-cert", good.cert}, "belong together", false},
		"both":             {[]string{"--tls-cert", good.cert, "--tls-key", good.key, "--tls-generate"}, "does not go with", false},
		"allowed hosts":    {[]string{"--allow-host", "throwbar.test"}, "needs TLS", true},
		"a pattern's name": {[]string{"--tls-cert", nameless.cert, "--tls-key", nameless.key}, "", false},
	}
	for address, lan := range addresses {
		for name, way := range ways {
			t.Run(address+" "+name, func(t *testing.T) {
				t.Parallel()
				s := serveWith(t, t.TempDir(), append([]string{"--listen", address}, way.args...)...)
				defer s.stop()
				want := way.want
				if way.lan && !lan {
					want = ""
				}
				if name == "a pattern's name" && lan && address != own+":0" && !strings.HasPrefix(address, "throwbar") && !strings.HasPrefix(address, "localhost") {
					want = "--allow-host"
				}
				said := strings.TrimSpace(s.errors.String())
				resolves := !strings.HasPrefix(address, "throwbar") && !strings.HasPrefix(address, "localhost.")
				switch {
				case want == "" && !resolves: // it gets as far as the system, which does not know the name
					if s.code == 0 && s.url == "" || strings.Contains(said, "needs TLS") && len(way.args) == 0 {
						t.Errorf("%q %q", s.url, said)
					}
				case want == "" && s.url == "":
					t.Errorf("it does not start: %q", said)
				case want != "" && (s.url != "" || s.code != cli.Invalid || !strings.Contains(said, want) || strings.Contains(said, "\n")):
					t.Errorf("exit code %d, at %q: %q, want %q", s.code, s.url, said, want)
				}
			})
		}
	}
}

// lanAddress is an address of this machine that is no loopback one.
func lanAddress(t *testing.T) string {
	t.Helper()
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addresses {
		if network, ok := a.(*net.IPNet); ok && !network.IP.IsLoopback() && network.IP.To4() != nil {
			return network.IP.String()
		}
	}
	return "192.0.2.1" // none: it cannot be bound, and is refused before that
}

func token(t *testing.T, dir string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(dir, "owner.token"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(raw))
}

// presented is the certificate that a server shows now.
func presented(t *testing.T, url string, protocols ...string) tls.ConnectionState {
	t.Helper()
	conn, err := (&tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true, NextProtos: protocols}}).
		DialContext(t.Context(), "tcp", strings.TrimPrefix(url, "https://"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	secure, ok := conn.(*tls.Conn)
	if !ok {
		t.Fatal("no TLS")
	}
	return secure.ConnectionState()
}

func TestSecurityRow05TLSOfTheListener(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := serveWith(t, dir, "--listen", "127.0.0.1:0", "--tls-generate")
	if !strings.HasPrefix(s.url, "https://") || !strings.HasPrefix(s.key, "sha256:") {
		t.Fatalf("%q %q: %s", s.url, s.key, s.errors)
	}
	for protocol, want := range map[string]string{"h2": "h2", "http/1.1": "http/1.1"} {
		if state := presented(t, s.url, protocol); state.NegotiatedProtocol != want || state.Version != tls.VersionTLS13 {
			t.Errorf("%s: %q, version %x", protocol, state.NegotiatedProtocol, state.Version)
		}
	}
	for _, version := range []uint16{tls.VersionTLS10, tls.VersionTLS11, tls.VersionTLS12} {
		conn, err := (&tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS10, MaxVersion: version}}).
			DialContext(t.Context(), "tcp", strings.TrimPrefix(s.url, "https://"))
		if err == nil {
			_ = conn.Close()
			t.Errorf("version %x is spoken", version)
		}
	}
	res, err := http.Get(strings.Replace(s.url, "https://", "http://", 1) + "/metrics")
	if err == nil {
		if _ = res.Body.Close(); res.StatusCode != http.StatusBadRequest {
			t.Errorf("in the clear: %s", res.Status)
		}
	}
	for _, name := range []string{"tls-key.pem", "tls-certificate.pem"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	s.stop()
	if err := os.Remove(filepath.Join(dir, "tls-certificate.pem")); err != nil {
		t.Fatal(err)
	}
	again := serveWith(t, dir, "--listen", "127.0.0.1:0", "--tls-generate", "--allow-host", "throwbar.test")
	if again.key != s.key {
		t.Errorf("another certificate is of another key: %s, then %s", s.key, again.key)
	}
	if leaf := presented(t, again.url).PeerCertificates[0]; leaf.VerifyHostname("throwbar.test") != nil || leaf.VerifyHostname("localhost") != nil {
		t.Errorf("it is for %v %v", leaf.DNSNames, leaf.IPAddresses)
	}
	again.stop()
	if err := os.Chmod(filepath.Join(dir, "tls-key.pem"), 0o644); err != nil {
		t.Fatal(err)
	}
	if s := serveWith(t, dir, "--listen", "127.0.0.1:0", "--tls-generate"); s.code != cli.Invalid || !strings.Contains(s.errors.String(), "everybody on this machine") {
		t.Errorf("a key that everybody can read: %d %s", s.code, s.errors)
	}
}

// A certificate that is replaced is shown from then on; one that cannot be used is not.
func TestSecurityRow05CertificatesAreReadAgain(t *testing.T) {
	t.Parallel()
	dir, files := t.TempDir(), t.TempDir()
	now := time.Now()
	first := newPair(t, files, "tls", now.Add(-time.Hour), now.Add(time.Hour), "throwbar.test")
	s := serveWith(t, dir, "--listen", "127.0.0.1:0", "--tls-cert", first.cert, "--tls-key", first.key)
	shown := func() string { return library.KeyFingerprint(presented(t, s.url).PeerCertificates[0]) }
	if want := library.KeyFingerprint(first.leaf); s.key != want || shown() != want {
		t.Fatalf("%s is printed, %s shown, %s in the file", s.key, shown(), want)
	}
	write(t, first.cert, []byte("half a file"), 0o644)
	eventually(t, "the broken one is told", func() bool {
		_ = shown()
		return strings.Contains(s.errors.String(), "the one before stays")
	})
	if shown() != library.KeyFingerprint(first.leaf) {
		t.Error("a broken certificate took the place of one that works")
	}
	second := newPair(t, files, "tls", now.Add(-time.Hour), now.Add(2*time.Hour), "throwbar.test")
	eventually(t, "the new one is shown", func() bool { return shown() == library.KeyFingerprint(second.leaf) })
}

func eventually(t *testing.T, what string, check func() bool) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !check() {
		if <-tick.C; time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
	}
}
