package cli_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
)

const desk = "d3skd3skd3"

// third adds a device that is online and runs only what the first one does not.
func third(f *fake) {
	d := proto.CloneOf(f.devices[0])
	d.DeviceId, d.Name, d.Actions = desk, "desk", []string{"closeTabs", "reloadTabs"}
	f.devices = append(f.devices, d)
}

func result(device, name string, closed uint32, statuses ...commandv1.ItemStatus) *controlv1.DeviceOutcome {
	out := &commandv1.CloseTabs_Result{ClosedCount: closed}
	for i, s := range statuses {
		out.Items = append(out.Items, &commandv1.ItemOutcome{Id: fmt.Sprintf("%s_t1-%d", device, i), Status: s})
	}
	return &controlv1.DeviceOutcome{
		DeviceId: device, DeviceName: name, CommandId: "cmd-" + device[:3], SavedIds: []string{"saved-" + device},
		Outcome: &controlv1.DeviceOutcome_Result{Result: &commandv1.Result{Kind: &commandv1.Result_CloseTabs{CloseTabs: out}}},
	}
}

func failed(device, name string, code commandv1.ErrorCode) *controlv1.DeviceOutcome {
	return &controlv1.DeviceOutcome{DeviceId: device, DeviceName: name, Outcome: &controlv1.DeviceOutcome_Error{
		Error: &commandv1.CommandError{Code: code, Message: "because"},
	}}
}

// TestAggregate has a command that ended differently on several devices.
func TestAggregate(t *testing.T) {
	t.Parallel()
	answer := []*controlv1.DeviceOutcome{
		result(laptop, "laptop", 7, okStatus, okStatus), result(desk, "desk", 4, okStatus, goneStatus),
		result("x1x1x1x1x1", "desk", 1, okStatus), failed(work, "wo\u202erk", commandv1.ErrorCode_ERROR_CODE_OFFLINE),
		failed("y1y1y1y1y1", "phone", commandv1.ErrorCode_ERROR_CODE_DENIED), result("z1z1z1z1z1", "tablet", 0, goneStatus),
	}
	f := newFake(t, func(f *fake) {
		f.onDispatch = func(*controlv1.DispatchRequest) (*controlv1.DispatchResponse, error) {
			return &controlv1.DispatchResponse{Outcomes: answer}, nil
		}
	})
	words := []string{"call", "closeTabs", "--tab-ids", laptop + "_tb1aa-1"}
	e := f.run(t, words...)
	e.check(t, 7, "closed 12 tabs on 3 devices; 1 offline, 1 denied, 1 not done, 2 tabs not")
	golden(t, "aggregate", e.out, "")
	if e.err != "" {
		t.Errorf("standard error: %s", e.err)
	}
	narrow := do(t, run{server: f.url, args: words, terminal: true, env: map[string]string{"COLUMNS": "72", "NO_COLOR": "1"}})
	golden(t, "aggregate_terminal", narrow.out, "")
	asJSON := f.run(t, append(words, "-o", "json")...)
	asJSON.check(t, 7)
	var doc struct{ Outcomes []map[string]any }
	if err := json.Unmarshal([]byte(asJSON.out), &doc); err != nil || len(doc.Outcomes) != 6 {
		t.Errorf("%d outcomes, %v", len(doc.Outcomes), err)
	}
}

// TestAggregateEnds has the exit codes and the last lines of several devices.
func TestAggregateEnds(t *testing.T) {
	t.Parallel()
	const offline, expired = commandv1.ErrorCode_ERROR_CODE_OFFLINE, commandv1.ErrorCode_ERROR_CODE_EXPIRED
	for name, row := range map[string]struct {
		outcomes []*controlv1.DeviceOutcome
		code     int
		says     string
	}{
		"all well": {[]*controlv1.DeviceOutcome{result(laptop, "a", 1, okStatus), result(work, "b", 0)}, 0, "\nclosed 1 tab on 2 devices\n"},
		"one is offline": {
			[]*controlv1.DeviceOutcome{result(laptop, "a", 2, okStatus), failed(work, "b", offline)},
			7, "\nclosed 2 tabs on 1 device; 1 offline\n",
		},
		"all are offline": {
			[]*controlv1.DeviceOutcome{failed(laptop, "a", offline), failed(work, "b", offline)},
			3, "\ncloseTabs done on none of 2 devices; 2 offline\n",
		},
		"all expired":  {[]*controlv1.DeviceOutcome{failed(laptop, "a", expired), failed(work, "b", expired)}, 4, "; 2 expired\n"},
		"each another": {[]*controlv1.DeviceOutcome{failed(laptop, "a", offline), failed(work, "b", expired)}, 1, "; 1 offline, 1 expired\n"},
		"another's result": {
			[]*controlv1.DeviceOutcome{result(laptop, "a", 2, okStatus), {DeviceId: work, DeviceName: "b"}}, 7, "; 1 unreadable\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t, func(f *fake) {
				f.onDispatch = func(*controlv1.DispatchRequest) (*controlv1.DispatchResponse, error) {
					return &controlv1.DispatchResponse{Outcomes: row.outcomes}, nil
				}
			})
			f.run(t, "call", "closeTabs", "--tab-ids", "a").check(t, row.code, row.says)
		})
	}
}

