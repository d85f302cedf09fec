package cli_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"throwbar.dev/throwbar/catalog"
	"throwbar.dev/throwbar/gen"
	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
)

func programCatalogue(t *testing.T) *catalog.Catalogue {
	t.Helper()
	c, err := catalog.New(gen.Descriptors)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// closed answers a dispatch with one outcome for each device, with a status for each tab.
func closed(statuses ...commandv1.ItemStatus) func(*controlv1.DispatchRequest) (*controlv1.DispatchResponse, error) {
	return func(req *controlv1.DispatchRequest) (*controlv1.DispatchResponse, error) {
		result := &commandv1.CloseTabs_Result{}
		for i, status := range statuses {
			if status == commandv1.ItemStatus_ITEM_STATUS_OK {
				result.ClosedCount++
			}
			result.Items = append(result.Items, &commandv1.ItemOutcome{Id: req.GetAction().GetCloseTabs().GetTabIds()[i], Status: status})
		}
		return &controlv1.DispatchResponse{Outcomes: []*controlv1.DeviceOutcome{{
			DeviceId: laptop, DeviceName: "laptop", CommandId: "cmd-3",
			Outcome:  &controlv1.DeviceOutcome_Result{Result: &commandv1.Result{Kind: &commandv1.Result_CloseTabs{CloseTabs: result}}},
			SavedIds: []string{"saved-1"},
		}}}, nil
	}
}

const (
	okStatus   = commandv1.ItemStatus_ITEM_STATUS_OK
	goneStatus = commandv1.ItemStatus_ITEM_STATUS_NOT_FOUND
)

func TestCall(t *testing.T) {
	t.Parallel()
	f := newFake(t, func(f *fake) { f.onDispatch = closed(okStatus, goneStatus) })
	ids := laptop + "_tb1aa-1," + laptop + "_tb1aa-9"
	e := f.run(t, "call", "closeTabs", "--device", "laptop", "--tab-ids", ids, "--ttl", "10s")
	e.check(t, 7)
	golden(t, "call_close", e.out, f.url)
	req := f.dispatched()[0]
	if got := req.GetAction().GetCloseTabs().GetTabIds(); strings.Join(got, ",") != ids {
		t.Errorf("tab ids: %v", got)
	}
	if req.GetTtl().GetSeconds() != 10 || len(req.GetDeviceIds()) != 1 || req.GetDeviceIds()[0] != laptop {
		t.Errorf("envelope: %v", req)
	}
	e = f.run(t, "call", "closeTabs", "--tab-ids", ids, "-o", "json")
	e.check(t, 7)
	golden(t, "call_close_json", e.out, f.url)
	if req := f.dispatched()[1]; len(req.GetDeviceIds()) != 0 || req.GetTtl() != nil {
		t.Errorf("envelope: %v", req)
	}
}

func TestCallTakesJSONAndFlags(t *testing.T) {
	t.Parallel()
	f := newFake(t, func(f *fake) { f.onDispatch = closed(okStatus) })
	want := laptop + "_tb1aa-1"
	for name, r := range map[string]run{
		"json":            {args: []string{"--json", `{"tabIds":["` + want + `"]}`}},
		"stdin":           {args: []string{"--json", "-"}, stdin: strings.NewReader(`{"tab_ids":["` + want + `"]}`)},
		"flag over json":  {args: []string{"--json", `{"tabIds":["` + laptop + `_tb1aa-7"]}`, "--tab-ids", want}},
		"line ends":       {args: []string{"--tab-ids", want + "\n"}},
		"quoted":          {args: []string{"--tab-ids", `"` + want + `"`}},
		"globals first":   {args: []string{"--tab-ids=" + want}},
		"alias":           {args: []string{"alias", "--tab-ids", want}},
		"hidden --device": {args: []string{"--tab-ids", want, "--device", laptop}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r.server = f.url
			verb := []string{"call", "closeTabs"}
			if r.args[0] == "alias" {
				verb, r.args = []string{"-o", "table", "call", "tabClose"}, r.args[1:]
			}
			r.args = append(verb, r.args...)
			do(t, r).check(t, 0, "laptop (k3v9x2mqta)  ok")
			for _, req := range f.dispatched() {
				if got := req.GetAction().GetCloseTabs().GetTabIds(); len(got) != 1 || got[0] != want {
					t.Errorf("tab ids: %v", got)
				}
			}
		})
	}
}

