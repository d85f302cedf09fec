package app_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"throwbar.dev/throwbar/agent/model/modeltest"
	"throwbar.dev/throwbar/app"
	"throwbar.dev/throwbar/app/apptest"
	client "throwbar.dev/throwbar/clients/go"
	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
	"throwbar.dev/throwbar/gen/go/throwbar/agent/v1/agentv1connect"
	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	"throwbar.dev/throwbar/store"
)

// secretWord is in every text of the private window.
const secretWord = "Qz7canary"

// incognito is a browser with a private window and an ordinary one. It answers as a real one does: with texts.
type incognito struct {
	commandv1.DeclineTabs
	commandv1.DeclineCustom

	device  string
	changed chan struct{}
}

func (b *incognito) id(kind string, n int) string {
	return fmt.Sprintf("%s_%sb1-%d", b.device, kind, n)
}

func (b *incognito) Snapshot() client.State {
	own := b.id("w", 1)
	return client.State{
		Windows: []*commandv1.Window{{WindowId: own, Kind: "normal", Private: true}, {WindowId: b.id("w", 2), Kind: "normal"}},
		Groups:  []*commandv1.TabGroup{{GroupId: b.id("g", 1), WindowId: own, Title: secretWord + " group"}},
		Tabs: []*commandv1.Tab{
			{TabId: b.id("t", 1), WindowId: own, GroupId: b.id("g", 1), Url: "https://" + secretWord + ".example/1", Title: secretWord + " one", Private: true},
			{TabId: b.id("t", 2), WindowId: own, Index: 1, Url: "https://" + secretWord + ".example/2", Title: secretWord + " two", Private: true},
			{TabId: b.id("t", 3), WindowId: b.id("w", 2), Url: "https://open.example/", Title: "plain"},
		},
	}
}

func (b *incognito) Take() client.Changes     { return client.Changes{} }
func (b *incognito) Changed() <-chan struct{} { return b.changed }

func (b *incognito) GetActiveTab(context.Context, *commandv1.GetActiveTab) (*commandv1.GetActiveTab_Result, error) {
	id := b.id("t", 1)
	return &commandv1.GetActiveTab_Result{TabId: &id, Url: "https://" + secretWord + ".example/1", Title: secretWord + " one"}, nil
}

func (b *incognito) CloseTabs(_ context.Context, a *commandv1.CloseTabs) (*commandv1.CloseTabs_Result, error) {
	res := &commandv1.CloseTabs_Result{ClosedCount: uint32(len(a.GetTabIds()))}
	for _, id := range a.GetTabIds() {
		res.Items = append(res.Items, &commandv1.ItemOutcome{Id: id, Status: commandv1.ItemStatus_ITEM_STATUS_OK, Detail: "closed " + secretWord})
	}
	return res, nil
}

func (b *incognito) SaveTabs(_ context.Context, a *commandv1.SaveTabs) (*commandv1.SaveTabs_Result, error) {
	res := &commandv1.SaveTabs_Result{SavedCount: 1}
	for i, id := range a.GetTabIds() {
		item := &commandv1.ItemOutcome{Id: id, Status: commandv1.ItemStatus_ITEM_STATUS_OK}
		if i == 0 { // the private one
			item.Status, item.Detail = commandv1.ItemStatus_ITEM_STATUS_SKIPPED, secretWord+" is never saved"
		}
		res.Items = append(res.Items, item)
	}
	return res, nil
}

func (b *incognito) ReloadTabs(context.Context, *commandv1.ReloadTabs) (*commandv1.ReloadTabs_Result, error) {
	return nil, client.Errorf(client.CodeFailed, "%s does not load", secretWord)
}

func (b *incognito) NavigateTab(context.Context, *commandv1.NavigateTab) (*commandv1.NavigateTab_Result, error) {
	return &commandv1.NavigateTab_Result{Url: "https://" + secretWord + ".example/landed"}, nil
}

