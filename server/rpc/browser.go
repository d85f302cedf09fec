package rpc

import (
	"context"

	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	"throwbar.dev/throwbar/gen/go/throwbar/control/v1/controlv1connect"
	"throwbar.dev/throwbar/ident"
	"throwbar.dev/throwbar/server/auth"
	"throwbar.dev/throwbar/server/browser"
	"throwbar.dev/throwbar/server/device"
)

// SavedFilter selects saved tabs, newest first.
type SavedFilter struct {
	Workspace, Device string
	Closed            bool // also those kept for undo
	Limit             int
	Before            Cursor
}

// SavedReader reads saved tabs.
type SavedReader interface {
	ListSaved(ctx context.Context, filter SavedFilter) ([]*commandv1.SavedTab, error)
}

var _ controlv1connect.BrowserServiceHandler = (*browserHandler)(nil)

type browserHandler struct{ cfg Config }

// maxStates is how many devices an answer says the freshness of, beside those that its rows are on.
const maxStates = 100

// scope is what a query covers: the devices of the caller, or the one that it names.
type scope struct {
	devices []device.Named
	ids     []string // of devices
	page    browser.Page
}

func (h *browserHandler) scope(ctx context.Context, only string, pageSize uint32, token string) (scope, error) {
	caller, err := auth.From(ctx)
	if err != nil {
		return scope{}, err
	}
	from, err := offset(token)
	if err != nil {
		return scope{}, err
	}
	s := scope{page: browser.Page{Offset: from, Limit: size(pageSize)}}
	if only == "" {
		s.devices = h.cfg.Directory.Names(caller.Workspace)
	} else {
		d, err := h.cfg.Directory.Get(caller.Workspace, only)
		if err != nil {
			return scope{}, err
		}
		s.devices = []device.Named{{ID: d.ID, Name: d.Name}}
	}
	s.ids = make([]string, len(s.devices))
	for i, d := range s.devices {
		s.ids[i] = d.ID
	}
	return s, nil
}

// states say how fresh the devices of an answer are: all that it covers, or, where those are very many, the ones that
// its rows are on, given by the ids of the rows, and further ones that are not live.
func (h *browserHandler) states(s scope, rows func(yield func(id string) bool)) []*controlv1.DeviceState {
	named := map[string]bool{}
	if len(s.ids) > maxStates {
		for row := range rows {
			if id, err := ident.Parse(row); err == nil {
				named[id.Device] = true
			}
		}
		for _, id := range h.cfg.Browser.Stale(s.ids, maxStates-min(maxStates, len(named))) {
			named[id] = true
		}
	}
	var out []*controlv1.DeviceState
	for _, d := range s.devices {
		if len(s.ids) <= maxStates || named[d.ID] {
			out = append(out, &controlv1.DeviceState{
				DeviceId: d.ID, Name: d.Name, Freshness: freshnessProto(h.cfg.Browser.Freshness(d.ID)),
			})
		}
	}
	return out
}

// idsOf are the ids of rows.
func idsOf[R any](rows []R, id func(R) string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for _, r := range rows {
			if !yield(id(r)) {
				return
			}
		}
	}
}

func (s scope) next(n, total int) string { return nextOffset(s.page.Offset, n, total) }

// SearchTabs finds tabs by words.
func (h *browserHandler) SearchTabs(
	ctx context.Context, req *controlv1.SearchTabsRequest,
) (*controlv1.SearchTabsResponse, error) {
	s, err := h.scope(ctx, req.GetDeviceId(), req.GetPageSize(), req.GetPageToken())
	if err != nil {
		return nil, err
	}
	tabs, total := h.cfg.Browser.Search(s.ids, req.GetQuery(), s.page)
	return &controlv1.SearchTabsResponse{
		Tabs: tabs, Devices: h.states(s, idsOf(tabs, (*commandv1.Tab).GetTabId)), Total: uint32(total), NextPageToken: s.next(len(tabs), total),
	}, nil
}

