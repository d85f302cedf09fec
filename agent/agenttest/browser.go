// Package agenttest has what tests of the agent act on: a few devices with tabs, which behave like the server in front
// of real ones.
package agenttest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"google.golang.org/protobuf/proto"

	"throwbar.dev/throwbar/agent/turn"
	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	"throwbar.dev/throwbar/ident"
)

var (
	_ turn.Commander = (*World)(nil)
	_ turn.Querier   = (*World)(nil)
)

// World is some devices and their tabs.
type World struct {
	// BeforeCommand and BeforeQuery, if set, run first; what they return ends the call.
	BeforeCommand func(context.Context, turn.Call) error
	BeforeQuery   func(context.Context, turn.Query) error
	// Refuse, if set, is how a command ends on every device.
	Refuse *commandv1.CommandError
	// Groups are the tab groups, whatever the device.
	Groups []*commandv1.TabGroup
	// Stranger, if set, answers an action that the program was not built with.
	Stranger func(*commandv1.Action) *commandv1.Result

	// Gone, if set, answers a call that is taken back.
	Gone func(turn.Call) *controlv1.DispatchResponse

	mu       sync.Mutex
	devices  []*controlv1.Device
	tabs     []*commandv1.Tab
	next     int
	commands []turn.Call
	queries  []turn.Query
}

// New makes a world with two devices, lap (Work Laptop, online) and home (Home PC, offline).
func New() *World {
	return &World{next: 1, devices: []*controlv1.Device{
		{DeviceId: "lap", Name: "Work Laptop", Online: true}, {DeviceId: "home", Name: "Home PC"},
	}}
}

// Tab opens a tab and returns its id.
func (w *World) Tab(device, url, title string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.open(device, url, title)
}

func (w *World) open(device, url, title string) string {
	id := ident.Composite{Device: device, Kind: ident.Tab, Boot: "b", Native: int64(w.next)}.String()
	w.next++
	w.tabs = append(w.tabs, &commandv1.Tab{
		TabId: id, WindowId: ident.Composite{Device: device, Kind: ident.Window, Boot: "b", Native: 1}.String(), Url: url, Title: title,
	})
	return id
}

// Rename gives a device another name.
func (w *World) Rename(device, name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, d := range w.devices {
		if d.GetDeviceId() == device { // answers may still be read elsewhere
			w.devices[i] = &controlv1.Device{DeviceId: device, Name: name, Online: d.GetOnline()}
		}
	}
}

// Tabs are the addresses of the open tabs.
func (w *World) Tabs() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	urls := make([]string, len(w.tabs))
	for i, tab := range w.tabs {
		urls[i] = tab.GetUrl()
	}
	return urls
}

// Commands are the commands so far.
func (w *World) Commands() []turn.Call {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.commands)
}

// Queries are the queries so far.
func (w *World) Queries() []turn.Query {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.queries)
}