// TestEveryCommandHasItsFlags builds the verb of each command of the catalogue and gives each field by its flag.
func TestEveryCommandHasItsFlags(t *testing.T) {
	t.Parallel()
	for _, e := range programCatalogue(t).Commands() {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t, func(f *fake) {
				f.onDispatch = func(*controlv1.DispatchRequest) (*controlv1.DispatchResponse, error) {
					return &controlv1.DispatchResponse{}, nil
				}
			})
			words := []string{"call", e.Name}
			for i := range e.In.Fields().Len() {
				fd := e.In.Fields().Get(i)
				words = append(words, fmt.Sprintf("--%s=%s", strings.ReplaceAll(string(fd.Name()), "_", "-"), sample(fd)))
			}
			if !e.FixesDevice() {
				words = append(words, "--device", "laptop")
			}
			f.run(t, words...).check(t, 1) // no outcome at all is no success
			if len(f.dispatched()) != 1 {
				t.Fatal("nothing was sent")
			}
			args, err := e.Args(f.dispatched()[0].GetAction())
			if err != nil {
				t.Fatal(err)
			}
			for i := range e.In.Fields().Len() {
				if fd := e.In.Fields().Get(i); !args.Has(fd) && fd.Kind() != protoreflect.BoolKind {
					t.Errorf("%s did not arrive", fd.Name())
				}
			}
			help := f.run(t, "call", e.Name, "--help")
			help.check(t, 0, strings.SplitN(e.Summary, ".", 2)[0])
			for _, alias := range e.Aliases {
				if strings.Contains(help.out, alias+"\n") || strings.Contains(help.out, "Aliases") {
					t.Errorf("help shows the alias %s", alias)
				}
			}
			if shown := strings.Contains(help.out, "--device "); shown == e.FixesDevice() {
				t.Errorf("--device is shown: %v", shown)
			}
		})
	}
}

func sample(fd protoreflect.FieldDescriptor) string {
	switch {
	case fd.Kind() == protoreflect.BoolKind:
		return "false"
	case fd.Kind() == protoreflect.EnumKind:
		return "cyan"
	case fd.Kind() == protoreflect.Uint32Kind:
		return "3"
	case strings.Contains(string(fd.Name()), "window"):
		return laptop + "_wb1aa-7"
	case fd.Name() == "tab_id" || fd.Name() == "tab_ids":
		return laptop + "_tb1aa-1"
	default:
		return "example.com"
	}
}

