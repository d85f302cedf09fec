package rpc_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"connectrpc.com/connect/v2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	reflectpb "google.golang.org/grpc/reflection/grpc_reflection_v1"

	"throwbar.dev/throwbar/app"
	"throwbar.dev/throwbar/app/apptest"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	"throwbar.dev/throwbar/gen/go/throwbar/control/v1/controlv1connect"
	devicev1 "throwbar.dev/throwbar/gen/go/throwbar/device/v1"
	optionv1 "throwbar.dev/throwbar/gen/go/throwbar/option/v1"
)

// post sends a JSON body by plain HTTP/1.1, as curl would.
func post(t *testing.T, s *apptest.Server, procedure, body string, headers map[string]string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+procedure, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	for k, v := range headers {
		if k == "Host" {
			req.Host = v
			continue
		}
		req.Header.Set(k, v)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(raw)
}

const listDevices = "/throwbar.control.v1.DevicesService/ListDevices"

func TestOnlyTheRightCallsGetThrough(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, app.Config{})
	owner := "Bearer " + s.Owner
	for name, row := range map[string]struct {
		headers map[string]string
		want    int
	}{
		"owner":                    {map[string]string{"Authorization": owner}, 200},
		"localhost":                {map[string]string{"Authorization": owner, "Host": strings.Replace(s.Address, "127.0.0.1", "localhost", 1)}, 200},
		"own origin":               {map[string]string{"Authorization": owner, "Origin": s.URL}, 200},
		"no token":                 {nil, 401},
		"another token":            {map[string]string{"Authorization": "Bearer thb_nonsense"}, 401},
		"no bearer":                {map[string]string{"Authorization": s.Owner}, 401},
		"foreign host":             {map[string]string{"Authorization": owner, "Host": "evil.example"}, 403},
		"foreign host, right port": {map[string]string{"Authorization": owner, "Host": "evil.example:3913"}, 403},
		"foreign origin":           {map[string]string{"Authorization": owner, "Origin": "https://evil.example"}, 403},
		"null origin":              {map[string]string{"Authorization": owner, "Origin": "null"}, 403},
		"unpaired extension":       {map[string]string{"Authorization": owner, "Origin": "chrome-extension://abc"}, 403},
		"form post":                {map[string]string{"Authorization": owner, "Content-Type": "application/x-www-form-urlencoded"}, 415},
		"text post":                {map[string]string{"Authorization": owner, "Content-Type": "text/plain"}, 415},
	} {
		if got, body := post(t, s, listDevices, "{}", row.headers); got != row.want {
			t.Errorf("%s: %d %s, want %d", name, got, body, row.want)
		}
	}
	for path, want := range map[string]int{
		listDevices: http.StatusUnauthorized, // a read may be asked for by GET, with a token
		"/throwbar.control.v1.CommandService/Dispatch":          http.StatusMethodNotAllowed,
		"/throwbar.control.v1.DevicesService/CreatePairingCode": http.StatusMethodNotAllowed,
		"/throwbar.device.v1.DeviceService/Pair":                http.StatusMethodNotAllowed,
	} {
		res, err := http.Get(s.URL + path + "?encoding=json&message=%7B%7D")
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if res.StatusCode != want {
			t.Errorf("GET %s: %d, want %d", path, res.StatusCode, want)
		}
	}
}

func TestScopesBound(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, app.Config{})
	tokens := controlv1connect.NewTokenServiceClient(s.Client(t, s.Owner, nil))
	viewer, err := tokens.CreateToken(t.Context(), &controlv1.CreateTokenRequest{Name: "v", Scope: optionv1.Scope_SCOPE_VIEWER})
	if err != nil {
		t.Fatal(err)
	}
	as := func(token string) controlv1connect.DevicesServiceClient {
		return controlv1connect.NewDevicesServiceClient(s.Client(t, token, nil))
	}
	if _, err := as(viewer.GetSecret()).ListDevices(t.Context(), &controlv1.ListDevicesRequest{}); err != nil {
		t.Errorf("a viewer lists devices: %v", err)
	}
	_, err = as(viewer.GetSecret()).CreatePairingCode(t.Context(), &controlv1.CreatePairingCodeRequest{})
	if connect.CodeOf(err) != connect.CodePermissionDenied {
		t.Errorf("a viewer makes a pairing code: %v", err)
	}
	device := pair(t, s, "laptop")
	_, err = as(device.GetToken()).ListDevices(t.Context(), &controlv1.ListDevicesRequest{})
	if connect.CodeOf(err) != connect.CodePermissionDenied {
		t.Errorf("a device lists devices: %v", err)
	}
	if _, err := tokens.RevokeToken(t.Context(), &controlv1.RevokeTokenRequest{TokenId: viewer.GetToken().GetTokenId()}); err != nil {
		t.Fatal(err)
	}
	_, err = as(viewer.GetSecret()).ListDevices(t.Context(), &controlv1.ListDevicesRequest{})
	if connect.CodeOf(err) != connect.CodeUnauthenticated {
		t.Errorf("a revoked token: %v", err)
	}
}

