package rpc_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	"throwbar.dev/throwbar/app"
	"throwbar.dev/throwbar/app/apptest"
	"throwbar.dev/throwbar/server/rpc"
)

// The rows are those of the table of known failures in docs/operating.md; each test is named after its row.

const (
	healthPath     = "/grpc.health.v1.Health/Check"
	reflectionPath = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"
	pairPath       = "/throwbar.device.v1.DeviceService/Pair"
)

// everyPath are paths of each kind that the listener has, and one that it has not.
func everyPath() []string {
	return []string{listDevices, pairPath, healthPath, reflectionPath, "/metrics", "/", "/no/such", "/favicon.ico"}
}

// answer is what came back.
type answer struct {
	StatusCode int
	Status     string
	Header     http.Header
}

// raw writes bytes to the server as they are, and reads the first answer.
func raw(t *testing.T, s *apptest.Server, request string) answer {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", s.Address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := io.WriteString(conn, request); err != nil {
		t.Fatal(err)
	}
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatalf("%q: %v", request, err)
	}
	_, _ = io.Copy(io.Discard, res.Body)
	_ = res.Body.Close()
	return answer{res.StatusCode, res.Status, res.Header}
}

// http2Status sends one request of exactly these header fields over HTTP/2 and returns the status of the answer, or
// "reset" where the server ends the stream or the connection instead.
func http2Status(t *testing.T, address string, fields [][2]string) string {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	framer := http2.NewFramer(conn, conn)
	framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	for _, f := range fields {
		if err := encoder.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]}); err != nil {
			t.Fatal(err)
		}
	}
	if err := framer.WriteSettings(); err != nil {
		t.Fatal(err)
	}
	if err := framer.WriteHeaders(http2.HeadersFrameParam{
		StreamID: 1, BlockFragment: block.Bytes(), EndHeaders: true, EndStream: true,
	}); err != nil {
		t.Fatal(err)
	}
	for {
		frame, err := framer.ReadFrame()
		if err != nil {
			return "reset"
		}
		switch f := frame.(type) {
		case *http2.MetaHeadersFrame:
			return f.PseudoValue("status")
		case *http2.RSTStreamFrame, *http2.GoAwayFrame:
			return "reset"
		}
	}
}

// reached is how many calls came through the listener's rules.
func reached(t *testing.T, s *apptest.Server) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+s.Owner)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatal(res.Status, err)
	}
	var lines []string
	for line := range strings.Lines(string(body)) {
		if strings.HasPrefix(line, "throwbar_calls_total") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "")
}

// Row 2 and 6: a page of a foreign origin.
func TestSecurityRow02ForeignOriginsAreRefusedOnEveryPath(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, app.Config{})
	before := reached(t, s)
	own := s.URL
	foreign := map[string][]string{
		"another site":             {"Origin: https://evil.example"},
		"null":                     {"Origin: null"},
		"empty":                    {"Origin: "},
		"another port":             {"Origin: http://127.0.0.1:1"},
		"no port":                  {"Origin: http://127.0.0.1"},
		"another loopback name":    {"Origin: " + strings.Replace(own, "127.0.0.1", "localhost", 1)},
		"own as a prefix":          {"Origin: " + own + ".evil.example"},
		"own as user name":         {"Origin: " + strings.Replace(own, "http://", "http://"+s.Address+"@", 1) + ".evil.example"},
		"own with a path":          {"Origin: " + own + "/"},
		"another scheme":           {"Origin: ftp://" + s.Address},
		"two in one":               {"Origin: " + own + ", https://evil.example"},
		"two headers":              {"Origin: " + own, "Origin: https://evil.example"},
		"the same twice":           {"Origin: " + own, "Origin: " + own},
		"an extension":             {"Origin: chrome-extension://aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"},
		"none, but cross-site":     {"Sec-Fetch-Site: cross-site"},
		"none, but another port":   {"Sec-Fetch-Site: same-site"},
		"none, and a new word":     {"Sec-Fetch-Site: other"},
		"none, navigation to here": {"Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate"},
	}
	for name, headers := range foreign {
		for _, path := range everyPath() {
			if name == "an extension" && path == pairPath {
				continue // that is how one is paired
			}
			for _, method := range []string{"POST", "GET", "OPTIONS", "HEAD", "PUT"} {
				res := raw(t, s, method+" "+path+" HTTP/1.1\r\nHost: "+s.Address+"\r\nAuthorization: Bearer "+s.Owner+
					"\r\nContent-Type: application/json\r\nAccess-Control-Request-Method: POST\r\nContent-Length: 2\r\n"+
					strings.Join(headers, "\r\n")+"\r\nConnection: close\r\n\r\n{}")
				if res.StatusCode != http.StatusForbidden {
					t.Errorf("%s: %s %s: %s", name, method, path, res.Status)
				}
				for key := range res.Header {
					if strings.HasPrefix(key, "Access-Control-") {
						t.Errorf("%s: %s %s is answered with %s: %s", name, method, path, key, res.Header.Get(key))
					}
				}
			}
		}
	}
	if after := reached(t, s); after != before {
		t.Errorf("calls came through: %s", after)
	}
}