func TestWrongArguments(t *testing.T) {
	t.Parallel()
	f := newFake(t, func(f *fake) {
		f.devices = append(f.devices, proto.CloneOf(f.devices[0]))
		f.devices[2].DeviceId, f.devices[2].Online = "zz9x2mqtab", false
	})
	for words, says := range map[string]string{
		"call closeTab2":                                "throwbar call has no \"closeTab2\": did you mean closeTabs?",
		"call close-tabs":                               "did you mean closeTabs?",
		"cal closeTabs":                                 "did you mean call?",
		"frobnicate":                                    "`throwbar --help` lists what there is",
		"help frobnicate":                               "throwbar has no \"frobnicate\"",
		"help call closeTabz":                           "did you mean closeTabs?",
		"devices renam a b":                             "did you mean rename?",
		"call closeTabs":                                "closeTabs: --tab-ids is missing",
		"call closeTabs --tab-id x":                     "has no flag --tab-id: did you mean --tab-ids?",
		"call closeTabs --tab-ids ,":                    "--tab-ids \",\" has an empty item",
		"call closeTabs --tab-ids a extra":              "takes no \"extra\"",
		"call pinTabs --tab-ids a --pinned true":        "write a switch as --flag=true",
		"call pinTabs --tab-ids a":                      "--pinned is missing",
		"call groupTabs --tab-ids a --colour gren":      "--colour \"gren\" is not known: did you mean green?",
		"call groupTabs --tab-ids a --colour zzzzzz":    "is none of grey, blue, red",
		"call groupTabs --tab-ids a --colour 0":         "--colour",
		"call moveTabs --tab-ids a --index -1":          "--index \"-1\" is no number of the kind uint32",
		"call moveTabs --tab-ids a --index 99999999999": "is out of range",
		"call moveTabs --tab-ids a --index 100001":      "--index: must be less than or equal to 100000",
		"call openTab --device work":                    "--url is missing",
		"call openTab --url x":                          "openTab needs a device: say which with --device; there is laptop, work, laptop",
		"call openTab --url x --device worc":            "no device is called \"worc\": did you mean work?",
		"call openTab --url x --device laptop":          "2 devices are called \"laptop\": use an id: k3v9x2mqta (Chromium 156, online), zz9x2mqtab (Chromium 156, offline)",
		"call openTab --url x --device work --ttl 0s":   "--ttl has to be longer than zero",
		"call openTab --url x --device work --ttl soon": "--ttl",
		"call openTab --json {\"urll\":1}":              "--json: (line 1:2): unknown field \"urll\"",
		"call openTab --json {\"url\":\"x\"":            "--json: ",
		"call openTab --url x --dry-run --detach":       "only one of --dry-run and --detach",
		"query listTabs --page-size 0":                  "--page-size: must be greater than or equal to 1",
		"devices --output yaml":                         "--output \"yaml\" is none of table, json",
		"devices rename work":                           "needs a name",
		"devices rename":                                "needs a device and a name",
		"token create --name x --scope king":            "--scope has to be one of viewer, operator, owner, hook",
		"token create --name x --scope hook --ttl 0s":   "--ttl has to be at least 1s",
		"workspace create":                              "needs a name",
		"token create --scope owner":                    "--name is missing",
		"tabs --query x --window-id y":                  "only one of --query and --window-id",
		"chat --conversation abc hello":                 "at least four characters",
		"devices --server ftp://x":                      "is no address such as",
		"devices --server http://u:p@x":                 "is no address such as",
	} {
		t.Run(words, func(t *testing.T) {
			t.Parallel()
			e := f.run(t, strings.Fields(words)...)
			e.check(t, 2, says)
			if strings.Count(e.err, "\n") != 1 || !strings.HasPrefix(e.err, "throwbar: ") || e.out != "" {
				t.Errorf("not one line on the standard error:\n%s%s", e.out, e.err)
			}
			if len(f.dispatched()) > 0 {
				t.Error("it was sent all the same")
			}
		})
	}
}

func TestDetach(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	e := f.run(t, "call", "openTab", "--url", "example.com", "--device", "laptop,work", "--detach")
	e.check(t, 0, "laptop (k3v9x2mqta)  accepted  `throwbar history show cmd-7` shows it", "work (p4w7h2nnbc)")
	f.mu.Lock()
	defer f.mu.Unlock()
	if got := f.submitted[0]; len(got.GetDeviceIds()) != 2 || got.GetAction().GetOpenTab().GetUrl() != "example.com" {
		t.Errorf("submitted: %v", got)
	}
}

// TestFanOut has one device that ran the command and one that is offline.
func TestFanOut(t *testing.T) {
	t.Parallel()
	f := newFake(t, func(f *fake) {
		f.onDispatch = func(*controlv1.DispatchRequest) (*controlv1.DispatchResponse, error) {
			return &controlv1.DispatchResponse{Outcomes: []*controlv1.DeviceOutcome{
				{DeviceId: laptop, DeviceName: "laptop", Outcome: &controlv1.DeviceOutcome_Result{Result: &commandv1.Result{
					Kind: &commandv1.Result_OpenTab{OpenTab: &commandv1.OpenTab_Result{TabId: laptop + "_tb1aa-5", Url: "https://example.com/"}},
				}}},
				{DeviceId: work, DeviceName: "work", Outcome: &controlv1.DeviceOutcome_Error{Error: &commandv1.CommandError{
					Code: commandv1.ErrorCode_ERROR_CODE_OFFLINE, Message: "the device is not connected",
				}}},
			}}, nil
		}
	})
	e := f.run(t, "call", "openTab", "--url", "example.com", "--device", "laptop,work,LAPTOP")
	e.check(t, 7)
	golden(t, "fan_out", e.out+"---\n"+e.err, f.url)
	if got := f.dispatched()[0].GetDeviceIds(); len(got) != 2 {
		t.Errorf("devices: %v", got)
	}
	e = f.run(t, "call", "openTab", "--url", "example.com", "--device", "laptop,work", "--output", "json")
	e.check(t, 7)
	if !json.Valid([]byte(e.out)) || e.err != "" {
		t.Errorf("stdout %s\nstderr %s", e.out, e.err)
	}
}