// pair makes a device.
func pair(t *testing.T, s *apptest.Server, name string) *devicev1.PairResponse {
	t.Helper()
	code, err := s.Devices(t).CreatePairingCode(t.Context(), &controlv1.CreatePairingCodeRequest{})
	if err != nil {
		t.Fatal(err)
	}
	res, err := s.Device(t, "").Pair(t.Context(), &devicev1.PairRequest{
		Code: strings.ToLower(code.GetCode()), Name: name, Kind: devicev1.Kind_KIND_BROWSER,
	})
	if err != nil {
		t.Fatal(err)
	}
	if res.GetCheckWord() != code.GetCheckWord() || res.GetCheckWord() == "" {
		t.Errorf("check words %q and %q", res.GetCheckWord(), code.GetCheckWord())
	}
	return res
}

func TestAPairingCodeWorksOnceAndDiesAfterFiveMisses(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, app.Config{})
	code, err := s.Devices(t).CreatePairingCode(t.Context(), &controlv1.CreatePairingCodeRequest{})
	if err != nil {
		t.Fatal(err)
	}
	try := func(guess string) connect.Code {
		_, err := s.Device(t, "").Pair(t.Context(), &devicev1.PairRequest{Code: guess, Name: "x", Kind: devicev1.Kind_KIND_BROWSER})
		return connect.CodeOf(err)
	}
	for range 4 {
		if got := try("AAAAA-AAAAA"); got != connect.CodePermissionDenied {
			t.Errorf("a wrong code: %v", got)
		}
	}
	if _, err := s.Device(t, "").Pair(t.Context(), &devicev1.PairRequest{
		Code: code.GetCode(), Name: "x", Kind: devicev1.Kind_KIND_BROWSER,
	}); err != nil {
		t.Errorf("the right code after four misses: %v", err)
	}
	if got := try(code.GetCode()); got != connect.CodePermissionDenied {
		t.Errorf("a used code: %v", got)
	}
	second, err := s.Devices(t).CreatePairingCode(t.Context(), &controlv1.CreatePairingCodeRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		try("AAAAA-AAAAA")
	}
	if got := try(second.GetCode()); got != connect.CodePermissionDenied {
		t.Errorf("the right code after five misses: %v", got)
	}
}

func TestMisspeltFieldsAreRefused(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, app.Config{})
	auth := map[string]string{"Authorization": "Bearer " + s.Owner}
	const dispatch = "/throwbar.control.v1.CommandService/Dispatch"
	for name, body := range map[string]string{
		"misspelt mode":  `{"deviceIds":["x"],"action":{"closeTabs":{"tabIds":["x_tb-1"]}},"dryrun":true}`,
		"unknown action": `{"deviceIds":["x"],"action":{"brewTea":{}}}`,
		"unknown enum":   `{"action":{"groupTabs":{"tabIds":["x_tb-1"],"colour":"COLOUR_MAUVE"}}}`,
		"two members":    `{"action":{"closeTabs":{"tabIds":["x_tb-1"]},"openTab":{"url":"a.example"}}}`,
		"a key twice":    `{"action":{"closeTabs":{"tabIds":["x_tb-1"],"tabIds":["x_tb-2"]}}}`,
		"breaks a rule":  `{"action":{"closeTabs":{"tabIds":[]}}}`,
		"no action":      `{}`,
		"not even JSON":  `{`,
	} {
		if got, text := post(t, s, dispatch, body, auth); got != 400 {
			t.Errorf("%s: %d %s", name, got, text)
		}
	}
}

func TestHealthAndReflectionSpeakToGRPCClients(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, app.Config{})
	conn, err := grpc.NewClient(s.Address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	health := healthpb.NewHealthClient(conn)
	for _, service := range []string{"", "throwbar.control.v1.CommandService"} {
		res, err := health.Check(t.Context(), &healthpb.HealthCheckRequest{Service: service})
		if err != nil || res.GetStatus() != healthpb.HealthCheckResponse_SERVING {
			t.Errorf("health of %q: %v, %v", service, res, err)
		}
	}
	if _, err := health.Check(t.Context(), &healthpb.HealthCheckRequest{Service: "no.such"}); err == nil {
		t.Error("an unknown service is healthy")
	}
	list := func(ctx context.Context) (*reflectpb.ServerReflectionResponse, error) {
		stream, err := reflectpb.NewServerReflectionClient(conn).ServerReflectionInfo(ctx)
		if err != nil {
			return nil, err
		}
		if err := stream.Send(&reflectpb.ServerReflectionRequest{
			MessageRequest: &reflectpb.ServerReflectionRequest_ListServices{},
		}); err != nil {
			return nil, err
		}
		return stream.Recv()
	}
	if _, err := list(t.Context()); err == nil {
		t.Error("reflection without a token")
	}
	res, err := list(metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+s.Owner))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, service := range res.GetListServicesResponse().GetService() {
		names = append(names, service.GetName())
	}
	if !strings.Contains(strings.Join(names, " "), "throwbar.control.v1.CommandService") {
		t.Errorf("reflection lists %v", names)
	}
}