// Row 7: DNS rebinding, and other ways to have the server take a request that names somebody else.
func TestSecurityRow07ForeignHostsAreRefusedOnEveryPath(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, app.Config{})
	before := reached(t, s)
	_, port, err := net.SplitHostPort(s.Address)
	if err != nil {
		t.Fatal(err)
	}
	head := "\r\nAuthorization: Bearer " + s.Owner + "\r\nContent-Type: application/json\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}"
	for _, path := range everyPath() {
		for name, host := range map[string]string{
			"another name": "evil.example", "another name, own port": "evil.example:" + port, "no port": "127.0.0.1",
			"another port": "127.0.0.1:1", "trailing dot": "localhost.:" + port, "user name": "127.0.0.1:" + port + "@evil.example:" + port,
			"user name before": "x@127.0.0.1:" + port, "suffix": "127.0.0.1:" + port + ".evil.example", "longer address": "127.0.0.11:" + port,
			"decimal address": "2130706433:" + port, "short address": "127.1:" + port, "zero port": "127.0.0.1:0" + port,
		} {
			if res := raw(t, s, "POST "+path+" HTTP/1.1\r\nHost: "+host+head); res.StatusCode != http.StatusForbidden && res.StatusCode != http.StatusBadRequest {
				t.Errorf("%s (%s) on %s: %s", name, host, path, res.Status)
			}
		}
		for name, request := range map[string]string{
			"absolute target":               "POST http://evil.example" + path + " HTTP/1.1\r\nHost: " + s.Address,
			"absolute target, foreign Host": "POST " + s.URL + path + " HTTP/1.1\r\nHost: evil.example",
			"own absolute target":           "POST " + s.URL + path + " HTTP/1.1\r\nHost: " + s.Address,
			"two hosts":                     "POST " + path + " HTTP/1.1\r\nHost: " + s.Address + "\r\nHost: evil.example",
			"forwarded":                     "POST " + path + " HTTP/1.1\r\nHost: evil.example\r\nX-Forwarded-Host: " + s.Address + "\r\nForwarded: host=" + s.Address,
			"none":                          "POST " + path + " HTTP/1.0\r\nX: y",
		} {
			if res := raw(t, s, request+head); res.StatusCode != http.StatusForbidden && res.StatusCode != http.StatusBadRequest {
				t.Errorf("%s on %s: %s", name, path, res.Status)
			}
		}
		for name, fields := range map[string][][2]string{
			"another name":                {{":authority", "evil.example:" + port}},
			"another name, own Host":      {{":authority", "evil.example"}, {"host", s.Address}},
			"own name, another Host":      {{":authority", s.Address}, {"host", "evil.example"}},
			"another Host alone":          {{"host", "evil.example"}},
			"own name with a user":        {{":authority", "evil@" + s.Address}},
			"no name":                     {},
			"two Hosts":                   {{"host", s.Address}, {"host", "evil.example"}},
			"own name with a dot":         {{":authority", "localhost.:" + port}},
			"another name, own forwarded": {{":authority", "evil.example"}, {"x-forwarded-host", s.Address}},
		} {
			all := append([][2]string{{":method", "POST"}, {":scheme", "http"}, {":path", path}}, fields...)
			all = append(all, [2]string{"content-type", "application/grpc"}, [2]string{"authorization", "Bearer " + s.Owner})
			if got := http2Status(t, s.Address, all); got != "403" && got != "400" && got != "reset" {
				t.Errorf("HTTP/2: %s on %s: %s", name, path, got)
			}
		}
	}
	if after := reached(t, s); after != before {
		t.Errorf("calls came through: %s", after)
	}
	for _, host := range []string{s.Address, "localhost:" + port, "LocalHost:" + port, "[::1]:" + port} {
		if res := raw(t, s, "POST "+listDevices+" HTTP/1.1\r\nHost: "+host+head); res.StatusCode != http.StatusOK {
			t.Errorf("own name %s: %s", host, res.Status)
		}
	}
}

