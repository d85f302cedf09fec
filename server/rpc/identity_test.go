package rpc_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect/v2"
	"google.golang.org/protobuf/types/known/durationpb"

	"throwbar.dev/throwbar/app"
	"throwbar.dev/throwbar/app/apptest"
	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
	"throwbar.dev/throwbar/gen/go/throwbar/agent/v1/agentv1connect"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	"throwbar.dev/throwbar/gen/go/throwbar/control/v1/controlv1connect"
	devicev1 "throwbar.dev/throwbar/gen/go/throwbar/device/v1"
	"throwbar.dev/throwbar/gen/go/throwbar/device/v1/devicev1connect"
	optionv1 "throwbar.dev/throwbar/gen/go/throwbar/option/v1"
)

const (
	ours3   = "chrome-extension://abcdefghijklmnopabcdefghijklmnop"
	others3 = "chrome-extension://ponmlkjihgfedcbaponmlkjihgfedcba"
)

// lines is a log that tests read.
type lines struct {
	mu  sync.Mutex
	all bytes.Buffer // guarded by mu
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.Write(p)
}

func (l *lines) has(words ...string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(l.all.String()) {
		found := 0
		for _, w := range words {
			if strings.Contains(line, w) {
				found++
			}
		}
		if found == len(words) {
			return true
		}
	}
	return false
}

// from makes a client of DeviceService that sends an Origin.
func from(t *testing.T, s *apptest.Server, token, origin string) devicev1connect.DeviceServiceClient {
	t.Helper()
	return devicev1connect.NewDeviceServiceClient(s.Client(t, token, map[string]string{"Origin": origin}))
}

func pairFrom(t *testing.T, s *apptest.Server, origin string) *devicev1.PairResponse {
	t.Helper()
	code, err := s.Devices(t).CreatePairingCode(t.Context(), &controlv1.CreatePairingCodeRequest{})
	if err != nil {
		t.Fatal(err)
	}
	res, err := from(t, s, "", origin).Pair(t.Context(), &devicev1.PairRequest{
		Code: code.GetCode(), Name: "browser", Kind: devicev1.Kind_KIND_BROWSER,
	})
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// rotation calls a method that only devices may call, and says how that went.
func rotation(ctx context.Context, c devicev1connect.DeviceServiceClient) (string, connect.Code) {
	res, err := c.RotateToken(ctx, &devicev1.RotateTokenRequest{})
	if err != nil {
		return "", connect.CodeOf(err)
	}
	return res.GetToken(), 0
}

// Security 3: a device's token is good from exactly the extension that it was paired from, and one of a program from no
// extension and no page.
func TestSecurity3AnotherExtensionIsRefused(t *testing.T) {
	t.Parallel()
	const page = "https://page.example"
	s := apptest.Start(t, app.Config{})
	extension, program := pairFrom(t, s, ours3), pair(t, s, "program")
	pairFrom(t, s, others3) // so that the listener lets the other origin through, and the token alone decides
	for name, try := range map[string]struct {
		token, origin string
		want          connect.Code
	}{
		"its own extension":         {extension.GetToken(), ours3, 0},
		"another extension":         {extension.GetToken(), others3, connect.CodePermissionDenied},
		"its extension in capitals": {extension.GetToken(), strings.ToUpper(ours3), connect.CodePermissionDenied},
		"a page":                    {extension.GetToken(), page, connect.CodePermissionDenied},
		"the server's own page":     {extension.GetToken(), s.URL, connect.CodePermissionDenied},
		"no origin":                 {extension.GetToken(), "", connect.CodePermissionDenied},
		"a program":                 {program.GetToken(), "", 0},
		"a program's in extension":  {program.GetToken(), ours3, connect.CodePermissionDenied},
		"a program's on own page":   {program.GetToken(), s.URL, connect.CodePermissionDenied},
	} {
		client := s.Device(t, try.token)
		if try.origin != "" {
			client = from(t, s, try.token, try.origin)
		}
		if _, code := rotation(t.Context(), client); code != try.want {
			t.Errorf("%s: %v, want %v", name, code, try.want)
		}
	}
}

// What is refused for its origin must not count as the first use of a new token.
func TestSecurity3AnotherExtensionDoesNotUseUpATokenThatWasRotated(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, app.Config{})
	d := pairFrom(t, s, ours3)
	pairFrom(t, s, others3)
	fresh, _ := rotation(t.Context(), from(t, s, d.GetToken(), ours3))
	if _, code := rotation(t.Context(), from(t, s, fresh, others3)); code != connect.CodePermissionDenied {
		t.Errorf("the new token from another extension: %v", code)
	}
	if _, code := rotation(t.Context(), from(t, s, d.GetToken(), ours3)); code != 0 {
		t.Errorf("the old token after that: %v", code)
	}
}

