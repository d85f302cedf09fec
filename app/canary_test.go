package app_test

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"connectrpc.com/connect/v2"
	_ "github.com/mattn/go-sqlite3" // to look into the file
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"
	"google.golang.org/protobuf/types/known/anypb"

	"throwbar.dev/throwbar/agent/model/modeltest"
	"throwbar.dev/throwbar/app"
	"throwbar.dev/throwbar/app/apptest"
	"throwbar.dev/throwbar/catalog"
	"throwbar.dev/throwbar/catalog/catalogtest"
	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	"throwbar.dev/throwbar/gen/go/throwbar/control/v1/controlv1connect"
	devicev1 "throwbar.dev/throwbar/gen/go/throwbar/device/v1"
	optionv1 "throwbar.dev/throwbar/gen/go/throwbar/option/v1"
	"throwbar.dev/throwbar/server/dispatch"
	"throwbar.dev/throwbar/store"
	"throwbar.dev/throwbar/store/storetest"
)

// planted are the sensitive fields of the contract, and where the test puts a canary into each or takes one out of it. A
// field that is new has to be added, and planted.
var planted = map[protoreflect.FullName]string{
	"throwbar.command.v1.Custom.request":                 "custom",
	"throwbar.command.v1.Custom.Result.response":         "answer",
	"throwbar.control.v1.CreatePairingCodeResponse.code": "credentials",
	"throwbar.control.v1.CreateTokenResponse.secret":     "credentials",
	"throwbar.control.v1.CreateWorkspaceResponse.secret": "credentials",
	"throwbar.device.v1.PairRequest.code":                "credentials, pair",
	"throwbar.device.v1.PairResponse.token":              "credentials",
	"throwbar.device.v1.RotateTokenResponse.token":       "credentials",
	"throwbar.command.v1.SecretBox.secret":               "keepSecret",
	"throwbar.command.v1.KeepSecret.*":                   "keepSecret",
	"throwbar.command.v1.KeepSecret.Result.*":            "answer",
}

func TestEverySensitiveFieldIsPlanted(t *testing.T) {
	t.Parallel()
	c := secretiveCatalogue(t)
	var each func(protoreflect.MessageDescriptors)
	found := 0
	each = func(all protoreflect.MessageDescriptors) {
		for n := range all.Len() {
			each(all.Get(n).Messages())
			for m := range all.Get(n).Fields().Len() {
				fd := all.Get(n).Fields().Get(m)
				if !catalog.Sensitive(fd) {
					continue
				}
				found++
				if planted[fd.FullName()] == "" && planted[fd.Parent().FullName()+".*"] == "" {
					t.Errorf("%s is sensitive, and no canary is put into it", fd.FullName())
				}
			}
		}
	}
	c.Files().RangeFiles(func(fd protoreflect.FileDescriptor) bool {
		each(fd.Messages())
		return true
	})
	if found < 20 {
		t.Errorf("only %d sensitive fields", found)
	}
}

