package throwbar

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connecthttp"
	"connectrpc.com/connect/v2/connectproto"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"

	"throwbar.dev/throwbar/gen"
	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	"throwbar.dev/throwbar/gen/go/throwbar/control/v1/controlv1connect"
)

// control answers callers by functions.
type control struct {
	controlv1connect.UnimplementedCommandServiceHandler
	controlv1connect.UnimplementedCatalogueServiceHandler

	dispatch func(context.Context, *controlv1.DispatchRequest) (*controlv1.DispatchResponse, error)
}

func (c *control) Dispatch(ctx context.Context, req *controlv1.DispatchRequest) (*controlv1.DispatchResponse, error) {
	return c.dispatch(ctx, req)
}

func (c *control) GetCatalogue(context.Context, *controlv1.GetCatalogueRequest) (*controlv1.GetCatalogueResponse, error) {
	return &controlv1.GetCatalogueResponse{Descriptors: gen.Descriptors}, nil
}

func (c *control) WatchEvents(_ context.Context, _ *controlv1.WatchEventsRequest, stream controlv1connect.CommandServiceWatchEventsServerStream) error {
	if err := stream.Send(&controlv1.WatchEventsResponse{Event: &controlv1.Event{Cursor: 1}}); err != nil {
		return err
	}
	return connect.NewError(connect.CodeResourceExhausted, "too slow")
}

func caller(t *testing.T, c *control, token string) *Client {
	t.Helper()
	server := connect.NewServer(authenticate)
	controlv1connect.RegisterCommandServiceHandler(server, c)
	controlv1connect.RegisterCatalogueServiceHandler(server, c)
	mux := http.NewServeMux()
	connecthttp.Mount(mux, server)
	ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 1 {
			t.Errorf("called by %s", r.Proto)
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(ts.Close)
	client, err := New(Config{Server: ts.URL, Token: token})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.CloseIdle)
	return client
}

func outcomes(o ...*controlv1.DeviceOutcome) *controlv1.DispatchResponse {
	return &controlv1.DispatchResponse{Outcomes: o}
}

func TestCallIsTyped(t *testing.T) {
	t.Parallel()
	var got *controlv1.DispatchRequest
	client := caller(t, &control{dispatch: func(ctx context.Context, req *controlv1.DispatchRequest) (*controlv1.DispatchResponse, error) {
		got = req
		if deadline, ok := ctx.Deadline(); !ok || time.Until(deadline) > 36*time.Second {
			return nil, connect.NewError(connect.CodeInternal, "no deadline")
		}
		return outcomes(&controlv1.DeviceOutcome{Outcome: &controlv1.DeviceOutcome_Result{Result: opened("https://a/")}}), nil
	}}, "secret")
	res, err := Call(t.Context(), client, "d", &commandv1.OpenTab{Url: "a"})
	if err != nil || res.GetUrl() != "https://a/" {
		t.Fatalf("Call = %v, %v", res, err)
	}
	if want := (&controlv1.DispatchRequest{DeviceIds: []string{"d"}, Action: openTab("a")}); !proto.Equal(got, want) {
		t.Errorf("request %v, want %v", got, want)
	}
	if _, err := Call(t.Context(), client, "", &commandv1.CloseTabs{TabIds: []string{"a"}}); CodeOf(err) != CodeInternal {
		t.Errorf("the result of another command: %v", err)
	}
	if len(got.GetDeviceIds()) != 0 {
		t.Errorf("devices %v", got.GetDeviceIds())
	}
}