// Security 4: who cannot prove to be the device is refused, does not displace it, and is in the log.
func TestSecurity4NobodyElseTakesTheSlot(t *testing.T) {
	t.Parallel()
	for name, how := range transports() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			log := &lines{}
			s := apptest.Start(t, app.Config{Log: slog.New(slog.NewTextHandler(log, nil))})
			d, other := pair(t, s, "laptop"), pair(t, s, "other")
			old := d.GetToken()
			fresh, code := rotation(t.Context(), s.Device(t, old))
			if code != 0 {
				t.Fatal(code)
			}
			d.Token = fresh
			l, _ := dial(t, s, d, how, nil)
			for who, token := range map[string]string{
				"nobody": "", "garbage": "thb_x", "another device": other.GetToken(), "a rotated token": old, "the owner": s.Owner,
			} {
				thief := how(t, s, token, &devicev1.Hello{DeviceId: d.GetDeviceId(), Dial: 1 << 62})
				if f, err := thief.receive(); err == nil {
					t.Errorf("%s was answered %v", who, f)
				}
			}
			// The device has its link still.
			done := dispatch(t.Context(), t, s, closing(d.GetDeviceId()+"_tb1-1"))
			c := next(t, l).GetCommand()
			if err := l.send(outcome(closedOutcome(c.GetCommandId()))); err != nil {
				t.Fatal(err)
			}
			if a := <-done; a.err != nil || a.res.GetOutcomes()[0].GetResult() == nil {
				t.Errorf("outcome: %v, %v", a.res, a.err)
			}
			if !log.has("refused as a device", "belongs to another device", other.GetDeviceId()) ||
				!log.has("refused as a device", "is not valid", "peer=127.0.0.1:") {
				t.Errorf("the log does not say so:\n%s", log.all.String())
			}
		})
	}
}

// Security 15: the old token works until the new one is used, then it is void and its link ends; a second rotation takes
// back what was not used; revocation makes both void.
func TestSecurity15RotationReplacesTheToken(t *testing.T) {
	t.Parallel()
	for name, how := range transports() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := apptest.Start(t, app.Config{})
			d := pair(t, s, "laptop")
			first := d.GetToken()
			l, welcome := dial(t, s, d, how, nil)
			if welcome.GetRotateToken() {
				t.Error("a new device is asked to rotate")
			}
			if _, err := s.Devices(t).RotateDevice(t.Context(), &controlv1.RotateDeviceRequest{DeviceId: d.GetDeviceId()}); err != nil {
				t.Fatal(err)
			}
			if f := next(t, l); f.GetRotate() == nil {
				t.Errorf("the device was told %v", f)
			}
			lost, _ := rotation(t.Context(), s.Device(t, first)) // its answer does not arrive
			second, code := rotation(t.Context(), s.Device(t, first))
			if code != 0 || second == lost || second == first {
				t.Fatalf("the second rotation: %v", code)
			}
			if _, code := rotation(t.Context(), s.Device(t, lost)); code != connect.CodeUnauthenticated {
				t.Errorf("the token that was not used: %v", code)
			}
			thief, _ := dial(t, s, d, how, nil) // with the first token, which works
			if f := next(t, l); f.GetEnd().GetReason() != devicev1.EndReason_END_REASON_REPLACED {
				t.Errorf("the old link was told %v", f)
			}
			d.Token = second
			_, welcome = dial(t, s, d, how, nil)
			if welcome.GetRotateToken() {
				t.Error("asked again after the rotation")
			}
			untilEnd(t, thief)
			if _, code := rotation(t.Context(), s.Device(t, first)); code != connect.CodeUnauthenticated {
				t.Errorf("the old token after the new one was used: %v", code)
			}
			third, _ := rotation(t.Context(), s.Device(t, second))
			if _, err := s.Devices(t).RevokeDevice(t.Context(), &controlv1.RevokeDeviceRequest{DeviceId: d.GetDeviceId()}); err != nil {
				t.Fatal(err)
			}
			for _, token := range []string{second, third} {
				if _, code := rotation(t.Context(), s.Device(t, token)); code != connect.CodeUnauthenticated {
					t.Errorf("a token after the revocation: %v", code)
				}
			}
		})
	}
}

