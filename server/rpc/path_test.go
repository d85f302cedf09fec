package rpc_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect/v2"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/emptypb"

	"throwbar.dev/throwbar/app"
	"throwbar.dev/throwbar/app/apptest"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	"throwbar.dev/throwbar/gen/go/throwbar/control/v1/controlv1connect"
	optionv1 "throwbar.dev/throwbar/gen/go/throwbar/option/v1"
	"throwbar.dev/throwbar/server/auth"
	"throwbar.dev/throwbar/server/device"
	"throwbar.dev/throwbar/server/rpc"
)

// rawCall writes a request with any :path on a connection of its own, and says what came back: the status, the
// Connect or gRPC code, and the body.
func rawCall(t *testing.T, address, path, kind, token string) (status, code, body string) {
	t.Helper()
	conn, err := (&net.Dialer{Timeout: time.Minute}).DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	framer := http2.NewFramer(conn, conn)
	framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	if err := framer.WriteSettings(); err != nil {
		t.Fatal(err)
	}
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	for _, h := range [][2]string{
		{":method", "POST"},
		{":scheme", "http"},
		{":authority", address},
		{":path", path},
		{"content-type", kind},
		{"te", "trailers"},
		{"authorization", "Bearer " + token},
	} {
		if h[1] != "Bearer " {
			_ = encoder.WriteField(hpack.HeaderField{Name: h[0], Value: h[1]})
		}
	}
	if err := framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block.Bytes(), EndHeaders: true}); err != nil {
		t.Fatal(err)
	}
	message := []byte("{}")
	if strings.Contains(kind, "grpc") {
		message = make([]byte, 5) // one empty message
	}
	if err := framer.WriteData(1, true, message); err != nil {
		t.Fatal(err)
	}
	return readRaw(framer)
}

func readRaw(framer *http2.Framer) (status, code, body string) {
	for {
		frame, err := framer.ReadFrame()
		if err != nil {
			return status, "closed", body
		}
		switch f := frame.(type) {
		case *http2.SettingsFrame:
			if !f.IsAck() {
				_ = framer.WriteSettingsAck()
			}
		case *http2.MetaHeadersFrame:
			for _, field := range f.Fields {
				switch field.Name {
				case ":status":
					status = field.Value
				case "grpc-status":
					code = field.Value
				}
			}
			if f.StreamEnded() {
				return status, code, body
			}
		case *http2.DataFrame:
			body += string(f.Data())
			if f.StreamEnded() {
				return status, code, body
			}
		case *http2.RSTStreamFrame, *http2.GoAwayFrame:
			return status, "closed", body
		}
	}
}

// oddPaths are other ways to write a path, none of which may be taken for it.
func oddPaths(path string) []string {
	service, method, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return []string{
		strings.TrimPrefix(path, "/"), "/" + path, "//" + service + "/" + method, "/" + service + "//" + method, path + "/",
		path + "//", "/./" + service + "/" + method, "/x/.." + path, "/" + service + "/./" + method, "/" + service + "/x/../" + method,
		"/" + service + "%2F" + method, "/%74" + service[1:] + "/" + method, path + "%00", path + "%20", path + " ", path + ";x=y",
		path + "/extra", path + ".json", strings.ToUpper(path), "/" + strings.ToUpper(service) + "/" + method,
		"/" + service + "/" + strings.ToLower(method), "\\" + service + "\\" + method, "/" + service + "\\" + method,
		"http://127.0.0.1" + path, "*", "", "/" + method, "/" + service, "/" + service + "." + method, path + "%2e", "/" + path + "/..",
	}
}