// Command runs a command on every device that it is for.
func (w *World) Command(ctx context.Context, call turn.Call) (*controlv1.DispatchResponse, error) {
	w.mu.Lock()
	w.commands = append(w.commands, call)
	w.mu.Unlock()
	if w.BeforeCommand != nil {
		if err := w.BeforeCommand(ctx, call); err != nil {
			return nil, err
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	devices := call.DeviceIDs
	if ids := call.Action.GetCloseTabs().GetTabIds(); len(ids) > 0 {
		for _, id := range ids {
			device, _, _ := strings.Cut(id, "_")
			if !slices.Contains(devices, device) {
				devices = append(devices, device)
			}
		}
	}
	res := &controlv1.DispatchResponse{}
	for _, id := range devices {
		res.Outcomes = append(res.Outcomes, w.outcome(id, call.Action))
	}
	return res, nil
}

// Withdraw takes back a call.
func (w *World) Withdraw(_ context.Context, call turn.Call, _ string) (*controlv1.DispatchResponse, error) {
	if w.Gone == nil {
		return nil, nil //nolint:nilnil // nothing was written down
	}
	return w.Gone(call), nil
}

func (w *World) outcome(id string, action *commandv1.Action) *controlv1.DeviceOutcome {
	out := &controlv1.DeviceOutcome{DeviceId: id}
	fail := func(code commandv1.ErrorCode, message string) *controlv1.DeviceOutcome {
		out.Outcome = &controlv1.DeviceOutcome_Error{Error: &commandv1.CommandError{Code: code, Message: message}}
		return out
	}
	at := slices.IndexFunc(w.devices, func(d *controlv1.Device) bool { return d.GetDeviceId() == id })
	if at < 0 {
		return fail(commandv1.ErrorCode_ERROR_CODE_NOT_FOUND, fmt.Sprintf("there is no device %q", id))
	}
	out.DeviceName = w.devices[at].GetName()
	if w.Refuse != nil {
		return fail(w.Refuse.GetCode(), w.Refuse.GetMessage())
	}
	if !w.devices[at].GetOnline() {
		return fail(commandv1.ErrorCode_ERROR_CODE_OFFLINE, out.GetDeviceName()+" is offline")
	}
	result := &commandv1.Result{}
	switch kind := action.GetKind().(type) {
	case *commandv1.Action_CloseTabs:
		result.Kind = &commandv1.Result_CloseTabs{CloseTabs: w.closeTabs(id, kind.CloseTabs.GetTabIds(), out)}
	case *commandv1.Action_OpenTab:
		result.Kind = &commandv1.Result_OpenTab{OpenTab: &commandv1.OpenTab_Result{
			TabId: w.open(id, kind.OpenTab.GetUrl(), ""), Url: kind.OpenTab.GetUrl(),
		}}
	case nil:
		if w.Stranger == nil {
			return fail(commandv1.ErrorCode_ERROR_CODE_UNSUPPORTED, "unknown action")
		}
		result = w.Stranger(action)
	default:
		return fail(commandv1.ErrorCode_ERROR_CODE_UNSUPPORTED, "not in this world")
	}
	out.Outcome = &controlv1.DeviceOutcome_Result{Result: result}
	return out
}

func (w *World) closeTabs(device string, ids []string, out *controlv1.DeviceOutcome) *commandv1.CloseTabs_Result {
	result := &commandv1.CloseTabs_Result{}
	for _, id := range ids {
		if !strings.HasPrefix(id, device+"_") {
			continue
		}
		at := slices.IndexFunc(w.tabs, func(t *commandv1.Tab) bool { return t.GetTabId() == id })
		item := &commandv1.ItemOutcome{Id: id, Status: commandv1.ItemStatus_ITEM_STATUS_NOT_FOUND}
		if at >= 0 {
			item.Status = commandv1.ItemStatus_ITEM_STATUS_OK
			w.tabs = slices.Delete(w.tabs, at, at+1)
			result.ClosedCount++
			out.SavedIds = append(out.SavedIds, "saved-"+id)
		}
		result.Items = append(result.Items, item)
	}
	return result
}

// Query answers a query from the state of the world.
func (w *World) Query(ctx context.Context, query turn.Query) (proto.Message, error) {
	w.mu.Lock()
	w.queries = append(w.queries, query)
	w.mu.Unlock()
	if w.BeforeQuery != nil {
		if err := w.BeforeQuery(ctx, query); err != nil {
			return nil, err
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch query.Method.Name() {
	case "ListDevices":
		return &controlv1.ListDevicesResponse{Devices: w.devices}, nil
	case "ListTabGroups":
		return &controlv1.ListTabGroupsResponse{Groups: w.Groups}, nil
	case "SearchTabs":
		req := &controlv1.SearchTabsRequest{}
		if err := convert(query.Request, req); err != nil {
			return nil, err
		}
		tabs := w.find(req.GetQuery(), req.GetDeviceId())
		return &controlv1.SearchTabsResponse{Tabs: tabs, Total: uint32(len(tabs))}, nil
	case "ListTabs":
		req := &controlv1.ListTabsRequest{}
		if err := convert(query.Request, req); err != nil {
			return nil, err
		}
		tabs := w.find("", req.GetDeviceId())
		res := &controlv1.ListTabsResponse{Total: uint32(len(tabs))}
		var from int
		_, _ = fmt.Sscanf(req.GetPageToken(), "%d", &from)
		size := int(req.GetPageSize())
		if size == 0 {
			size = 100
		}
		res.Tabs = tabs[from:min(from+size, len(tabs))]
		if from+size < len(tabs) {
			res.NextPageToken = fmt.Sprint(from + size)
		}
		return res, nil
	default:
		return nil, &turn.Refusal{Code: commandv1.ErrorCode_ERROR_CODE_UNSUPPORTED, Message: "not in this world"}
	}
}

// convert reads a message whose type is known at run time only.
func convert(from, to proto.Message) error {
	raw, err := proto.Marshal(from)
	if err != nil {
		return fmt.Errorf("encode request: %w", err)
	}
	if err := proto.Unmarshal(raw, to); err != nil {
		return fmt.Errorf("decode request: %w", err)
	}
	return nil
}

func (w *World) find(words, device string) []*commandv1.Tab {
	var found []*commandv1.Tab
	for _, tab := range w.tabs {
		text := strings.ToLower(tab.GetTitle() + " " + tab.GetUrl())
		if strings.Contains(text, strings.ToLower(words)) && strings.HasPrefix(tab.GetTabId(), device) {
			found = append(found, tab)
		}
	}
	return found
}