// What was left alone on purpose is neither done nor a failure; what changed beside what was asked is shown.
func TestWhatWasLeftAlone(t *testing.T) {
	t.Parallel()
	const skipped = commandv1.ItemStatus_ITEM_STATUS_SKIPPED
	grouped := func(statuses ...commandv1.ItemStatus) *fake {
		return newFake(t, func(f *fake) {
			f.onDispatch = func(*controlv1.DispatchRequest) (*controlv1.DispatchResponse, error) {
				result := &commandv1.GroupTabs_Result{GroupId: laptop + "_gb1aa-4", SideEffects: &commandv1.SideEffects{
					ClosedWindowIds: []string{laptop + "_wb1aa-8"}, MovedTabIds: []string{laptop + "_tb1aa-1"},
				}}
				for i, status := range statuses {
					item := &commandv1.ItemOutcome{Id: fmt.Sprintf("%s_tb1aa-%d", laptop, i+1), Status: status}
					if status == okStatus {
						result.GroupedCount++
					} else {
						item.Detail = "it is pinned"
					}
					result.Items = append(result.Items, item)
				}
				return &controlv1.DispatchResponse{Outcomes: []*controlv1.DeviceOutcome{{
					DeviceId: laptop, DeviceName: "laptop", CommandId: "cmd-3",
					Outcome: &controlv1.DeviceOutcome_Result{Result: &commandv1.Result{Kind: &commandv1.Result_GroupTabs{GroupTabs: result}}},
				}}}, nil
			}
		})
	}
	call := []string{"call", "groupTabs", "--title", "Trip", "--tab-ids", laptop + "_tb1aa-1"}
	f := grouped(okStatus, skipped)
	e := f.run(t, call...)
	e.check(t, 7)
	golden(t, "call_skipped", e.out, f.url)
	for name, row := range map[string]struct {
		statuses []commandv1.ItemStatus
		code     int
		word     string
	}{
		"all done":                   {[]commandv1.ItemStatus{okStatus}, 0, "  ok\n"},
		"all left alone":             {[]commandv1.ItemStatus{skipped, skipped}, 7, "  left alone\n"},
		"left alone and failed":      {[]commandv1.ItemStatus{skipped, goneStatus}, 1, "  not done\n"},
		"done and failed":            {[]commandv1.ItemStatus{okStatus, goneStatus}, 7, "  partly done\n"},
		"done, left alone, failed":   {[]commandv1.ItemStatus{okStatus, skipped, goneStatus}, 7, "  partly done\n"},
		"nothing to do, no failures": {nil, 0, "  ok\n"},
	} {
		if e := grouped(row.statuses...).run(t, call...); e.code != row.code || !strings.Contains(e.out, row.word) {
			t.Errorf("%s: %d\n%s", name, e.code, e.out)
		}
	}
}

func TestInterruptCancelsTheCall(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	signals := make(chan os.Signal, 1)
	go func() {
		<-f.pending
		signals <- os.Interrupt
	}()
	e := do(t, run{server: f.url, args: []string{"call", "openTab", "--url", "x.example", "--device", "work"}, signals: signals})
	e.check(t, 130)
	if e.err != "" || e.out != "" {
		t.Errorf("stdout %q, stderr %q", e.out, e.err)
	}
}