// Security 8: no odd form of a path comes to a handler that its plain form would not come to, with any token.
func TestSecurity8OddPathsReachNoHandler(t *testing.T) {
	t.Parallel()
	log := &lines{}
	s := apptest.Start(t, app.Config{Log: slog.New(slog.NewTextHandler(log, nil))})
	viewer := tokenOf(t, s, optionv1.Scope_SCOPE_VIEWER)
	const path = "/throwbar.control.v1.DevicesService/CreatePairingCode"
	if status, _, body := rawCall(t, s.Address, path, "application/json", s.Owner); status != "200" || !strings.Contains(body, "checkWord") {
		t.Fatalf("the plain path as its owner: %s %s", status, body)
	}
	for _, kind := range []string{"application/json", "application/grpc+proto"} {
		for _, token := range []string{"", viewer} {
			if status, code, body := rawCall(t, s.Address, path, kind, token); status == "200" && code != "7" && code != "16" {
				t.Errorf("the plain path with too little: %s %s %s", status, code, body)
			}
			for _, odd := range oddPaths(path) {
				// Whoever is refused must not get further by it, and it is no other name of the method for its owner either.
				status, code, body := rawCall(t, s.Address, odd, kind, token)
				if strings.Contains(body, "checkWord") || code == "0" || (status == "200" && code == "") {
					t.Errorf("%q as %s: %s %s %q", odd, kind, status, code, body)
				}
			}
		}
		for _, odd := range oddPaths(path) {
			if _, code, body := rawCall(t, s.Address, odd, kind, s.Owner); strings.Contains(body, "checkWord") || code == "0" {
				t.Errorf("%q is another name of %s", odd, path)
			}
		}
	}
}

func tokenOf(t *testing.T, s *apptest.Server, scope optionv1.Scope) string {
	t.Helper()
	made, err := controlv1connect.NewTokenServiceClient(s.Client(t, s.Owner, nil)).CreateToken(
		t.Context(), &controlv1.CreateTokenRequest{Name: "test", Scope: scope})
	if err != nil {
		t.Fatal(err)
	}
	return made.GetSecret()
}

// keyring is a store of one token.
type keyring struct {
	auth.Store

	token auth.Token
}

func (k keyring) Tokens(context.Context) ([]auth.Token, error) { return []auth.Token{k.token}, nil }

// Security 8: a method without an access option is refused to everybody, the owner too; one whose option is there is
// not. What decides is the descriptor that the call was resolved to, whatever the procedure is called.
func TestSecurity8AMethodWithoutAnOptionIsForNobody(t *testing.T) {
	t.Parallel()
	owner := auth.Token{ID: "o", Workspace: "default", Name: "o", Scope: optionv1.Scope_SCOPE_OWNER, Hash: auth.HashOf("secret")}
	tokens, err := auth.New(t.Context(), keyring{token: owner}, nil, time.Now, nil)
	if err != nil {
		t.Fatal(err)
	}
	directory, err := device.NewDirectory(t.Context(), noDevices{}, time.Now, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	listener := httptest.NewUnstartedServer(nil)
	edge := rpc.New(rpc.Config{
		Tokens: tokens, Directory: directory, Log: slog.New(slog.DiscardHandler),
		Listener: rpc.Listener{Hosts: []string{listener.Listener.Addr().String()}},
	})
	listed := controlv1.File_throwbar_control_v1_devices_proto.Services().ByName("DevicesService").Methods().ByName("ListDevices")
	ran := map[string]bool{}
	for name, schema := range map[string]protoreflect.Descriptor{
		"/test.v1.Open/Known": listed, "/test.v1.Open/NoSchema": nil, "/test.v1.Open/NoMethod": listed.Input(),
		"/grpc.health.v1.Open/Named": nil, "/grpc.health.v1.Health/Disguised": listed.Input(),
	} {
		edge.Connect().Register(connect.Method{
			Spec: connect.Spec{StreamType: connect.StreamTypeUnary, Procedure: name, Schema: schema},
			Handler: func(_ context.Context, _ connect.Spec, stream connect.ServerStream) error {
				ran[name] = true
				return stream.Send(&emptypb.Empty{})
			},
		})
	}
	listener.Config.Handler = edge.Handler()
	listener.Start()
	defer listener.Close()
	call := func(path, token string) int {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, listener.URL+path, strings.NewReader(""))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/proto")
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		return res.StatusCode
	}
	for path, want := range map[string]int{
		"/test.v1.Open/Known": 200, "/test.v1.Open/NoSchema": 403, "/test.v1.Open/NoMethod": 403,
		"/grpc.health.v1.Open/Named": 403, "/grpc.health.v1.Health/Disguised": 403,
	} {
		if got := call(path, "secret"); got != want || ran[path] != (want == 200) {
			t.Errorf("%s: %d, want %d; ran: %v", path, got, want, ran[path])
		}
		if got := call(path, ""); got != 401 {
			t.Errorf("%s without a token: %d", path, got)
		}
	}
}

// noDevices is a store of no devices.
type noDevices struct{ device.Store }

func (noDevices) Devices(context.Context) ([]device.Device, error) { return nil, nil }