// untilEnd reads a link until it is over, however that is told.
func untilEnd(t *testing.T, l rawLink) {
	t.Helper()
	for {
		if f, err := l.receive(); err != nil || f.GetEnd() != nil {
			return
		}
	}
}

// Security 15: a device that was away is asked when it comes back, also after a restart of the server, and one whose
// token is old is asked by itself.
func TestSecurity15ARotationThatWasAskedForIsNotForgotten(t *testing.T) {
	t.Parallel()
	c := &clock{}
	dir := t.TempDir()
	s := apptest.Start(t, app.Config{DataDir: dir, Now: c.now})
	d, old := pair(t, s, "laptop"), pair(t, s, "old")
	if _, err := s.Devices(t).RotateDevice(t.Context(), &controlv1.RotateDeviceRequest{DeviceId: d.GetDeviceId()}); err != nil {
		t.Fatal(err)
	}
	s.Stop()
	s = apptest.Start(t, app.Config{DataDir: dir, Now: c.now})
	if _, welcome := dial(t, s, d, dialConnect, nil); !welcome.GetRotateToken() {
		t.Error("the rotation is forgotten")
	}
	if _, welcome := dial(t, s, old, dialConnect, nil); welcome.GetRotateToken() {
		t.Error("the other device is asked too")
	}
	c.set(31 * 24 * time.Hour)
	if _, welcome := dial(t, s, old, dialConnect, nil); !welcome.GetRotateToken() {
		t.Error("a token of a month is not rotated")
	}
}

// A stale Hello does not take the place of a later one, and takes that of none.
func TestALateHelloDoesNotReplaceTheLink(t *testing.T) {
	t.Parallel()
	for name, how := range transports() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := apptest.Start(t, app.Config{})
			d := pair(t, s, "laptop")
			l, _ := dial(t, s, d, how, &devicev1.Hello{Dial: 7})
			late := how(t, s, d.GetToken(), &devicev1.Hello{DeviceId: d.GetDeviceId(), Dial: 6})
			if f, err := late.receive(); err != nil || f.GetEnd().GetReason() != devicev1.EndReason_END_REASON_REPLACED {
				t.Errorf("the late one was told %v, %v", f, err)
			}
			list, err := s.Devices(t).ListDevices(t.Context(), &controlv1.ListDevicesRequest{})
			if err != nil || !list.GetDevices()[0].GetOnline() {
				t.Errorf("the device is %v, %v", list, err)
			}
			dial(t, s, d, how, &devicev1.Hello{Dial: 8})
			if f := next(t, l); f.GetEnd().GetReason() != devicev1.EndReason_END_REASON_REPLACED {
				t.Errorf("the older link was told %v", f)
			}
			dial(t, s, d, how, nil) // an older program, which counts nothing
		})
	}
}

// Whatever a person's token holds open ends when it is revoked or expires.
func TestStreamsEndWithTheirToken(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]struct {
		ttl    time.Duration
		revoke bool
		want   string
	}{"revoked": {0, true, "revoked"}, "expired": {5 * time.Second, false, "expired"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asked := make(chan struct{})
			silent := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-asked }))
			t.Cleanup(silent.Close)
			t.Cleanup(func() { close(asked) })
			s := apptest.Start(t, app.Config{Model: app.ModelConfig{Name: "silent", BaseURL: silent.URL, Key: "x"}})
			tokens := controlv1connect.NewTokenServiceClient(s.Client(t, s.Owner, nil))
			req := &controlv1.CreateTokenRequest{Name: "p", Scope: optionv1.Scope_SCOPE_OPERATOR}
			if end.ttl > 0 {
				req.Ttl = durationpb.New(end.ttl)
			}
			var made *controlv1.CreateTokenResponse
			var ends <-chan streamEnd
			for { // where a machine is so slow that the token expires before all are open, the next one has longer
				var err error
				if made, err = tokens.CreateToken(t.Context(), req); err != nil {
					t.Fatal(err)
				}
				if ends, err = holdOpen(t, s.Client(t, made.GetSecret(), nil)); err == nil {
					break
				} else if end.ttl == 0 || end.ttl > time.Minute || connect.CodeOf(err) != connect.CodeUnauthenticated {
					t.Fatal(err)
				}
				end.ttl *= 4
				req.Ttl = durationpb.New(end.ttl)
			}
			if end.revoke {
				if _, err := tokens.RevokeToken(t.Context(), &controlv1.RevokeTokenRequest{TokenId: made.GetToken().GetTokenId()}); err != nil {
					t.Fatal(err)
				}
			}
			for range 3 {
				var e streamEnd
				select {
				case e = <-ends:
				case <-time.After(time.Minute + end.ttl):
					t.Fatal("a stream goes on")
				}
				if connect.CodeOf(e.err) != connect.CodeUnauthenticated || !strings.Contains(e.err.Error(), end.want) {
					t.Errorf("%s ended with %v", e.what, e.err)
				}
			}
		})
	}
}

