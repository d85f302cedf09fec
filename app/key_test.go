package app_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"throwbar.dev/throwbar/app"
	"throwbar.dev/throwbar/clients/cli"
	library "throwbar.dev/throwbar/clients/go"
	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
)

// canary is a server with another key that writes down what it is sent.
type canary struct {
	url string
	key string

	mu   sync.Mutex
	seen []string // guarded by mu
}

func newCanary(t *testing.T) *canary {
	t.Helper()
	c := &canary{}
	pair := newPair(t, t.TempDir(), "canary", time.Now().Add(-time.Hour), time.Now().Add(time.Hour), "127.0.0.1", "localhost")
	cert, err := tls.LoadX509KeyPair(pair.cert, pair.key)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	web := &http.Server{
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{cert}}, ErrorLog: log.New(io.Discard, "", 0),
		Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.seen = append(c.seen, r.Method+" "+r.URL.Path+" "+r.Header.Get("Authorization"))
		}),
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = web.ServeTLS(listener, "", "")
	}()
	t.Cleanup(func() {
		_ = web.Close()
		<-ended
	})
	c.url, c.key = "https://"+listener.Addr().String(), library.KeyFingerprint(pair.leaf)
	return c
}

func (c *canary) requests() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.seen
}

// runs runs a verb against a server.
func runs(ctx context.Context, dir string, args ...string) (int, string, string) {
	var out, errs bytes.Buffer
	env := func(name string) string {
		return map[string]string{"THROWBAR_DATA_DIR": dir, "HOME": dir, "XDG_CACHE_HOME": dir + "/cache"}[name]
	}
	code := app.Run(ctx, args, env, strings.NewReader(""), &out, &errs)
	return code, out.String(), errs.String()
}

// The programs that speak to a server know it by its key, and send nothing to another one.
func TestSecurityRow05ClientsKnowAServerByItsKey(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := serveWith(t, dir, "--listen", "127.0.0.1:0", "--tls-generate")
	other := newCanary(t)
	tokenFile := dir + "/owner.token"
	to := func(url, key string, args ...string) []string {
		return append(args, "--server", url, "--token-file", tokenFile, "--server-key", key)
	}
	if code, out, errs := runs(t.Context(), dir, to(s.url, s.key, "devices")...); code != 0 {
		t.Errorf("the right key: %d %s %s", code, out, errs)
	}
	if code, out, errs := runs(t.Context(), dir, to(s.url, strings.ToUpper(s.key), "doctor")...); code != 0 || !strings.Contains(out, "its key is the one expected") {
		t.Errorf("doctor with the right key: %d %s %s", code, out, errs)
	}
	for _, verb := range []string{"devices", "pair", "doctor", "sim", "watch", "history"} {
		code, out, errs := runs(t.Context(), dir, to(other.url, s.key, verb)...)
		said := out + errs
		if code == 0 || !strings.Contains(said, s.key) || !strings.Contains(said, other.key) {
			t.Errorf("%s with the key of another server: %d %s", verb, code, said)
		}
	}
	if code, out, _ := runs(t.Context(), dir, to(other.url, s.key, "doctor")...); code != cli.Failed || !strings.Contains(out, "failed   tls") || !strings.Contains(out, "ok       connection") {
		t.Errorf("doctor does not say which hop failed: %d %s", code, out)
	}
	if code, out, errs := runs(t.Context(), dir, "doctor", "--server", s.url, "--token-file", tokenFile); code != cli.Failed ||
		!strings.Contains(out, "failed   tls") || !strings.Contains(out, s.key) {
		t.Errorf("doctor without a key: %d %s %s", code, out, errs)
	}
	copied := dir + "/copy.token"
	write(t, copied, []byte(token(t, dir)), 0o600)
	plain := strings.Replace(s.url, "https://", "http://", 1)
	if code, _, errs := runs(t.Context(), dir, to(plain, s.key, "devices")...); code != cli.Invalid || !strings.Contains(errs, "needs https") {
		t.Errorf("a key and no TLS: %d %s", code, errs)
	}
	if code, _, errs := runs(t.Context(), dir, to(s.url, "sha256:12", "devices")...); code != cli.Invalid || !strings.Contains(errs, "64 hexadecimal digits") {
		t.Errorf("no fingerprint: %d %s", code, errs)
	}
	if code, _, errs := runs(t.Context(), dir, "devices", "--server", "http://192.0.2.1:1", "--token-file", copied); code != cli.Invalid ||
		!strings.Contains(errs, "only over https") {
		t.Errorf("in the clear to another machine: %d %s", code, errs)
	}
	if seen := other.requests(); len(seen) != 0 {
		t.Errorf("the other server was sent %q", seen)
	}
}