func TestAllDevices(t *testing.T) {
	t.Parallel()
	f := newFake(t, third, func(f *fake) {
		f.onDispatch = func(req *controlv1.DispatchRequest) (*controlv1.DispatchResponse, error) {
			answer := &controlv1.DispatchResponse{}
			for _, id := range req.GetDeviceIds() {
				answer.Outcomes = append(answer.Outcomes, failed(id, id, commandv1.ErrorCode_ERROR_CODE_OFFLINE))
			}
			return answer, nil
		}
	})
	for words, want := range map[string]string{
		"call openTab --url x --device all":                     laptop,
		"call reloadTabs --tab-ids a --device all":              "",
		"call closeTabsByUrl --url x --device=all":              laptop,
		"call openTab --url x --device desk --device laptop":    desk + "," + laptop,
		"call openTab --url x --device " + desk + ",work,DESK":  desk + "," + work,
		"call closeTabs --tab-ids a --device all --output json": "",
	} {
		before := len(f.dispatched())
		f.run(t, strings.Fields(words)...)
		all := f.dispatched()
		if len(all) != before+1 {
			t.Fatalf("%s: nothing was sent", words)
		}
		if got := strings.Join(all[before].GetDeviceIds(), ","); got != want {
			t.Errorf("%s: to %q, want %q", words, got, want)
		}
	}
	f.run(t, "call", "openTab", "--url", "x", "--device", "all,work").check(t, 2, "--device all means every device")
	f.run(t, "call", "getActiveTab", "--device", "all").check(t, 3, "no device that is online runs getActiveTab")
	for _, words := range []string{"query countByDomain --device all", "query listTabs --device-id all", "tabs --device all", "history --device all"} {
		f.run(t, strings.Fields(words)...).check(t, 0)
	}
	f.run(t, "query", "countByDomain", "--device", "laptop").check(t, 0, laptop)
	if e := f.run(t, "query", "countByDomain", "--device", "all"); strings.Contains(e.out, "all") {
		t.Errorf("the word is sent as a device: %s", e.out)
	}
	f.run(t, "__complete", "call", "openTab", "--device", "").check(t, 0, "all\tevery device")
	if e := f.run(t, "__complete", "devices", "revoke", ""); strings.Contains(e.out, "every device") {
		t.Error("all can be revoked at once")
	}
}

// planned answers a dry run.
func planned(req *controlv1.DispatchRequest) (*controlv1.DispatchResponse, error) {
	return &controlv1.DispatchResponse{PlanHash: "h4sh", Outcomes: []*controlv1.DeviceOutcome{
		{DeviceId: laptop, DeviceName: "laptop", Outcome: &controlv1.DeviceOutcome_Plan{Plan: &controlv1.Plan{
			Action: req.GetAction(), Targets: []*controlv1.PlannedTarget{
				{
					Id: laptop + "_tb1aa-1", Status: okStatus, Undoable: true, Url: "https://www.youtube.com/watch?v=1",
					Title: "Cats \x1b[31mlive\u202e and a title that goes on for longer than a window is wide, and then some",
				},
				{Id: laptop + "_tb1aa-9", Status: goneStatus},
			},
		}}},
		{DeviceId: desk, DeviceName: "desk", Outcome: &controlv1.DeviceOutcome_Plan{Plan: &controlv1.Plan{
			Action: req.GetAction(), Targets: []*controlv1.PlannedTarget{{Id: desk + "_t1-1", Status: okStatus, Title: "受信トレイ"}},
			Asks: true, AskReason: "closeTabs acts on 22 targets, and asks a person for more than 20 at once",
		}}},
		failed(work, "work", commandv1.ErrorCode_ERROR_CODE_OFFLINE),
	}}, nil
}

func TestDryRun(t *testing.T) {
	t.Parallel()
	f := newFake(t, third, func(f *fake) { f.onDispatch = planned })
	words := []string{"call", "closeTabs", "--tab-ids", laptop + "_tb1aa-1", "--dry-run"}
	e := f.run(t, words...)
	e.check(t, 7)
	golden(t, "dry_run", e.out+"---\n"+e.err, "")
	if !f.dispatched()[0].GetDryRun() {
		t.Error("it was sent to be run")
	}
	narrow := do(t, run{server: f.url, args: words, terminal: true, env: map[string]string{"COLUMNS": "80", "NO_COLOR": "1"}})
	golden(t, "dry_run_terminal", narrow.out, "")
	f.run(t, append(words, "-o", "json")...).check(t, 7, `"planHash": "h4sh"`, `"undoable": true`, `\u202e`)

	// The line is the call again, but for the hash in place of the dry run, with what came from elsewhere written out.
	for name, row := range map[string]struct {
		words []string
		stdin string
		want  string
	}{
		"plain":   {[]string{"--tab-ids=a,b", "--ttl", "10s", "--dry-run=true", "--plan-hash", "old"}, "", "--tab-ids=a,b --ttl 10s"},
		"stdin":   {[]string{"--dry-run", "--json", "-"}, `{"tabIds": ["it's"]}`, `--json '{"tabIds":["it'\''s"]}'`},
		"devices": {[]string{"--dry-run", "--device", "laptop", "--tab-ids", "a b", "--device=desk"}, "", "--device " + laptop + "," + desk + " --tab-ids 'a b'"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := run{server: f.url, args: append([]string{"call", "closeTabs"}, row.words...), stdin: strings.NewReader(row.stdin)}
			do(t, r).check(t, 7, "\n  throwbar call closeTabs "+row.want+" --plan-hash h4sh\n")
		})
	}
	f.run(t, "call", "openTab", "--url", "x", "--device", "all", "--dry-run").check(t, 7, "--device "+laptop+" --plan-hash h4sh\n")
}

func TestPlanHash(t *testing.T) {
	t.Parallel()
	f := newFake(t, func(f *fake) { f.onDispatch = closed(okStatus) })
	f.run(t, "call", "closeTabs", "--tab-ids", laptop+"_tb1aa-1", "--plan-hash", "h4sh").check(t, 0)
	if req := f.dispatched()[0]; req.GetPlanHash() != "h4sh" || req.GetDryRun() {
		t.Errorf("envelope: %v", req)
	}
}