// ListTabs lists open tabs.
func (h *browserHandler) ListTabs(ctx context.Context, req *controlv1.ListTabsRequest) (*controlv1.ListTabsResponse, error) {
	s, err := h.scope(ctx, req.GetDeviceId(), req.GetPageSize(), req.GetPageToken())
	if err != nil {
		return nil, err
	}
	tabs, total := h.cfg.Browser.Tabs(s.ids, req.GetWindowId(), s.page)
	return &controlv1.ListTabsResponse{
		Tabs: tabs, Devices: h.states(s, idsOf(tabs, (*commandv1.Tab).GetTabId)), Total: uint32(total), NextPageToken: s.next(len(tabs), total),
	}, nil
}

// ListWindows lists windows with their tab counts.
func (h *browserHandler) ListWindows(
	ctx context.Context, req *controlv1.ListWindowsRequest,
) (*controlv1.ListWindowsResponse, error) {
	s, err := h.scope(ctx, req.GetDeviceId(), req.GetPageSize(), req.GetPageToken())
	if err != nil {
		return nil, err
	}
	windows, total := h.cfg.Browser.Windows(s.ids, s.page)
	return &controlv1.ListWindowsResponse{
		Windows: windows, Devices: h.states(s, idsOf(windows, (*commandv1.Window).GetWindowId)), NextPageToken: s.next(len(windows), total),
	}, nil
}

// ListTabGroups lists tab groups.
func (h *browserHandler) ListTabGroups(
	ctx context.Context, req *controlv1.ListTabGroupsRequest,
) (*controlv1.ListTabGroupsResponse, error) {
	s, err := h.scope(ctx, req.GetDeviceId(), req.GetPageSize(), req.GetPageToken())
	if err != nil {
		return nil, err
	}
	groups, total := h.cfg.Browser.Groups(s.ids, s.page)
	return &controlv1.ListTabGroupsResponse{
		Groups: groups, Devices: h.states(s, idsOf(groups, (*commandv1.TabGroup).GetGroupId)), NextPageToken: s.next(len(groups), total),
	}, nil
}

// CountByDomain counts open tabs by domain.
func (h *browserHandler) CountByDomain(
	ctx context.Context, req *controlv1.CountByDomainRequest,
) (*controlv1.CountByDomainResponse, error) {
	s, err := h.scope(ctx, req.GetDeviceId(), req.GetPageSize(), req.GetPageToken())
	if err != nil {
		return nil, err
	}
	counts, total := h.cfg.Browser.Domains(s.ids, s.page)
	none := func(func(string) bool) {} // a count is of no device
	res := &controlv1.CountByDomainResponse{Devices: h.states(s, none), NextPageToken: s.next(len(counts), total)}
	for _, c := range counts {
		res.Domains = append(res.Domains, &controlv1.DomainCount{Domain: c.Domain, TabCount: uint32(c.Tabs)})
	}
	return res, nil
}

// ListSavedTabs lists saved tabs, newest first.
func (h *browserHandler) ListSavedTabs(
	ctx context.Context, req *controlv1.ListSavedTabsRequest,
) (*controlv1.ListSavedTabsResponse, error) {
	caller, err := auth.From(ctx)
	if err != nil {
		return nil, err
	}
	limit := size(req.GetPageSize())
	filter := SavedFilter{Workspace: caller.Workspace, Device: req.GetDeviceId(), Closed: req.GetClosed(), Limit: limit + 1}
	if filter.Before.Time, filter.Before.ID, err = keyset(req.GetPageToken()); err != nil {
		return nil, err
	}
	saved, err := h.cfg.Saved.ListSaved(ctx, filter)
	if err != nil {
		return nil, err
	}
	res := &controlv1.ListSavedTabsResponse{SavedTabs: saved}
	if len(saved) > limit {
		res.SavedTabs = saved[:limit]
		last := saved[limit-1]
		res.NextPageToken = nextKeyset(last.GetSavedAt().AsTime(), last.GetSavedId())
	}
	return res, nil
}