func secretiveCatalogue(t *testing.T) *catalog.Catalogue {
	t.Helper()
	c, err := catalog.New(catalogtest.Image(t, catalogtest.Secretive()))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// logBuffer takes what a server logs.
type logBuffer struct {
	mu  sync.Mutex
	out bytes.Buffer
}

func (b *logBuffer) Write(raw []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.out.Write(raw)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.out.String()
}

// clumsy is a ledger that says in an error what it should not.
type clumsy struct {
	dispatch.Ledger

	secret atomic.Pointer[string]
}

func (c *clumsy) Accept(ctx context.Context, commands []dispatch.Acceptance) error {
	if secret := c.secret.Swap(nil); secret != nil {
		return fmt.Errorf("cannot write for %s", *secret)
	}
	return c.Ledger.Accept(ctx, commands)
}

// mine is a whole server with canaries all over it.
type mine struct {
	t        *testing.T
	s        *apptest.Server
	known    *catalog.Catalogue
	log      *logBuffer
	canaries *catalogtest.Canaries
	device   string
	ledger   *clumsy
	said     []string // error texts

	mu    sync.Mutex
	turn  int             // guarded by mu
	wrong map[string]bool // guarded by mu; canaries that the device got
}

func (m *mine) failed(err error) {
	m.t.Helper()
	if err == nil {
		m.t.Error("a call that has to fail did not")
		return
	}
	text := fmt.Sprintf("%v %+v", err, err)
	var ce *connect.Error
	if errors.As(err, &ce) {
		for _, d := range ce.Details() {
			text += fmt.Sprint(d)
		}
	}
	m.said = append(m.said, text)
}

// credentials makes every kind of secret that a server makes itself.
func (m *mine) credentials() {
	t := m.t
	m.canaries.Add(m.s.Owner)
	token, err := tokens(t, m.s).CreateToken(t.Context(), &controlv1.CreateTokenRequest{Name: "ci", Scope: optionv1.Scope_SCOPE_VIEWER})
	if err != nil {
		t.Fatal(err)
	}
	code, err := m.s.Devices(t).CreatePairingCode(t.Context(), &controlv1.CreatePairingCodeRequest{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = m.s.Device(t, "").Pair(t.Context(), &devicev1.PairRequest{Code: m.canaries.Text(), Name: "thief", Kind: devicev1.Kind_KIND_DESKTOP})
	m.failed(err)
	paired, err := m.s.Device(t, "").Pair(t.Context(), &devicev1.PairRequest{Code: code.GetCode(), Name: "safe", Kind: devicev1.Kind_KIND_DESKTOP})
	if err != nil {
		t.Fatal(err)
	}
	_, err = m.s.Device(t, "").Pair(t.Context(), &devicev1.PairRequest{Code: code.GetCode(), Name: "again", Kind: devicev1.Kind_KIND_DESKTOP})
	m.failed(err)
	m.canaries.Add(token.GetSecret(), code.GetCode(), strings.ReplaceAll(code.GetCode(), "-", ""), paired.GetToken())
	workspace, err := controlv1connect.NewWorkspaceServiceClient(m.s.Client(t, m.s.Owner, nil)).CreateWorkspace(
		t.Context(), &controlv1.CreateWorkspaceRequest{Name: "other"})
	if err == nil {
		m.canaries.Add(workspace.GetSecret())
	}
	m.connect(paired.GetDeviceId(), paired.GetToken())
	rotated, err := m.s.Device(t, paired.GetToken()).RotateToken(t.Context(), &devicev1.RotateTokenRequest{})
	if err == nil && rotated.GetToken() != "" {
		m.canaries.Add(rotated.GetToken())
	}
	if _, err := tokens(t, m.s).RevokeToken(t.Context(), &controlv1.RevokeTokenRequest{TokenId: token.GetToken().GetTokenId()}); err != nil {
		t.Fatal(err)
	}
	_, err = controlv1connect.NewTokenServiceClient(m.s.Client(t, token.GetSecret(), nil)).ListTokens(t.Context(), &controlv1.ListTokensRequest{})
	m.failed(err)
}

// connect is a device that answers with canaries: results, other commands' results, and errors that repeat what it was told.
func (m *mine) connect(id, token string) {
	t := m.t
	stream, err := m.s.Device(t, token).Connect(context.WithoutCancel(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	send := func(f *devicev1.DeviceFrame) {
		_ = stream.Send(&devicev1.ConnectRequest{Frames: []*devicev1.DeviceFrame{f}})
	}
	send(&devicev1.DeviceFrame{Kind: &devicev1.DeviceFrame_Hello{Hello: &devicev1.Hello{
		DeviceId: id, Actions: []string{"keepSecret"}, BootTag: "b1",
	}}})
	m.device = id
	up, ended := make(chan struct{}), make(chan struct{})
	var once sync.Once
	go func() {
		defer close(ended)
		for {
			msg, err := stream.Receive()
			if err != nil {
				return
			}
			for _, frame := range msg.GetFrames() {
				if frame.GetWelcome() != nil {
					once.Do(func() { close(up) })
				}
				if c := frame.GetCommand(); c != nil {
					send(&devicev1.DeviceFrame{Kind: &devicev1.DeviceFrame_Outcome{Outcome: m.answer(c)}})
				}
			}
		}
	}()
	t.Cleanup(func() { _ = stream.Close(); <-ended })
	<-up
}

func (m *mine) answer(c *devicev1.CommandRequest) *devicev1.Outcome {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.turn++
	out := &devicev1.Outcome{CommandId: c.GetCommandId()}
	entry, _ := m.known.Lookup("keepSecret")
	args, err := entry.Args(c.GetAction())
	if err != nil {
		m.t.Errorf("the device got %v", err)
		return out
	}
	secrets := catalog.Secrets(args)
	for _, s := range secrets {
		m.wrong[s] = true
	}
	switch filled := dynamicpb.NewMessage(entry.Out); m.turn % 4 {
	case 0, 1:
		m.canaries.Fill(m.t, filled, m.turn, m.known)
		wrapped, err := entry.WrapResult(filled)
		if err != nil {
			m.t.Error(err)
		}
		out.Outcome = &devicev1.Outcome_Result{Result: wrapped}
	case 2:
		detail, err := anypb.New(&controlv1.CreateTokenResponse{Secret: m.canaries.Text()})
		if err != nil {
			m.t.Error(err)
		}
		out.Outcome = &devicev1.Outcome_Error{Error: &commandv1.CommandError{
			Code: commandv1.ErrorCode_ERROR_CODE_FAILED, Message: "cannot open it with " + strings.Join(secrets, ", "), Details: []*anypb.Any{detail},
		}}
	case 3: // another command's
		out.Outcome = &devicev1.Outcome_Result{Result: &commandv1.Result{Kind: &commandv1.Result_Custom{
			Custom: &commandv1.Custom_Result{Response: []byte(m.canaries.Text())},
		}}}
	}
	return out
}

// commands sends what a caller can: good and bad ones, with canaries in all arguments.
func (m *mine) commands() {
	t := m.t
	entry, _ := m.known.Lookup("keepSecret")
	client := m.s.Commands(t)
	for n := range 8 {
		args := entry.New()
		m.mu.Lock()
		m.canaries.Fill(t, args, n, m.known)
		m.mu.Unlock()
		action, err := entry.Wrap(args)
		if err != nil {
			t.Fatal(err)
		}
		if n == 7 {
			if _, err := client.Submit(t.Context(), &controlv1.SubmitRequest{DeviceIds: []string{m.device}, Action: action}); err != nil {
				t.Fatal(err)
			}
			continue
		}
		res, err := client.Dispatch(t.Context(), &controlv1.DispatchRequest{DeviceIds: []string{m.device}, Action: action, DryRun: n == 6})
		if err != nil || len(res.GetOutcomes()) != 1 {
			t.Fatalf("dispatch: %v, %v", res, err)
		}
	}
	for _, field := range []string{"password", "maybe"} {
		args := entry.New()
		long := strings.Repeat(m.canaries.Text(), 12)
		args.Set(entry.In.Fields().ByName(protoreflect.Name(field)), protoreflect.ValueOfString(long))
		action, err := entry.Wrap(args)
		if err != nil {
			t.Fatal(err)
		}
		_, err = client.Dispatch(t.Context(), &controlv1.DispatchRequest{DeviceIds: []string{m.device}, Action: action})
		m.failed(err)
	}
	custom := &commandv1.Action{Kind: &commandv1.Action_Custom{Custom: &commandv1.Custom{
		Method: "example.v1.Kettle.Brew", Request: []byte(m.canaries.Text()), DescriptorDigest: "d",
	}}}
	_, err := client.Dispatch(t.Context(), &controlv1.DispatchRequest{DeviceIds: []string{m.device}, Action: custom})
	m.failed(err)
	custom.GetCustom().Method = ""
	_, err = client.Submit(t.Context(), &controlv1.SubmitRequest{DeviceIds: []string{m.device}, Action: custom})
	m.failed(err)
}

// clumsiness is a failure whose cause has a token: the caller is not told it, and the log has it without.
func (m *mine) clumsiness() {
	secret := "thb_" + m.canaries.Text() + "AAAAAAAAAAAAAAAA"
	m.ledger.secret.Store(&secret)
	entry, _ := m.known.Lookup("keepSecret")
	action, err := entry.Wrap(entry.New())
	if err != nil {
		m.t.Fatal(err)
	}
	_, err = m.s.Commands(m.t).Dispatch(m.t.Context(), &controlv1.DispatchRequest{DeviceIds: []string{m.device}, Action: action})
	m.failed(err)
}

// requests sends what is no good call, with canaries in headers, addresses and bodies. The answers must not repeat them.
func (m *mine) requests() {
	t := m.t
	const json, binary = "application/json", "application/proto"
	pair, dispatch := "/throwbar.device.v1.DeviceService/Pair", "/throwbar.control.v1.CommandService/Dispatch"
	create := "/throwbar.control.v1.TokenService/CreateToken"
	fake := func() string { return "thb_" + m.canaries.Text() + "AAAAAAAAAAAAAAAAAAAA" }
	for _, r := range []struct{ method, path, auth, kind, body string }{
		{"POST", pair, "", json, `{"code": ` + m.canaries.Text() + `}`},
		{"POST", pair, "", json, `{"code": 123` + m.canaries.Text()},
		{"POST", pair, "", json, `{"code": "` + m.canaries.Text() + `", "name": 7}`},
		{"POST", pair, "", json, `{"kind": "` + m.canaries.Text() + `"}`},
		{"POST", pair, "", json, `{"name": {"` + m.canaries.Text() + `": 1}}`},
		{"POST", pair, "", json, `["` + m.canaries.Text() + `"]`},
		{"POST", pair, "", binary, "\x0a\xff" + m.canaries.Text()},
		{"POST", pair, "", binary, "\x0a\x0c\xff\xfe" + m.canaries.Text()},
		{"POST", dispatch, "Bearer " + m.s.Owner, json, `{"action": {"custom": {"method": "a", "request": "` + m.canaries.Text() + `!"}}}`},
		{"POST", dispatch, "Bearer " + m.s.Owner, json, `{"action": {"custom": {"request": {"` + m.canaries.Text() + `": 1}}}}`},
		{"POST", dispatch, "Bearer " + m.s.Owner, json, `{"action": {"keepSecret": {"password": "` + m.canaries.Text() + `"}}}`},
		{"POST", dispatch, "Bearer " + m.s.Owner, json, `{"` + m.canaries.Text() + `": 1}`},
		{"POST", dispatch, "Bearer " + m.s.Owner, json, `{"ttl": "` + m.canaries.Text() + `"}`},
		{"POST", dispatch, "Bearer " + m.s.Owner, json, `{"action": {}, "action": "` + m.canaries.Text() + `"}`},
		{"POST", create, "Bearer " + fake(), json, `{}`},
		{"POST", create, "Basic " + m.canaries.Text() + m.canaries.Text(), json, `{}`},
		{"POST", create, m.canaries.Text(), json, `{}`},
		{"POST", create + "?token=" + fake(), "", json, `{}`},
		{"GET", create + "?message=" + fake() + "&encoding=json", "Bearer " + fake(), json, ``},
		{"GET", "/throwbar.control.v1.TokenService/ListTokens?connect=v1&encoding=json&message=" + url.QueryEscape(`{"pageToken":`+m.canaries.Text()), "Bearer " + m.s.Owner, "", ``},
		{"POST", "/" + fake(), "", json, `{}`},
		{"GET", "/metrics?token=" + fake(), "Bearer " + fake(), "", ``},
		{"POST", pair, "", m.canaries.Text() + "/x", `{}`},
		{"POST", pair, "", "application/grpc", "\x00\x00\x00\x00\x0c\x0a\xff" + m.canaries.Text()},
	} {
		req, err := http.NewRequestWithContext(t.Context(), r.method, m.s.URL+r.path, strings.NewReader(r.body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", r.kind)
		if r.auth != "" {
			req.Header.Set("Authorization", r.auth)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		if err = errors.Join(err, res.Body.Close()); err != nil {
			t.Fatal(err)
		}
		if res.StatusCode == http.StatusOK && r.kind != "application/grpc" {
			t.Errorf("%s %s %s: 200 %s", r.method, r.path, r.body, body)
		}
		m.said = append(m.said, string(body), fmt.Sprint(res.Header), fmt.Sprint(res.Trailer))
	}
}

// read gives everything that somebody can read of the server, by where.
func (m *mine) read(database string) map[string]string {
	t := m.t
	out := map[string]string{"errors": strings.Join(m.said, "\n")}
	list, err := m.s.Commands(t).ListCommands(t.Context(), &controlv1.ListCommandsRequest{})
	if err != nil || len(list.GetCommands()) < 7 {
		t.Fatalf("history: %v, %v", list, err)
	}
	out["list"] = everything(t, list)
	for _, c := range list.GetCommands() {
		one, err := m.s.Commands(t).GetCommand(t.Context(), &controlv1.GetCommandRequest{CommandId: c.GetCommandId()})
		if err != nil {
			t.Fatal(err)
		}
		out["get"] += everything(t, one)
		cancelled, err := m.s.Commands(t).CancelCommand(t.Context(), &controlv1.CancelCommandRequest{CommandId: c.GetCommandId()})
		if err != nil {
			t.Fatal(err)
		}
		out["cancel"] += everything(t, cancelled)
	}
	out["events"] = m.events()
	audit, err := controlv1connect.NewAuditServiceClient(m.s.Client(t, m.s.Owner, nil)).ReadAudit(t.Context(), &controlv1.ReadAuditRequest{})
	if err != nil {
		t.Fatal(err)
	}
	accepted := 0
	for {
		page, err := audit.Receive()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range page.GetEntries() {
			record := &controlv1.AuditRecord{}
			if err := proto.Unmarshal(e.GetRecord(), record); err != nil {
				t.Fatal(err)
			}
			if record.GetKind() == controlv1.AuditKind_AUDIT_KIND_COMMAND_ACCEPTED {
				accepted++
			}
			out["audit"] += everything(t, record) + string(e.GetRecord())
		}
	}
	if accepted < 7 || !strings.Contains(out["audit"], "[redacted]") {
		t.Errorf("%d acceptances in the audit record, which has to show that there were secrets", accepted)
	}
	for name, words := range map[string][]string{
		"history verb": {"history", "-o", "json"}, "audit verb": {"audit", "export"}, "token verb": {"token", "list"}, "policy verb": {"policy", "show"}, "approvals verb": {"approvals", "list"}, "devices verb": {"devices"},
	} {
		code, stdout, stderr := throwbarCLI(t, m.s, words...)
		if code != 0 {
			t.Errorf("%s: %d %s", name, code, stderr)
		}
		out[name] = stdout + stderr
	}
	if code, text, stderr := throwbarCLI(t, m.s, "audit", "verify"); code != 0 || !strings.Contains(text, "is intact") {
		t.Errorf("verify: %d %s%s", code, text, stderr)
	}
	out["metrics"] = m.metrics()
	m.s.Stop()
	out["log"] = m.log.String()
	out["database"] = m.database(database)
	m.swept(database, func() *sql.DB { return m.open(database) })
	return out
}

// everything is a message in every form that is looked through.
func everything(t *testing.T, msg proto.Message) string {
	t.Helper()
	raw, err := proto.Marshal(msg)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw) + fmt.Sprint(msg)
}

func (m *mine) events() string {
	t := m.t
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	cursor := uint64(0)
	stream, err := m.s.Commands(t).WatchEvents(ctx, &controlv1.WatchEventsRequest{Cursor: &cursor})
	if err != nil {
		t.Fatal(err)
	}
	var out string
	for ends := 0; ends < 7; {
		frame, err := stream.Receive()
		if err != nil {
			t.Fatal(err)
		}
		if state := frame.GetEvent().GetCommand().GetState(); state == controlv1.State_STATE_SUCCEEDED || state == controlv1.State_STATE_FAILED {
			ends++
		}
		out += everything(t, frame)
	}
	return out
}

func (m *mine) metrics() string {
	t := m.t
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, m.s.URL+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+m.s.Owner)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := io.ReadAll(res.Body)
	if err = errors.Join(err, res.Body.Close()); err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("metrics: %d, %v", res.StatusCode, err)
	}
	return string(raw)
}

// database is what the tables of events, of the audit record and of tokens hold, and of SQLite's file all that was never
// anything but a hash.
func (m *mine) database(databaseURL string) string {
	t := m.t
	pool := m.open(databaseURL)
	var out strings.Builder
	if databaseURL == "" {
		path := filepath.Join(m.s.Dir, "throwbar.db")
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, canary := range m.canaries.All() {
			if strings.HasPrefix(canary, "thb_") && bytes.Contains(raw, []byte(canary)) {
				t.Error("the file of the database has a token")
			}
		}
	}
	for _, statement := range []string{
		"select body from srv_event", "select record from srv_audit", "select name from srv_token", "select name from srv_device", "select summary from srv_command",
		"select reason from srv_approval", "select decision_reason from srv_approval", "select targets from srv_approval_call",
		"select settings from srv_policy", "select body from srv_rule",
	} {
		n := 0
		for _, body := range column(t, pool, statement) {
			out.Write(body)
			n++
		}
		if n == 0 {
			t.Fatalf("%s: no rows", statement)
		}
	}
	return out.String()
}

// open has the database open beside the store.
func (m *mine) open(databaseURL string) *sql.DB {
	if databaseURL != "" {
		return storetest.Open(m.t, databaseURL)
	}
	pool, err := sql.Open("sqlite3", filepath.Join(m.s.Dir, "throwbar.db"))
	if err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() { _ = pool.Close() })
	return pool
}

// column is what a statement gives.
func column(t *testing.T, pool *sql.DB, statement string) (all [][]byte) {
	t.Helper()
	rows, err := pool.QueryContext(t.Context(), statement)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var body []byte
		if err := rows.Scan(&body); err != nil {
			t.Fatal(err)
		}
		all = append(all, body)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// TestNoSecretIsRepeatedAnywhere (security 16, 22) puts a canary into every sensitive field and a token wherever one can be
// sent, drives calls that succeed and fail through the whole server with the log at its loudest, and then looks for each
// canary in everything that can be read.
func TestNoSecretIsRepeatedAnywhere(t *testing.T) {
	t.Parallel()
	for _, engine := range postgres.Engines() {
		t.Run(engine.Name, func(t *testing.T) {
			t.Parallel()
			log := &logBuffer{}
			databaseURL := engine.URL(t)
			image := catalogtest.Image(t, catalogtest.Secretive())
			ledger := &clumsy{}
			scripted := modeltest.NewServer(t)
			s := apptest.Start(t, app.Config{
				Parts: app.Parts{Ledger: func(l dispatch.Ledger) dispatch.Ledger {
					ledger.Ledger = l
					return ledger
				}},
				Model: app.ModelConfig{Name: "scripted", BaseURL: scripted.URL, Key: modeltest.Key},
				Store: store.Config{URL: databaseURL}, Image: image, Log: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})),
			})
			m := &mine{t: t, s: s, known: secretiveCatalogue(t), log: log, ledger: ledger, canaries: &catalogtest.Canaries{}, wrong: map[string]bool{}}
			m.credentials()
			m.commands()
			m.requests()
			m.clumsiness()
			m.policies()
			m.approvals()
			m.agent(scripted)
			texts := m.read(databaseURL)
			if !strings.Contains(texts["log"], "cannot write for [redacted]") || len(m.canaries.All()) < 300 {
				t.Errorf("%d canaries, and this log:\n%s", len(m.canaries.All()), texts["log"])
			}
			m.mu.Lock()
			if len(m.wrong) < 50 {
				t.Errorf("the device itself got only %d secrets", len(m.wrong))
			}
			m.mu.Unlock()
			canaries := m.canaries.All()
			slices.Sort(canaries)
			for where, text := range texts {
				for _, canary := range slices.Compact(canaries) {
					for _, form := range []string{
						canary, hex.EncodeToString([]byte(canary)), base64.RawStdEncoding.EncodeToString([]byte(canary))[:len(canary)],
					} {
						if i := strings.Index(text, form); i >= 0 {
							t.Errorf("%s: %s in …%q…", where, canary, text[max(0, i-60):min(len(text), i+40)])
							break
						}
					}
				}
			}
		})
	}
}