// Row 7: what a proxy calls the server by can be allowed, and what it says of the caller is not believed.
func TestSecurityRow07AnAllowedProxyHostWorks(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, app.Config{Listener: rpc.Listener{Hosts: []string{"throwbar.example"}}})
	for host, want := range map[string]int{"throwbar.example": 200, "THROWBAR.example": 200, "throwbar.example:80": 403, "throwbar.example.": 403} {
		headers := map[string]string{
			"Host": host, "Authorization": "Bearer " + s.Owner, "X-Forwarded-For": "10.0.0.9", "X-Forwarded-Proto": "https", "Forwarded": "for=10.0.0.9",
		}
		if got, body := post(t, s, listDevices, "{}", headers); got != want {
			t.Errorf("%s: %d %s", host, got, body)
		}
	}
	if got, _ := post(t, s, listDevices, "{}", map[string]string{
		"Host": "throwbar.example", "Authorization": "Bearer " + s.Owner, "Origin": "https://throwbar.example",
	}); got != 200 {
		t.Errorf("the origin of the proxy itself: %d", got)
	}
}

// Row 6: an origin that is allowed is answered with its own name, and nothing else is.
func TestSecurityRow06CORSNamesAllowedOriginsOnly(t *testing.T) {
	t.Parallel()
	const ours = "https://pages.example"
	s := apptest.Start(t, app.Config{Listener: rpc.Listener{Origins: []string{ours}}})
	preflight := func(origin, method, headers string) answer {
		return raw(t, s, "OPTIONS "+listDevices+" HTTP/1.1\r\nHost: "+s.Address+"\r\nOrigin: "+origin+"\r\nAccess-Control-Request-Method: "+
			method+"\r\nAccess-Control-Request-Headers: "+headers+"\r\nConnection: close\r\n\r\n")
	}
	for _, method := range []string{"POST", "GET", "DELETE"} {
		res := preflight(ours, method, "authorization,content-type")
		h := res.Header
		if res.StatusCode != http.StatusNoContent || h.Get("Access-Control-Allow-Origin") != ours || h.Get("Access-Control-Allow-Credentials") != "" ||
			h.Get("Access-Control-Allow-Methods") != "GET, POST" || !strings.Contains(h.Get("Vary"), "Origin") {
			t.Errorf("preflight of an allowed origin for %s: %s %v", method, res.Status, h)
		}
		for _, origin := range []string{"https://pages.example.evil", "http://pages.example", "https://PAGES.example", "null", "*", "https://evil.example"} {
			if res := preflight(origin, method, "authorization"); res.StatusCode != http.StatusForbidden || res.Header.Get("Access-Control-Allow-Origin") != "" {
				t.Errorf("preflight of %s for %s: %s %v", origin, method, res.Status, res.Header)
			}
		}
	}
	res := raw(t, s, "POST "+listDevices+" HTTP/1.1\r\nHost: "+s.Address+"\r\nOrigin: "+ours+"\r\nAuthorization: Bearer "+s.Owner+
		"\r\nContent-Type: application/json\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}")
	if res.StatusCode != http.StatusOK || res.Header.Get("Access-Control-Allow-Origin") != ours || res.Header.Get("Access-Control-Allow-Credentials") != "" {
		t.Errorf("a call of an allowed origin: %s %v", res.Status, res.Header)
	}
	plain := raw(t, s, "OPTIONS "+listDevices+" HTTP/1.1\r\nHost: "+s.Address+"\r\nConnection: close\r\n\r\n")
	if plain.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("OPTIONS that is no preflight: %s", plain.Status)
	}
}