func TestErrorsAreOurOwn(t *testing.T) {
	t.Parallel()
	detail, err := connectproto.NewErrorDetail(&commandv1.CommandError{
		Code: commandv1.ErrorCode_ERROR_CODE_APPROVAL_TIMED_OUT, Message: "nobody there", Retryable: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	other, err := connectproto.NewErrorDetail(&emptypb.Empty{})
	if err != nil {
		t.Fatal(err)
	}
	failed, err := connectproto.NewErrorDetail(&commandv1.CommandError{Code: commandv1.ErrorCode_ERROR_CODE_FAILED, Message: "x"})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		from connect.Code
		want Code
	}{
		{connect.CodeCanceled, CodeCancelled},
		{connect.CodeInvalidArgument, CodeInvalid},
		{connect.CodeOutOfRange, CodeInvalid},
		{connect.CodeDeadlineExceeded, CodeExpired},
		{connect.CodeNotFound, CodeNotFound},
		{connect.CodeAlreadyExists, CodeConflict},
		{connect.CodeAborted, CodeConflict},
		{connect.CodePermissionDenied, CodeDenied},
		{connect.CodeResourceExhausted, CodeBusy},
		{connect.CodeFailedPrecondition, CodeRefused},
		{connect.CodeUnimplemented, CodeUnsupported},
		{connect.CodeUnavailable, CodeUnavailable},
		{connect.CodeUnauthenticated, CodeUnauthenticated},
		{connect.CodeInternal, CodeInternal},
		{connect.CodeUnknown, CodeInternal},
		{connect.CodeDataLoss, CodeInternal},
	} {
		client := caller(t, &control{dispatch: func(context.Context, *controlv1.DispatchRequest) (*controlv1.DispatchResponse, error) {
			authored := connect.NewError(row.from, "said so").WithDetail(other)
			if row.from != connect.CodeUnknown { // what the server attaches where no command's code fits
				authored = authored.WithDetail(failed)
			}
			return nil, authored
		}}, "secret")
		_, err := Call(t.Context(), client, "d", &commandv1.OpenTab{Url: "a"})
		var own *Error
		if !errors.As(err, &own) || own.Code != row.want || own.Message != "said so" || !own.remote {
			t.Errorf("%v: %#v", row.from, err)
		}
		var foreign *connect.Error
		if errors.As(err, &foreign) {
			t.Errorf("%v: the transport's error shows", row.from)
		}
	}
	client := caller(t, &control{dispatch: func(context.Context, *controlv1.DispatchRequest) (*controlv1.DispatchResponse, error) {
		return nil, connect.NewError(connect.CodeFailedPrecondition, "x").WithDetail(other).WithDetail(detail)
	}}, "secret")
	if _, err := client.Commands.Dispatch(t.Context(), &controlv1.DispatchRequest{}); CodeOf(err) != CodeApprovalTimedOut {
		t.Errorf("the exact code is lost: %v", err)
	}
}

func TestOtherEndsOfACall(t *testing.T) {
	t.Parallel()
	client := caller(t, &control{dispatch: func(ctx context.Context, req *controlv1.DispatchRequest) (*controlv1.DispatchResponse, error) {
		switch req.GetAction().GetOpenTab().GetUrl() {
		case "refused":
			return outcomes(&controlv1.DeviceOutcome{Outcome: &controlv1.DeviceOutcome_Error{Error: &commandv1.CommandError{
				Code: commandv1.ErrorCode_ERROR_CODE_REFUSED, Message: "no", Retryable: true,
			}}}), nil
		case "two":
			return outcomes(&controlv1.DeviceOutcome{}, &controlv1.DeviceOutcome{}), nil
		case "hangs":
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return outcomes(&controlv1.DeviceOutcome{}), nil
	}}, "secret")
	for url, want := range map[string]Code{"refused": CodeRefused, "two": CodeInvalid, "nothing": CodeInternal} {
		if _, err := Call(t.Context(), client, "d", &commandv1.OpenTab{Url: url}); CodeOf(err) != want {
			t.Errorf("%s: %v", url, err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := Call(ctx, client, "d", &commandv1.OpenTab{Url: "hangs"}); CodeOf(err) != CodeExpired {
		t.Errorf("deadline: %v", err)
	}
	ctx, cancel = context.WithCancel(t.Context())
	cancel()
	if _, err := Call(ctx, client, "d", &commandv1.OpenTab{Url: "hangs"}); CodeOf(err) != CodeCancelled || !errors.Is(err, context.Canceled) {
		t.Errorf("cancel: %v", err)
	}
	if _, err := Wrap(&emptypb.Empty{}); CodeOf(err) != CodeUnsupported {
		t.Errorf("Wrap = %v", err)
	}
	if CodeOf(nil) != "" || CodeOf(io.EOF) != CodeInternal || FromCommand(nil) != nil {
		t.Error("the code of no error")
	}
	if got := CodeOf(FromCommand(&commandv1.CommandError{})); got != CodeInternal {
		t.Errorf("an error without a code: %s", got)
	}
}

func TestStreamsAndTokens(t *testing.T) {
	t.Parallel()
	client := caller(t, &control{}, "secret")
	stream, err := client.Commands.WatchEvents(t.Context(), &controlv1.WatchEventsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	if e, err := stream.Receive(); err != nil || e.GetEvent().GetCursor() != 1 {
		t.Fatalf("Receive = %v, %v", e, err)
	}
	if _, err := stream.Receive(); CodeOf(err) != CodeBusy {
		t.Errorf("Receive = %v", err)
	}
	if c, err := client.LoadCatalogue(t.Context()); err != nil || len(c.Commands()) == 0 {
		t.Errorf("LoadCatalogue = %v, %v", c, err)
	}
	bad := caller(t, &control{}, "wrong")
	if _, err := bad.LoadCatalogue(t.Context()); CodeOf(err) != CodeUnauthenticated {
		t.Errorf("LoadCatalogue = %v", err)
	}
	if _, err := New(Config{Server: "nowhere"}); err == nil {
		t.Error("a server without a scheme is accepted")
	}
}

func TestIdentityIsKept(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "deep", "identity.json")
	id := Identity{Server: "http://h", DeviceID: "d", Token: "very secret"}
	if err := id.Save(path); err != nil {
		t.Fatal(err)
	}
	if err := id.Save(path); err != nil { // over the old one
		t.Fatal(err)
	}
	if got, err := LoadIdentity(path); err != nil || got != id {
		t.Errorf("LoadIdentity = %v, %v", got, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) != 1 {
		t.Errorf("files: %v, %v", left, err)
	}
	if _, err := LoadIdentity(path + "x"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("LoadIdentity = %v", err)
	}
	for _, raw := range []string{"", "{}", `{"server":"http://h"}`} {
		if err := os.WriteFile(path, []byte(raw), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := LoadIdentity(path); err == nil {
			t.Errorf("%q is accepted", raw)
		}
	}
}

func TestTokenIsNeverPrinted(t *testing.T) {
	t.Parallel()
	id := Identity{Server: "http://h", DeviceID: "d", Token: "very secret"}
	var b strings.Builder
	slog.New(slog.NewJSONHandler(&b, nil)).Info("x", slog.Any("identity", id))
	fmt.Fprintf(&b, "%v %+v %#v %s", id, id, id, id)
	if strings.Contains(b.String(), "secret") || !strings.Contains(b.String(), "device d") {
		t.Error(b.String())
	}
}

func TestNewDeviceWantsWhatItNeeds(t *testing.T) {
	t.Parallel()
	id := Identity{Server: "https://h", DeviceID: "d", Token: "t"}
	for name, cfg := range map[string]DeviceConfig{
		"no handler": {Identity: id}, "no identity": {Handler: &testHandler{}},
		"no server":    {Handler: &testHandler{}, Identity: Identity{DeviceID: "d", Token: "t"}},
		"no transport": {Handler: &testHandler{}, Identity: id, Transport: 7, Catalogue: catalogue()},
	} {
		if _, err := NewDevice(cfg); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := NewDevice(DeviceConfig{Handler: &testHandler{}, Identity: id}); err != nil {
		t.Error(err)
	}
}
