package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"throwbar.dev/throwbar/clients/cli/term"
	throwbar "throwbar.dev/throwbar/clients/go"
	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	"throwbar.dev/throwbar/ident"
)

const defaultRows = 100

// tabsVerb lists and searches tabs.
func (p *program) tabsVerb() *cobra.Command {
	var ask tabsAsk
	c := &cobra.Command{
		Use:     "tabs",
		Short:   "List or search the open tabs of one device or of all",
		GroupID: groupDevices,
		Args:    p.takes(),
		Long: "List or search the open tabs of one device or of all. The server answers from what the devices have told it, " +
			"also for devices that are offline: their rows are as old as the last column says.",
		Example: "  throwbar tabs --query youtube\n  throwbar tabs --device laptop --limit 0 --output json",
		RunE:    func(c *cobra.Command, _ []string) error { return p.runTabs(c.Context(), ask) },
	}
	c.Flags().StringVar(&ask.device, "device", "", "only this `device`, by name or id")
	c.Flags().StringVar(&ask.query, "query", "", "only tabs with these `words` in title or address")
	c.Flags().StringVar(&ask.window, "window-id", "", "only this window, by `id`")
	c.Flags().Uint32Var(&ask.limit, "limit", defaultRows, "most `rows`; 0 for all")
	_ = c.RegisterFlagCompletionFunc("device", p.completeDevices)
	return c
}

type tabsAsk struct {
	device, query, window string
	limit                 uint32
}

// tabsAnswer is the answer of either method, of all pages together.
type tabsAnswer struct {
	tabs    []*commandv1.Tab
	devices map[string]*controlv1.DeviceState
	order   []*controlv1.DeviceState
	total   uint32
	next    string
}

func (p *program) runTabs(ctx context.Context, ask tabsAsk) error {
	if ask.query != "" && ask.window != "" {
		return Errorf(Invalid, "only one of --query and --window-id can be given")
	}
	var err error
	if ask.device, err = p.oneOrAll(ctx, ask.device); err != nil {
		return err
	}
	s, err := p.api()
	if err != nil {
		return err
	}
	answer := &tabsAnswer{devices: map[string]*controlv1.DeviceState{}}
	err = pages(func(token string) (string, error) {
		if err := answer.page(ctx, s, ask, token); err != nil {
			return "", err
		}
		if ask.limit > 0 && len(answer.tabs) >= int(ask.limit) {
			return "", nil
		}
		return answer.next, nil
	})
	if err != nil {
		return fmt.Errorf("list tabs: %w", err)
	}
	if p.flags.json() {
		return p.printJSON(&controlv1.ListTabsResponse{
			Tabs: answer.tabs, Devices: answer.order, Total: answer.total, NextPageToken: answer.next,
		}, true)
	}
	p.tabsTable(answer)
	return nil
}

// page adds the rows of one page.
func (a *tabsAnswer) page(ctx context.Context, s *throwbar.Client, ask tabsAsk, token string) error {
	size := uint32(pageSize)
	if left := ask.limit - uint32(len(a.tabs)); ask.limit > 0 && left < size {
		size = left
	}
	var devices []*controlv1.DeviceState
	if ask.query != "" {
		answer, err := s.Browser.SearchTabs(ctx, &controlv1.SearchTabsRequest{
			Query: ask.query, DeviceId: set(ask.device), PageSize: &size, PageToken: set(token),
		})
		if err != nil {
			return err
		}
		a.tabs, a.total, a.next = append(a.tabs, answer.GetTabs()...), answer.GetTotal(), answer.GetNextPageToken()
		devices = answer.GetDevices()
	} else {
		answer, err := s.Browser.ListTabs(ctx, &controlv1.ListTabsRequest{
			DeviceId: set(ask.device), WindowId: set(ask.window), PageSize: &size, PageToken: set(token),
		})
		if err != nil {
			return err
		}
		a.tabs, a.total, a.next = append(a.tabs, answer.GetTabs()...), answer.GetTotal(), answer.GetNextPageToken()
		devices = answer.GetDevices()
	}
	for _, d := range devices {
		if a.devices[d.GetDeviceId()] == nil {
			a.order = append(a.order, d)
		}
		a.devices[d.GetDeviceId()] = d
	}
	return nil
}

func (p *program) tabsTable(a *tabsAnswer) {
	t := term.Table{Header: []string{"device", "title", "address", "id", "is", "seen"}, Shrink: []int{1, 2}, DropEmpty: true}
	for _, tab := range a.tabs {
		device := a.devices[deviceOf(tab.GetTabId())]
		t.Rows = append(t.Rows, []term.Cell{
			term.Text(device.GetName()), term.Text(tab.GetTitle()),
			{Text: tab.GetUrl(), Style: term.Dim},
			term.Text(tab.GetTabId()), term.Text(tabWords(tab)), p.freshness(device),
		})
	}
	p.out.Table(t)
	if len(a.tabs) == 0 {
		p.out.Line(term.Plain, "No tabs.")
	}
	if more := int(a.total) - len(a.tabs); more > 0 {
		p.out.Line(term.Dim, "%d of %d tabs; --limit 0 shows all.", len(a.tabs), a.total)
	}
	for _, d := range a.order {
		if !d.GetFreshness().GetLive() {
			p.out.Line(term.Yellow, "%s is not live: its tabs are from %s.", d.GetName(), p.asOf(d))
		}
	}
}

// freshness is empty for rows that are live.
func (p *program) freshness(d *controlv1.DeviceState) term.Cell {
	if d.GetFreshness().GetLive() {
		return term.Cell{}
	}
	return term.Cell{Text: p.asOf(d), Style: term.Yellow}
}

func (p *program) asOf(d *controlv1.DeviceState) string {
	if d.GetFreshness().GetAsOf() == nil {
		return "never"
	}
	return term.When(d.GetFreshness().GetAsOf().AsTime(), p.Now())
}

func deviceOf(tabID string) string {
	id, err := ident.Parse(tabID)
	if err != nil {
		return ""
	}
	return id.Device
}

// tabWords says what is special about a tab.
func tabWords(tab *commandv1.Tab) string {
	var words []string
	for _, row := range []struct {
		is   bool
		word string
	}{
		{tab.GetActive(), "active"},
		{tab.GetPinned(), "pinned"},
		{tab.GetMuted(), "muted"},
		{tab.GetAudible(), "audible"},
		{tab.GetDiscarded(), "asleep"},
	} {
		if row.is {
			words = append(words, row.word)
		}
	}
	return strings.Join(words, " ")
}