// methods calls f with every method of the contract.
func methods(f func(protoreflect.MethodDescriptor)) int {
	n := 0
	protoregistry.GlobalFiles.RangeFiles(func(file protoreflect.FileDescriptor) bool {
		for i := range file.Services().Len() {
			list := file.Services().Get(i).Methods()
			for j := range list.Len() {
				if strings.HasPrefix(string(list.Get(j).FullName()), "throwbar.") {
					n++
					f(list.Get(j))
				}
			}
		}
		return true
	})
	return n
}

// Row 6: whatever a form, a plain text or an upload can be sent as ends before any handler.
func TestSecurityRow06OnlyTheContentTypesOfCalls(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, app.Config{})
	before := reached(t, s)
	wrong := []string{
		"", "text/plain", "text/plain; charset=utf-8", "text/json", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x",
		"application/json; charset=utf-16", "application/json; charset=utf-8; x=y", "application/json; x=y", "application/json;charset=\"",
		"application/json, text/plain", "application/proto; charset=utf-8", "application/octet-stream", "application/xml",
		"application/vnd.api+json", "application/jsonx", "*/*", "application/grpc+xml", "application/grpc-web-text",
		"application/connect+text", "text/plain; application/json",
	}
	n := methods(func(m protoreflect.MethodDescriptor) {
		path := fmt.Sprintf("/%s/%s", m.Parent().FullName(), m.Name())
		for _, kind := range wrong {
			line := ""
			if kind != "" {
				line = "Content-Type: " + kind + "\r\n"
			}
			res := raw(t, s, "POST "+path+" HTTP/1.1\r\nHost: "+s.Address+"\r\nAuthorization: Bearer "+s.Owner+"\r\n"+line+
				"Content-Length: 2\r\nConnection: close\r\n\r\n{}")
			if res.StatusCode != http.StatusUnsupportedMediaType {
				t.Errorf("%s with %q: %s", m.FullName(), kind, res.Status)
			}
		}
	})
	if n < 40 {
		t.Errorf("only %d methods seen", n)
	}
	res := raw(t, s, "POST "+listDevices+" HTTP/1.1\r\nHost: "+s.Address+"\r\nAuthorization: Bearer "+s.Owner+
		"\r\nContent-Type: application/json\r\nContent-Type: text/plain\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}")
	if res.StatusCode != http.StatusUnsupportedMediaType {
		t.Errorf("two content types: %s", res.Status)
	}
	if after := reached(t, s); after != before {
		t.Errorf("calls came through: %s", after)
	}
	for _, kind := range []string{"application/json", "application/json; charset=utf-8", "application/json;charset=UTF-8"} {
		if got, body := post(t, s, listDevices, "{}", map[string]string{"Authorization": "Bearer " + s.Owner, "Content-Type": kind}); got != 200 {
			t.Errorf("%s: %d %s", kind, got, body)
		}
	}
}

// Row 6: no method that changes something answers GET; those that only read do, and not with a token in their URL.
func TestSecurityRow06NothingIsChangedByGET(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, app.Config{})
	reads := 0
	methods(func(m protoreflect.MethodDescriptor) {
		path := fmt.Sprintf("/%s/%s", m.Parent().FullName(), m.Name())
		options, _ := m.Options().(*descriptorpb.MethodOptions)
		safe := options.GetIdempotencyLevel() == descriptorpb.MethodOptions_NO_SIDE_EFFECTS && !m.IsStreamingServer() && !m.IsStreamingClient()
		for _, query := range []string{"?connect=v1&encoding=json&message=%7B%7D", "?encoding=proto&message=&base64=1", ""} {
			for _, method := range []string{"GET", "HEAD"} {
				res := raw(t, s, method+" "+path+query+" HTTP/1.1\r\nHost: "+s.Address+"\r\nAuthorization: Bearer "+s.Owner+"\r\nConnection: close\r\n\r\n")
				answered := res.StatusCode < 300 || res.StatusCode == http.StatusBadRequest
				if answered && !safe {
					t.Errorf("%s answers %s: %s", m.FullName(), method, res.Status)
				}
				if answered {
					reads++
				}
			}
		}
	})
	if reads < 5 {
		t.Errorf("only %d reads were answered: is this test right?", reads)
	}
	query := "?encoding=json&message=%7B%7D"
	for _, extra := range []string{"", "&token=" + s.Owner, "&access_token=" + s.Owner, "&authorization=" + url.QueryEscape("Bearer "+s.Owner), "&x=1", "&message=x"} {
		res := raw(t, s, "GET "+listDevices+query+extra+" HTTP/1.1\r\nHost: "+s.Address+"\r\nConnection: close\r\n\r\n")
		want := http.StatusUnauthorized
		if extra != "" {
			want = http.StatusBadRequest
		}
		if res.StatusCode != want {
			t.Errorf("a read without a token in its header, with %q: %s", extra, res.Status)
		}
	}
	if got, body := post(t, s, listDevices+"?token="+s.Owner, "{}", map[string]string{"Authorization": "Bearer " + s.Owner}); got != http.StatusBadRequest {
		t.Errorf("a token in the URL of a call: %d %s", got, body)
	}
}