// TestNothingOfAPrivateTabIsKept looks through all that a server writes down for a text that only private tabs have.
func TestNothingOfAPrivateTabIsKept(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, cfg app.Config) {
		cfg.DataDir = t.TempDir()
		scripted := modeltest.NewServer(t)
		log := &logBuffer{}
		cfg.Model = app.ModelConfig{Name: "scripted", BaseURL: scripted.URL, Key: modeltest.Key}
		cfg.Log = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		identities, err := apptest.Enrol(t.Context(), store.Config{Dir: cfg.DataDir, URL: cfg.Store.URL}, "", 1)
		if err != nil {
			t.Fatal(err)
		}
		s := apptest.Start(t, cfg)
		identity := identities[0]
		identity.Server = s.URL
		b := &incognito{device: identity.DeviceID, changed: make(chan struct{})}
		stop := runIncognito(t, b, identity)
		apptest.Eventually(t, "the private tabs are found", func() bool {
			found, err := s.Browser(t).SearchTabs(t.Context(), &controlv1.SearchTabsRequest{Query: secretWord})
			return err == nil && found.GetTotal() == 2 && found.GetTabs()[0].GetPrivate()
		})
		chatPrivately(t, s, b, scripted)
		actPrivately(t, s, b)
		stop()
		apptest.Eventually(t, "what is private is forgotten when the browser is gone", func() bool {
			list, err := s.Browser(t).ListTabs(t.Context(), &controlv1.ListTabsRequest{})
			windows, werr := s.Browser(t).ListWindows(t.Context(), &controlv1.ListWindowsRequest{})
			return errors.Join(err, werr) == nil && list.GetTotal() == 1 && len(windows.GetWindows()) == 1
		})
		s.Stop()
		pool := database(t, cfg)
		found := 0
		for where, text := range tables(t, pool, cfg.Store.URL != "") {
			found += strings.Count(text, "open.example")
			if i := strings.Index(text, secretWord); i >= 0 {
				t.Errorf("%s: …%q…", where, text[max(0, i-80):min(len(text), i+40)])
			}
		}
		if found < 2 { // the last known copy, and the saved tab
			t.Errorf("the ordinary tab is there %d times: this looks in the wrong place", found)
		}
		if text := log.String(); strings.Contains(text, secretWord) {
			t.Errorf("the log has it: %s", text)
		}
		if cfg.Store.URL == "" {
			for _, name := range []string{"throwbar.db", "throwbar.db-wal"} {
				if raw, err := os.ReadFile(filepath.Join(cfg.DataDir, name)); err == nil && strings.Contains(string(raw), secretWord) {
					t.Errorf("%s has it somewhere", name)
				}
			}
		}
	})
}

