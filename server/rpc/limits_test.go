package rpc_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connectproto"
	"google.golang.org/protobuf/proto"

	"throwbar.dev/throwbar/app"
	"throwbar.dev/throwbar/app/apptest"
	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	"throwbar.dev/throwbar/gen/go/throwbar/control/v1/controlv1connect"
	devicev1 "throwbar.dev/throwbar/gen/go/throwbar/device/v1"
	optionv1 "throwbar.dev/throwbar/gen/go/throwbar/option/v1"
	"throwbar.dev/throwbar/server/rpc"
)

const dispatchPath = "/throwbar.control.v1.CommandService/Dispatch"

// bomb is many zeros, compressed a thousandfold.
func bomb(t *testing.T, size int) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	zeros := make([]byte, 1<<20)
	for range size >> 20 {
		if _, err := w.Write(zeros); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func enveloped(flags byte, message []byte) []byte {
	out := make([]byte, 5, 5+len(message))
	out[0] = flags
	binary.BigEndian.PutUint32(out[1:], uint32(len(message)))
	return append(out, message...)
}

// send posts a body with headers, and says the HTTP status, the gRPC status, and the text.
func send(t *testing.T, s *apptest.Server, method, path string, body []byte, headers map[string]string) (int, string, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+s.Owner)
	for k, v := range headers {
		req.Header.Set(k, v)
	}
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	transport := &http.Transport{Protocols: &protocols}
	defer transport.CloseIdleConnections()
	res, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	text, _ := io.ReadAll(res.Body)
	status := res.Header.Get("Grpc-Status")
	if status == "" {
		status = res.Trailer.Get("Grpc-Status")
	}
	return res.StatusCode, status, string(text)
}

// Row 9: what is small on the wire and large in memory.
//
//nolint:paralleltest // it counts what the whole process allocates
func TestSecurityRow09DecompressionIsBounded(t *testing.T) {
	s := apptest.Start(t, app.Config{})
	packed := bomb(t, 64<<20)
	exhausted := strconv.Itoa(int(connect.CodeResourceExhausted))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for name, row := range map[string]struct {
		method, path string
		body         []byte
		headers      map[string]string
		grpc         bool
	}{
		"Connect": {"POST", dispatchPath, packed, map[string]string{"Content-Type": "application/proto", "Content-Encoding": "gzip"}, false},
		"JSON":    {"POST", dispatchPath, packed, map[string]string{"Content-Type": "application/json", "Content-Encoding": "gzip"}, false},
		"gRPC":    {"POST", dispatchPath, enveloped(1, packed), map[string]string{"Content-Type": "application/grpc", "Grpc-Encoding": "gzip", "TE": "trailers"}, true},
		"public":  {"POST", pairPath, packed, map[string]string{"Content-Type": "application/proto", "Content-Encoding": "gzip"}, false},
		"GET": {"GET", listDevices + "?encoding=proto&compression=gzip&base64=1&message=" +
			url.QueryEscape(base64.URLEncoding.EncodeToString(bomb(t, 8<<20))), nil, nil, false},
	} {
		status, grpc, text := send(t, s, row.method, row.path, row.body, row.headers)
		if row.grpc && grpc != exhausted || !row.grpc && (status != http.StatusTooManyRequests || !strings.Contains(text, "resource_exhausted")) {
			t.Errorf("%s: %d, gRPC %s, %s", name, status, grpc, text)
		}
	}
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > 300<<20 {
		t.Errorf("four bombs of 64 MiB took %d MiB", took>>20)
	}
}

