package rpc

import (
	"context"

	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	"throwbar.dev/throwbar/gen/go/throwbar/control/v1/controlv1connect"
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

// scope is what a query covers: the devices of the caller, or the one that it names.
type scope struct {
	ids    []string
	states []*controlv1.DeviceState
	page   browser.Page
}

func (h *browserHandler) scope(ctx context.Context, only string, pageSize uint32, token string) (scope, error) {
	caller, err := auth.From(ctx)
	if err != nil {
		return scope{}, err
	}
	var devices []device.Device
	if only == "" {
		devices = h.cfg.Directory.List(caller.Workspace)
	} else {
		d, err := h.cfg.Directory.Get(caller.Workspace, only)
		if err != nil {
			return scope{}, err
		}
		devices = []device.Device{d}
	}
	from, err := offset(token)
	if err != nil {
		return scope{}, err
	}
	s := scope{page: browser.Page{Offset: from, Limit: size(pageSize)}}
	for _, d := range devices {
		s.ids = append(s.ids, d.ID)
		s.states = append(s.states, &controlv1.DeviceState{
			DeviceId: d.ID, Name: d.Name, Freshness: freshnessProto(h.cfg.Browser.Freshness(d.ID)),
		})
	}
	return s, nil
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
		Tabs: tabs, Devices: s.states, Total: uint32(total), NextPageToken: s.next(len(tabs), total),
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
		Tabs: tabs, Devices: s.states, Total: uint32(total), NextPageToken: s.next(len(tabs), total),
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
		Windows: windows, Devices: s.states, NextPageToken: s.next(len(windows), total),
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
		Groups: groups, Devices: s.states, NextPageToken: s.next(len(groups), total),
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
	res := &controlv1.CountByDomainResponse{Devices: s.states, NextPageToken: s.next(len(counts), total)}
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