// runIncognito runs the browser, and gives what ends it.
func runIncognito(t *testing.T, b *incognito, identity client.Identity) (stop func()) {
	t.Helper()
	device, err := client.NewDevice(client.DeviceConfig{
		Identity: identity, Handler: b, State: b, BootTag: "b1", Jitter: func() float64 { return 0 },
		Actions: []string{"closeTabs", "getActiveTab", "reloadTabs", "navigateTab", "saveTabs"},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- device.Run(ctx) }()
	stopped := false
	stop = func() {
		if cancel(); !stopped {
			stopped = true
			<-ended
		}
	}
	t.Cleanup(stop)
	return stop
}

// actPrivately does with private tabs whatever can be done.
func actPrivately(t *testing.T, s *apptest.Server, b *incognito) {
	t.Helper()
	run := func(args proto.Message) *controlv1.DeviceOutcome {
		t.Helper()
		action, err := client.Wrap(args)
		if err != nil {
			t.Fatal(err)
		}
		res, err := s.Commands(t).Dispatch(t.Context(), &controlv1.DispatchRequest{DeviceIds: []string{b.device}, Action: action})
		if err != nil {
			t.Fatal(err)
		}
		return res.GetOutcomes()[0]
	}
	first, second, plain := b.id("t", 1), b.id("t", 2), b.id("t", 3)
	if out := run(&commandv1.GetActiveTab{}); !strings.Contains(out.GetResult().GetGetActiveTab().GetTitle(), secretWord) {
		t.Errorf("whoever asks is told: %v", out)
	}
	run(&commandv1.ReloadTabs{TabIds: []string{first}})
	run(&commandv1.NavigateTab{TabId: first, Url: "https://elsewhere.example/"})
	if out := run(&commandv1.SaveTabs{TabIds: []string{first, plain}}); len(out.GetSavedIds()) != 1 {
		t.Errorf("saved: %v", out)
	}
	if out := run(&commandv1.CloseTabs{TabIds: []string{second, plain}}); out.GetResult().GetCloseTabs().GetClosedCount() != 2 || len(out.GetSavedIds()) != 1 {
		t.Errorf("closed: %v", out)
	}
	desk := approvals(t, s)
	asks(t, s.Client(t, s.Owner, nil))
	action, err := client.Wrap(&commandv1.CloseTabs{TabIds: []string{first, plain}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Commands(t).Submit(t.Context(), &controlv1.SubmitRequest{Action: action}); err != nil {
		t.Fatal(err)
	}
	list, err := desk.ListApprovals(t.Context(), &controlv1.ListApprovalsRequest{})
	if err != nil || len(list.GetApprovals()) != 1 {
		t.Fatalf("asked: %v, %v", list, err)
	}
	if ts := list.GetApprovals()[0].GetCalls()[0].GetTargets(); len(ts) != 2 || ts[0].GetId() != first || ts[0].GetTitle() != "(a private tab)" ||
		ts[0].GetUrl() != "" || ts[0].GetUndoable() || !ts[1].GetUndoable() || ts[1].GetTitle() != "plain" {
		t.Errorf("shown: %v", ts)
	}
	if out, err := desk.Decide(t.Context(), approve(list.GetApprovals()[0])); err != nil || out.GetOutcomes()[0].GetError() != nil {
		t.Fatalf("decided: %v, %v", out, err)
	}
	apptest.Eventually(t, "it is run", func() bool {
		res, err := s.Commands(t).ListCommands(t.Context(), &controlv1.ListCommandsRequest{})
		return err == nil && res.GetCommands()[0].GetEndedAt() != nil
	})
}

// chatPrivately has the agent look at what is open: what it reads is kept in the conversation.
func chatPrivately(t *testing.T, s *apptest.Server, b *incognito, scripted *modeltest.Server) {
	t.Helper()
	scripted.Add(
		modeltest.Use("listTabs", `{}`), modeltest.Use("countByDomain", `{}`), modeltest.Use("listTabGroups", `{}`),
		modeltest.Use("getActiveTab", `{"deviceId":"`+b.device+`"}`), modeltest.Text("done"),
	)
	stream, err := agentv1connect.NewAgentServiceClient(s.Client(t, s.Owner, nil)).Chat(t.Context(), &agentv1.ChatRequest{Message: "what is open?"})
	if err != nil {
		t.Fatal(err)
	}
	seen := ""
	for {
		frame, err := stream.Receive()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		seen += fmt.Sprint(frame)
	}
	if !strings.Contains(seen, "private") {
		t.Errorf("the agent saw no private tab: %s", seen)
	}
}

// tables are all texts and bytes of a database, by table.
func tables(t *testing.T, pool *sql.DB, isPostgres bool) map[string]string {
	t.Helper()
	names := "select name from sqlite_master where type = 'table' and name not like 'sqlite_%'"
	if isPostgres {
		names = "select table_name from information_schema.tables where table_schema = current_schema()"
	}
	out := map[string]string{}
	for _, name := range column(t, pool, names) {
		out[string(name)] = rowsOf(t, pool, string(name))
	}
	return out
}

func rowsOf(t *testing.T, pool *sql.DB, table string) string {
	t.Helper()
	rows, err := pool.QueryContext(t.Context(), `select * from "`+table+`"`)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	columns, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for rows.Next() {
		values, to := make([]any, len(columns)), make([]any, len(columns))
		for i := range values {
			to[i] = &values[i]
		}
		if err := rows.Scan(to...); err != nil {
			t.Fatal(err)
		}
		for _, v := range values {
			if raw, ok := v.([]byte); ok {
				out.Write(raw)
			} else {
				fmt.Fprint(&out, v)
			}
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}