// Row 9: depth, elements and doubled keys, before a message is decoded.
func TestSecurityRow09MessagesAreBoundedBeforeTheyAreDecoded(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, app.Config{})
	asJSON := map[string]string{"Content-Type": "application/json"}
	asWire := map[string]string{"Content-Type": "application/proto"}
	many, err := proto.Marshal(&controlv1.DispatchRequest{DeviceIds: []string{"x"}})
	if err != nil {
		t.Fatal(err)
	}
	many = append(many, bytes.Repeat([]byte{0x0a, 0x00}, 300_000)...) // device_ids, 300,000 empty ones
	groups := append(bytes.Repeat([]byte{0xa3, 0x06}, 5_000), bytes.Repeat([]byte{0xa4, 0x06}, 5_000)...)
	for name, row := range map[string]struct {
		body    []byte
		headers map[string]string
		want    string
	}{
		"JSON objects":         {[]byte(strings.Repeat(`{"action":`, 10_000)), asJSON, "nested"},
		"JSON lists":           {[]byte(`{"deviceIds":` + strings.Repeat(`[`, 1_000_000)), asJSON, "nested"},
		"unknown groups":       {groups, asWire, "nested"},
		"many elements":        {many, asWire, "fields and elements"},
		"many elements, JSON":  {[]byte(`{"deviceIds":["x"` + strings.Repeat(`,""`, 300_000) + `]}`), asJSON, "fields and elements"},
		"a key twice":          {[]byte(`{"deviceIds":["x"],"deviceIds":["y"]}`), asJSON, "twice"},
		"a key twice, escaped": {[]byte(`{"deviceIds":["x"],"device\u0049ds":["y"]}`), asJSON, "twice"},
	} {
		status, _, text := send(t, s, "POST", dispatchPath, row.body, row.headers)
		if status != http.StatusBadRequest || !strings.Contains(text, "invalid_argument") || !strings.Contains(text, row.want) {
			t.Errorf("%s: %d %s", name, status, text)
		}
	}
	// A device's JSON may have fields that the server does not know, and is bounded all the same.
	status, _, text := send(t, s, "POST", pairPath, []byte(`{"new":`+strings.Repeat(`[`, 100)+strings.Repeat(`]`, 100)+`}`), asJSON)
	if status != http.StatusBadRequest || !strings.Contains(text, "nested") {
		t.Errorf("an unknown field of a device: %d %s", status, text)
	}
	large := make([]byte, 4<<20+1)
	if status, _, text := send(t, s, "POST", dispatchPath, large, asWire); status != http.StatusTooManyRequests {
		t.Errorf("a message of more than four megabytes: %d %s", status, text)
	}
}

// Row 9: many headers, and long ones.
func TestSecurityRow09HeadersAreBounded(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, app.Config{})
	head := "POST " + listDevices + " HTTP/1.1\r\nHost: " + s.Address + "\r\nContent-Type: application/json\r\nContent-Length: 2\r\nConnection: close\r\n"
	if res := raw(t, s, head+strings.Repeat("X-A: b\r\n", 200)+"\r\n{}"); res.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("200 headers: %s", res.Status)
	}
	if res := raw(t, s, head+"X-A: "+strings.Repeat("b", 64<<10)+"\r\n\r\n{}"); res.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("a header of 64 KiB: %s", res.Status)
	}
}

// Row 9: a body that comes a byte at a time holds nothing for long, and a call that takes its time is not held to that.
func TestSecurityRow09ABodyHasToArriveInTime(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, app.Config{Limits: rpc.Limits{BodyWithin: 300 * time.Millisecond}})
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", s.Address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	_, _ = io.WriteString(conn, "POST "+pairPath+" HTTP/1.1\r\nHost: "+s.Address+"\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{")
	_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
	if answer, err := io.ReadAll(conn); err != nil || !strings.Contains(string(answer), "did not arrive within") {
		t.Errorf("HTTP/1.1: %q, %v", answer, err)
	}
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	transport := &http.Transport{Protocols: &protocols}
	defer transport.CloseIdleConnections()
	body, never := io.Pipe()
	defer func() { _ = never.Close() }()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+pairPath, body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/proto")
	res, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	text, _ := io.ReadAll(res.Body)
	_ = res.Body.Close()
	if !strings.Contains(string(text), "did not arrive within") {
		t.Errorf("HTTP/2: %s %s", res.Status, text)
	}
	// A stream of the server lasts longer than a body may take.
	http1 := &http.Transport{}
	defer http1.CloseIdleConnections()
	for _, client := range []*http.Client{{Transport: transport}, {Transport: http1}} {
		status, err := watched(ctx, t, s, client, 900*time.Millisecond) // three times what a body may take
		for err != nil && strings.Contains(err.Error(), "did not arrive within") && ctx.Err() == nil {
			status, err = watched(ctx, t, s, client, 900*time.Millisecond) // even this one took longer, on a machine with much to do
		}
		if err != nil {
			t.Errorf("%s: the stream ended: %v", status, err)
		}
	}
}

// watched is how a stream of events ended by itself, if it did so within a time.
func watched(ctx context.Context, t *testing.T, s *apptest.Server, client *http.Client, d time.Duration) (string, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+"/throwbar.control.v1.CommandService/WatchEvents",
		bytes.NewReader(enveloped(0, []byte("{}"))))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/connect+json")
	req.Header.Set("Authorization", "Bearer "+s.Owner)
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	timer := time.AfterFunc(d, func() { _ = res.Body.Close() })
	text, err := io.ReadAll(res.Body)
	if !timer.Stop() {
		return "", nil
	}
	return fmt.Sprint(res.Status, " ", res.Proto), fmt.Errorf("%q, %w", text, errors.Join(err, io.EOF))
}