// A device keeps the key that it was paired with, on both transports.
func TestSecurityRow05DevicesKnowTheirServerByItsKey(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := serveWith(t, dir, "--listen", "127.0.0.1:0", "--tls-generate")
	owner := token(t, dir)
	client, err := library.New(library.Config{Server: s.url, Token: owner, ServerKey: s.key})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan string, 1)
	go func() {
		code, out, errs := runs(ctx, dir, "sim", "--name", "one", "--server", s.url, "--server-key", s.key)
		ended <- fmt.Sprint(code, " ", out, errs)
	}()
	eventually(t, "a simulated browser is online over TLS", func() bool {
		select {
		case said := <-ended:
			t.Fatalf("the browser ended: %s", said)
		default:
		}
		res, err := client.Devices.ListDevices(t.Context(), &controlv1.ListDevicesRequest{OnlineOnly: proto.Bool(true)})
		return err == nil && len(res.GetDevices()) == 1
	})
	cancel()
	<-ended
	other := newCanary(t)
	for _, transport := range []library.Transport{library.Bidi, library.WatchReport} {
		lost := make(chan error, 10)
		ctx, cancel := context.WithCancel(t.Context())
		device, err := library.NewDevice(library.DeviceConfig{
			Identity: library.Identity{Server: other.url, DeviceID: "d", Token: "very-secret", ServerKey: s.key},
			Handler:  struct{ commandv1.Handler }{}, Transport: transport, OnStatus: func(st library.Status) {
				select {
				case lost <- st.Err:
				default:
				}
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() { done <- device.Run(ctx) }()
		if err := <-lost; err == nil || !strings.Contains(err.Error(), other.key) {
			t.Errorf("%v: %v", transport, err)
		}
		cancel()
		if err := <-done; err != nil {
			t.Errorf("a device gives up for good: %v", err)
		}
	}
	if seen := other.requests(); len(seen) != 0 {
		t.Errorf("the other server was sent %q", seen)
	}
	for name, make := range map[string]func() error{
		"client": func() error {
			_, err := library.New(library.Config{Server: "http://192.0.2.1", Token: "t"})
			return err
		},
		"device": func() error {
			_, err := library.NewDevice(library.DeviceConfig{Identity: library.Identity{Server: "http://192.0.2.1", DeviceID: "d", Token: "t"}, Handler: struct{ commandv1.Handler }{}})
			return err
		},
		"pairing": func() error {
			_, err := library.Pair(t.Context(), "http://192.0.2.1", library.Pairing{Code: "x"})
			return err
		},
		"own client": func() error {
			_, err := library.New(library.Config{Server: s.url, ServerKey: s.key, HTTPClient: http.DefaultClient})
			return err
		},
	} {
		if make() == nil {
			t.Errorf("%s: it is not refused", name)
		}
	}
	if c, err := library.New(library.Config{Server: "http://192.0.2.1", Token: "t", Plaintext: true}); err != nil {
		t.Errorf("in the clear where that is wanted: %v", err)
	} else {
		_ = c.Close()
	}
}

// TestAKeyIsNotPrinted prints the configuration of a model in every way.
func TestAKeyIsNotPrinted(t *testing.T) {
	t.Parallel()
	m := app.ModelConfig{Name: "m", BaseURL: "https://model.test/v1", Key: "sk-never-printed"}
	var told bytes.Buffer
	slog.New(slog.NewJSONHandler(&told, nil)).InfoContext(t.Context(), "set", "model", m, "models", []app.ModelConfig{m})
	asJSON, err := json.Marshal(map[string]any{"models": []app.ModelConfig{m}})
	_, _ = fmt.Fprintf(&told, "%s %v %+v %#v", asJSON, m, []app.ModelConfig{m}, m)
	if err != nil || strings.Contains(told.String(), m.Key) || !strings.Contains(string(asJSON), m.BaseURL) {
		t.Errorf("%v: %s", err, told.String())
	}
}