type streamEnd struct {
	what string
	err  error
}

// holdOpen opens streams of a caller, and says how each ends.
func holdOpen(t *testing.T, client *connect.Client) (<-chan streamEnd, error) {
	t.Helper()
	ends := make(chan streamEnd, 3)
	cursor := uint64(0)
	commands := controlv1connect.NewCommandServiceClient(client)
	watch, err := commands.WatchEvents(t.Context(), &controlv1.WatchEventsRequest{Cursor: &cursor})
	if err != nil {
		return nil, err
	}
	send, err := commands.DispatchStream(t.Context())
	if err != nil {
		return nil, err
	}
	// Why this fails, if it does, is what Receive says.
	_ = send.Send(&controlv1.DispatchStreamRequest{Items: []*controlv1.DispatchStreamItem{item(1, closing())}})
	if _, err := send.Receive(); err != nil { // it stands
		return nil, err
	}
	chat, err := agentv1connect.NewAgentServiceClient(client).Chat(t.Context(), &agentv1.ChatRequest{Message: "x"})
	if err != nil {
		return nil, err
	}
	if _, err := chat.Receive(); err != nil {
		return nil, err
	}
	go func() {
		var err error
		for err == nil {
			_, err = chat.Receive()
		}
		ends <- streamEnd{"Chat", err}
	}()
	go func() {
		var err error
		for err == nil {
			_, err = watch.Receive()
		}
		ends <- streamEnd{"WatchEvents", err}
	}()
	go func() {
		var err error
		for err == nil {
			_, err = send.Receive()
		}
		ends <- streamEnd{"DispatchStream", err}
	}()
	t.Cleanup(func() { _ = send.Close() })
	return ends, nil
}

// The last owner's token stays, and a token may revoke itself.
func TestTheLastOwnerStays(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, app.Config{})
	tokens := controlv1connect.NewTokenServiceClient(s.Client(t, s.Owner, nil))
	list, err := tokens.ListTokens(t.Context(), &controlv1.ListTokensRequest{})
	if err != nil || len(list.GetTokens()) != 1 {
		t.Fatal(list, err)
	}
	first := list.GetTokens()[0].GetTokenId()
	revoke := func() error {
		_, err := tokens.RevokeToken(t.Context(), &controlv1.RevokeTokenRequest{TokenId: first})
		return err
	}
	if err := revoke(); connect.CodeOf(err) != connect.CodeFailedPrecondition {
		t.Errorf("the last one: %v", err)
	}
	if _, err := tokens.CreateToken(t.Context(), &controlv1.CreateTokenRequest{
		Name: "for a day", Scope: optionv1.Scope_SCOPE_OWNER, Ttl: durationpb.New(24 * time.Hour),
	}); err != nil {
		t.Fatal(err)
	}
	if err := revoke(); connect.CodeOf(err) != connect.CodeFailedPrecondition {
		t.Errorf("the last one that does not expire: %v", err)
	}
	second, err := tokens.CreateToken(t.Context(), &controlv1.CreateTokenRequest{Name: "second", Scope: optionv1.Scope_SCOPE_OWNER})
	if err != nil {
		t.Fatal(err)
	}
	if err := revoke(); err != nil { // itself: this call is answered, and the next is not
		t.Errorf("itself: %v", err)
	}
	if err := revoke(); connect.CodeOf(err) != connect.CodeUnauthenticated {
		t.Errorf("after that: %v", err)
	}
	again := controlv1connect.NewTokenServiceClient(s.Client(t, second.GetSecret(), nil))
	if _, err := again.ListTokens(t.Context(), &controlv1.ListTokensRequest{}); err != nil {
		t.Errorf("the second owner: %v", err)
	}
}