// Row 9: calls of one token, at a time and a second; the others do not feel it.
func TestSecurityRow09CallsOfATokenAreBounded(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, app.Config{Limits: rpc.Limits{CallsPerSecond: 0.001, CallsBurst: 6, OpenCalls: 2}})
	other, err := controlv1connect.NewTokenServiceClient(s.Client(t, s.Owner, nil)).CreateToken(t.Context(),
		&controlv1.CreateTokenRequest{Name: "other", Scope: optionv1.Scope_SCOPE_VIEWER})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	events := controlv1connect.NewCommandServiceClient(s.Client(t, s.Owner, nil))
	for i := range 3 {
		stream, err := events.WatchEvents(ctx, &controlv1.WatchEventsRequest{})
		if err == nil {
			_, err = stream.Receive()
		}
		if i < 2 && err != nil || i == 2 && connect.CodeOf(err) != connect.CodeResourceExhausted {
			t.Errorf("open stream %d: %v", i, err)
		}
	}
	cancel()
	var last error
	apptest.Eventually(t, "the token makes too many calls", func() bool { // the server hears a moment later that the streams are gone
		_, last = s.Devices(t).ListDevices(t.Context(), &controlv1.ListDevicesRequest{})
		return last != nil && strings.Contains(last.Error(), "makes too many calls")
	})
	if connect.CodeOf(last) != connect.CodeResourceExhausted || !strings.Contains(last.Error(), "try again in") || !retryable(last) {
		t.Errorf("many calls: %v", last)
	}
	viewer := controlv1connect.NewDevicesServiceClient(s.Client(t, other.GetSecret(), nil))
	if _, err := viewer.ListDevices(t.Context(), &controlv1.ListDevicesRequest{}); err != nil {
		t.Errorf("another token meanwhile: %v", err)
	}
}

// retryable says whether the typed form of an error says so.
func retryable(err error) bool {
	var ce *connect.Error
	if !errors.As(err, &ce) {
		return false
	}
	for _, detail := range ce.Details() {
		if msg, err := connectproto.UnmarshalErrorDetail(detail); err == nil {
			if command, ok := msg.(*commandv1.CommandError); ok && command.GetRetryable() {
				return true
			}
		}
	}
	return false
}

// Row 9: wrong tokens from one address are answered slower and slower; right ones from there always are.
func TestSecurityRow09GuessedTokensAreBounded(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, app.Config{Limits: rpc.Limits{FailuresPerSecond: 0.001, FailuresBurst: 5}})
	var codes []int
	for i := range 12 {
		code, _ := post(t, s, listDevices, "{}", map[string]string{
			"Authorization": "Bearer thb_" + strconv.Itoa(i), "X-Forwarded-For": "10.0.0." + strconv.Itoa(i), "Forwarded": "for=10.0.0.1", "X-Real-Ip": "10.0.0.2",
		})
		codes = append(codes, code)
	}
	if codes[0] != 401 || codes[4] != 401 || codes[5] != 429 || codes[11] != 429 {
		t.Errorf("wrong tokens: %v", codes)
	}
	if code, text := post(t, s, listDevices, "{}", nil); code != 401 {
		t.Errorf("no token: %d %s", code, text)
	}
	if code, text := post(t, s, listDevices, "{}", map[string]string{"Authorization": "Bearer " + s.Owner}); code != 200 {
		t.Errorf("the right token from the same address: %d %s", code, text)
	}
	res := raw(t, s, "GET /metrics HTTP/1.1\r\nHost: "+s.Address+"\r\nAuthorization: Bearer thb_x\r\nConnection: close\r\n\r\n")
	if res.StatusCode != http.StatusTooManyRequests || res.Header.Get("Retry-After") == "" {
		t.Errorf("the metrics: %s %v", res.Status, res.Header)
	}
	if _, err := s.Device(t, "").Pair(t.Context(), &devicev1.PairRequest{Code: "AAAAA-AAAAA", Name: "x", Kind: devicev1.Kind_KIND_BROWSER}); connect.CodeOf(err) != connect.CodePermissionDenied {
		t.Errorf("pairing has its own limit: %v", err)
	}
}
