package rpc_test

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect/v2"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/known/durationpb"

	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"throwbar.dev/throwbar/app"
	"throwbar.dev/throwbar/app/apptest"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	"throwbar.dev/throwbar/gen/go/throwbar/control/v1/controlv1connect"
	optionv1 "throwbar.dev/throwbar/gen/go/throwbar/option/v1"
)

// clock is a wall clock that a test sets.
type clock struct {
	mu    sync.Mutex
	ahead time.Duration // guarded by mu
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.ahead)
}

func (c *clock) set(ahead time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ahead += ahead
}

// ours are all methods of the contract, from its descriptors.
func ours() []protoreflect.MethodDescriptor {
	var all []protoreflect.MethodDescriptor
	protoregistry.GlobalFiles.RangeFiles(func(f protoreflect.FileDescriptor) bool {
		for i := range f.Services().Len() {
			methods := f.Services().Get(i).Methods()
			for j := range methods.Len() {
				if m := methods.Get(j); strings.HasPrefix(string(m.FullName()), "throwbar.") {
					all = append(all, m)
				}
			}
		}
		return true
	})
	return all
}

// registered asks the server whether it has a service.
func registered(t *testing.T, s *apptest.Server, service protoreflect.FullName) bool {
	t.Helper()
	res := &healthpb.HealthCheckResponse{}
	stream, err := s.Client(t, "", nil).CallClientStream(t.Context(), connect.Spec{
		StreamType: connect.StreamTypeBidi, Procedure: "/grpc.health.v1.Health/Check",
		Schema: healthpb.File_grpc_health_v1_health_proto.Services().ByName("Health").Methods().ByName("Check"),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stream.Close() }()
	_ = stream.Send(&healthpb.HealthCheckRequest{Service: string(service)}) // receive says more
	_ = stream.CloseSend()
	err = stream.Receive(res)
	if err != nil && connect.CodeOf(err) != connect.CodeNotFound {
		t.Fatalf("health of %s: %v", service, err)
	}
	return err == nil
}

// answersWithin is how long a stream may say nothing until it counts as let through.
const answersWithin = 500 * time.Millisecond

// callEmpty makes a call with an empty message and says how it was answered; ok for a stream that says nothing within a time.
func callEmpty(t *testing.T, client *connect.Client, m protoreflect.MethodDescriptor, within time.Duration) connect.Code {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	stream, err := client.CallClientStream(ctx, connect.Spec{
		StreamType: connect.StreamTypeBidi, Schema: m, Procedure: "/" + string(m.Parent().FullName()) + "/" + string(m.Name()),
	})
	if err == nil {
		defer func() { _ = stream.Close() }()
		_ = stream.Send(leastOf(m)) // receive says more
		_ = stream.CloseSend()
		err = stream.Receive(&controlv1.ListDevicesResponse{})
	}
	if err == nil || errors.Is(err, io.EOF) || ctx.Err() != nil {
		return 0
	}
	return connect.CodeOf(err)
}

// leastOf is a message that a caller who may is let through with, to where the method itself decides: nothing, but for
// a method that wants to know more before.
func leastOf(m protoreflect.MethodDescriptor) proto.Message {
	if m.Name() == "CreateWorkspace" {
		return &controlv1.CreateWorkspaceRequest{Name: "third"}
	}
	return &controlv1.ListDevicesRequest{} // nothing, whatever it is for
}

// accessTable reads who may call what: a line for each method, a word for each role. out is a caller who is nobody, no
// is one who may not, and ok one who may.
func accessTable(t *testing.T) (roles []string, table map[string][]string) {
	t.Helper()
	raw, err := os.ReadFile("testdata/access.txt")
	if err != nil {
		t.Fatal(err)
	}
	table = map[string][]string{}
	for line := range strings.Lines(string(raw)) {
		words := strings.Fields(line)
		switch {
		case len(words) == 0 || words[0] == "#":
		case roles == nil:
			roles = words[1:]
		case len(words) != len(roles)+1 || table[words[0]] != nil:
			t.Fatalf("line %q", line)
		default:
			table[words[0]] = words[1:]
		}
	}
	return roles, table
}

// secrets has a token of every role.
func secrets(t *testing.T, s *apptest.Server, c *clock) map[string]string {
	t.Helper()
	owner := s.Client(t, s.Owner, nil)
	tokens := controlv1connect.NewTokenServiceClient(owner)
	made := func(scope optionv1.Scope, ttl time.Duration) *controlv1.CreateTokenResponse {
		req := &controlv1.CreateTokenRequest{Name: "test", Scope: scope}
		if ttl > 0 {
			req.Ttl = durationpb.New(ttl)
		}
		res, err := tokens.CreateToken(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	other, err := controlv1connect.NewWorkspaceServiceClient(owner).CreateWorkspace(
		t.Context(), &controlv1.CreateWorkspaceRequest{Name: "other"})
	if err != nil {
		t.Fatal(err)
	}
	revoked := made(optionv1.Scope_SCOPE_OWNER, 0)
	if _, err := tokens.RevokeToken(t.Context(), &controlv1.RevokeTokenRequest{TokenId: revoked.GetToken().GetTokenId()}); err != nil {
		t.Fatal(err)
	}
	all := map[string]string{
		"none": "", "garbage": "thb_" + strings.Repeat("A", 43), "revoked": revoked.GetSecret(), "owner": s.Owner,
		"expired":  made(optionv1.Scope_SCOPE_OWNER, time.Minute).GetSecret(),
		"viewer":   made(optionv1.Scope_SCOPE_VIEWER, 0).GetSecret(),
		"operator": made(optionv1.Scope_SCOPE_OPERATOR, time.Hour).GetSecret(),
		"hook":     made(optionv1.Scope_SCOPE_HOOK, 0).GetSecret(),
		"device":   pair(t, s, "laptop").GetToken(), "foreign": other.GetSecret(),
	}
	c.set(time.Minute)
	return all
}

// Security 8: every method of the contract, as every role. A method that the table does not name, or that has no access
// option, fails.
func TestEveryRPCAsEveryRole(t *testing.T) {
	t.Parallel()
	c := &clock{}
	s := apptest.Start(t, app.Config{Now: c.now})
	roles, table := accessTable(t)
	tokens := secrets(t, s, c)
	clients := map[string]*connect.Client{}
	for _, role := range roles {
		secret, ok := tokens[role]
		if !ok {
			t.Fatalf("there is no token for the role %s", role)
		}
		clients[role] = s.Client(t, secret, nil)
	}
	if len(roles) != len(tokens) {
		t.Errorf("the table has %d roles of %d", len(roles), len(tokens))
	}
	seen := 0
	for _, m := range ours() {
		name := strings.TrimPrefix(string(m.FullName()), "throwbar.")
		access, _ := proto.GetExtension(m.Options(), optionv1.E_Access).(*optionv1.Access)
		if access.GetScope() == optionv1.Scope_SCOPE_UNSPECIFIED {
			t.Errorf("%s has no access option", name)
		}
		want, ok := table[name]
		if !ok {
			t.Errorf("%s is not in testdata/access.txt: say there who may call it", name)
			continue
		}
		seen++
		if !registered(t, s, m.Parent().FullName()) {
			t.Logf("%s is not registered: its callers are not tested", m.Parent().FullName())
			continue
		}
		for i, role := range roles {
			within := time.Minute // a refusal comes at once, but not on a busy machine
			if want[i] == "ok" && m.IsStreamingServer() {
				within = answersWithin
			}
			if got := verdict(callEmpty(t, clients[role], m, within)); got != want[i] {
				t.Errorf("%s as %s: %s, want %s", name, role, got, want[i])
			}
		}
	}
	if seen != len(table) {
		t.Errorf("the table has %d methods, of which %d are in the contract", len(table), seen)
	}
}

func verdict(code connect.Code) string {
	switch code {
	case connect.CodeUnauthenticated:
		return "out"
	case connect.CodePermissionDenied:
		return "no"
	case connect.CodeInternal, connect.CodeUnknown, connect.CodeUnimplemented:
		return code.String()
	default:
		return "ok"
	}
}