// Row 8 has its floor versions in a law; these are paths that are written otherwise than those of the contract.
func TestSecurityRow08OddPathsReachNoHandler(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, app.Config{})
	before := reached(t, s)
	for _, path := range []string{
		"throwbar.control.v1.DevicesService/ListDevices", "/" + listDevices, listDevices + "/", listDevices + "/.", "/x/.." + listDevices,
		"/throwbar.control.v1.DevicesService//ListDevices", "/throwbar.control.v1.DevicesService/List%44evices",
		"/throwbar.control.v1.DevicesService%2FListDevices", strings.ToLower(listDevices), listDevices + ";x", "*", "/./" + listDevices[1:],
		listDevices + "%00", "/throwbar.control.v1.devicesservice/ListDevices", `\throwbar.control.v1.DevicesService\ListDevices`, listDevices + "#x",
	} {
		fields := [][2]string{
			{":method", "POST"},
			{":scheme", "http"},
			{":path", path},
			{":authority", s.Address},
			{"content-type", "application/json"},
			{"authorization", "Bearer " + s.Owner},
		}
		if got := http2Status(t, s.Address, fields); got == "200" {
			t.Errorf("%q is answered with %s", path, got)
		}
	}
	if after := reached(t, s); after != before && !strings.Contains(after, `"unknown"`) {
		t.Errorf("calls came through: %s", after)
	}
}

// Row 5 and 6: what a browser may make of any answer.
func TestSecurityRow06EveryAnswerHasSafeHeaders(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, app.Config{})
	want := map[string]string{
		"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store", "X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer",
		"Cross-Origin-Resource-Policy": "same-origin", "Cross-Origin-Opener-Policy": "same-origin",
		"Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
	}
	for name, request := range map[string]string{
		"an answer":        "POST " + listDevices + " HTTP/1.1\r\nHost: " + s.Address + "\r\nAuthorization: Bearer " + s.Owner,
		"no token":         "POST " + listDevices + " HTTP/1.1\r\nHost: " + s.Address,
		"foreign host":     "POST " + listDevices + " HTTP/1.1\r\nHost: evil.example",
		"foreign origin":   "POST " + listDevices + " HTTP/1.1\r\nOrigin: https://evil.example\r\nHost: " + s.Address,
		"no such path":     "GET /index.html HTTP/1.1\r\nHost: " + s.Address,
		"no such method":   "DELETE / HTTP/1.1\r\nHost: " + s.Address,
		"metrics":          "GET /metrics HTTP/1.1\r\nHost: " + s.Address + "\r\nAuthorization: Bearer " + s.Owner,
		"metrics, refused": "GET /metrics HTTP/1.1\r\nHost: " + s.Address,
	} {
		length := "\r\nContent-Type: application/json\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}"
		if strings.HasPrefix(request, "GET") {
			length = "\r\nConnection: close\r\n\r\n"
		}
		res := raw(t, s, request+length)
		for key, value := range want {
			if got := res.Header[key]; len(got) != 1 || got[0] != value {
				t.Errorf("%s (%s): %s is %q", name, res.Status, key, got)
			}
		}
		if hsts := res.Header.Get("Strict-Transport-Security"); hsts != "" {
			t.Errorf("%s: Strict-Transport-Security %s would hold for every port of the host", name, hsts)
		}
	}
}
