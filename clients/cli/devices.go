package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"throwbar.dev/throwbar/catalog"
	"throwbar.dev/throwbar/clients/cli/args"
	"throwbar.dev/throwbar/clients/cli/term"
	throwbar "throwbar.dev/throwbar/clients/go"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	devicev1 "throwbar.dev/throwbar/gen/go/throwbar/device/v1"
	optionv1 "throwbar.dev/throwbar/gen/go/throwbar/option/v1"
)

const (
	pageSize     = 1000
	completeWait = 2 * time.Second
	skewShown    = 5 * time.Second // less is the network's

	// allDevices stands for every device. One that is called so is reached by its id.
	allDevices = "all"
)

// devicesVerb lists and manages devices.
func (p *program) devicesVerb() *cobra.Command {
	var online bool
	c := &cobra.Command{
		Use:         "devices",
		Short:       "List the devices; rename, rotate or revoke one",
		GroupID:     groupDevices,
		Args:        p.takes(),
		Annotations: map[string]string{"alone": "yes"},
		RunE: func(c *cobra.Command, _ []string) error {
			devices, err := p.listDevices(c.Context(), online)
			if err != nil {
				return err
			}
			if p.flags.json() {
				return p.printJSON(&controlv1.ListDevicesResponse{Devices: devices}, true)
			}
			p.devicesTable(devices)
			return nil
		},
	}
	c.Flags().BoolVar(&online, "online", false, "only devices that are connected now")
	c.AddCommand(p.renameVerb(), p.rotateVerb(), p.revokeVerb())
	return c
}

func (p *program) renameVerb() *cobra.Command {
	return &cobra.Command{
		Use:               "rename DEVICE NAME",
		Short:             "Give a device another name",
		Args:              p.takes("a device", "a name"),
		ValidArgsFunction: p.completeDevice,
		RunE: func(c *cobra.Command, words []string) error {
			id, s, err := p.oneDevice(c.Context(), words[0])
			if err != nil {
				return err
			}
			answer, err := s.Devices.RenameDevice(c.Context(), &controlv1.RenameDeviceRequest{DeviceId: id, Name: words[1]})
			if err != nil {
				return fmt.Errorf("rename the device: %w", err)
			}
			if p.flags.json() {
				return p.printJSON(answer, true)
			}
			p.out.Line(term.Plain, "%s is called %s now.", id, answer.GetDevice().GetName())
			return nil
		},
	}
}

func (p *program) rotateVerb() *cobra.Command {
	return &cobra.Command{
		Use:   "rotate DEVICE",
		Short: "Have a device take another token",
		Long: "Have a device take another token: at once if it is connected, and when it next connects otherwise. Its present " +
			"token works until it has used the new one, and is refused after that. `throwbar watch` shows when it has.",
		Args:              p.takes("a device"),
		ValidArgsFunction: p.completeDevice,
		RunE: func(c *cobra.Command, words []string) error {
			id, s, err := p.oneDevice(c.Context(), words[0])
			if err != nil {
				return err
			}
			answer, err := s.Devices.RotateDevice(c.Context(), &controlv1.RotateDeviceRequest{DeviceId: id})
			if err != nil {
				return fmt.Errorf("rotate the device's token: %w", err)
			}
			if p.flags.json() {
				return p.printJSON(answer, true)
			}
			p.out.Line(term.Plain, "%s (%s) is asked to take another token.", words[0], id)
			return nil
		},
	}
}

func (p *program) revokeVerb() *cobra.Command {
	return &cobra.Command{
		Use:               "revoke DEVICE",
		Short:             "Revoke a device: its token is void and its link ends",
		Args:              p.takes("a device"),
		ValidArgsFunction: p.completeDevice,
		RunE: func(c *cobra.Command, words []string) error {
			id, s, err := p.oneDevice(c.Context(), words[0])
			if err != nil {
				return err
			}
			answer, err := s.Devices.RevokeDevice(c.Context(), &controlv1.RevokeDeviceRequest{DeviceId: id})
			if err != nil {
				return fmt.Errorf("revoke the device: %w", err)
			}
			if p.flags.json() {
				return p.printJSON(answer, true)
			}
			p.out.Line(term.Plain, "%s (%s) is revoked. It has to be paired again.", words[0], id)
			return nil
		},
	}
}

// oneDevice finds the device that an argument names.
func (p *program) oneDevice(ctx context.Context, name string) (string, *throwbar.Client, error) {
	ids, err := p.resolve(ctx, []string{name})
	if err != nil {
		return "", nil, err
	}
	s, err := p.api()
	return ids[0], s, err
}

// listDevices lists all devices.
func (p *program) listDevices(ctx context.Context, onlineOnly bool) ([]*controlv1.Device, error) {
	s, err := p.api()
	if err != nil {
		return nil, err
	}
	var all []*controlv1.Device
	for device, err := range throwbar.Pages(func(token string) ([]*controlv1.Device, string, error) {
		size := uint32(pageSize)
		answer, err := s.Devices.ListDevices(ctx, &controlv1.ListDevicesRequest{
			OnlineOnly: set(onlineOnly), PageSize: &size, PageToken: set(token),
		})
		return answer.GetDevices(), answer.GetNextPageToken(), err
	}) {
		if err != nil {
			return nil, fmt.Errorf("list devices: %w", err)
		}
		all = append(all, device)
	}
	return all, nil
}

// set is a field that is left out where the value says nothing.
func set[T comparable](value T) *T {
	var zero T
	if value == zero {
		return nil
	}
	return &value
}

// pages asks for page after page until there is none, or until a page says to stop by returning no token.
func pages(ask func(token string) (next string, err error)) error {
	token := ""
	for {
		next, err := ask(token)
		if err != nil || next == "" {
			return err
		}
		if next == token {
			return fmt.Errorf("the server gave the same page token twice")
		}
		token = next
	}
}

func (p *program) devicesTable(devices []*controlv1.Device) {
	if len(devices) == 0 {
		p.out.Line(term.Plain, "No devices yet. `throwbar pair` adds a browser, `throwbar sim` makes a simulated one.")
		return
	}
	t := term.Table{
		Header: []string{"name", "id", "kind", "state", "tabs", "last seen", "agent", "platform"},
		Shrink: []int{0, 6},
	}
	wrong := slices.ContainsFunc(devices, func(d *controlv1.Device) bool { return clock(d) != "" })
	if wrong { // a clock that is right needs no column
		t.Header = append(t.Header, "clock")
	}
	for _, d := range devices {
		state := term.Cell{Text: "offline", Style: term.Dim}
		seen := term.When(d.GetLastSeen().AsTime(), p.Now())
		if d.GetLastSeen() == nil {
			seen = "never"
		}
		if d.GetOnline() {
			state, seen = term.Cell{Text: "online", Style: term.Green}, "now"
		}
		if d.GetPaused() {
			state = term.Cell{Text: "paused", Style: term.Yellow}
		}
		tabs := ""
		if d.GetKind() == devicev1.Kind_KIND_BROWSER {
			tabs = fmt.Sprint(d.GetTabCount())
		}
		row := []term.Cell{
			{Text: d.GetName(), Style: term.Bold},
			term.Text(d.GetDeviceId()),
			term.Text(args.ShortOf(d.GetKind().Descriptor(), d.GetKind().Number())),
			state, term.Text(tabs), term.Text(seen), term.Text(d.GetAgent()), term.Text(d.GetPlatform()),
		}
		if wrong {
			row = append(row, term.Text(clock(d)))
		}
		t.Rows = append(t.Rows, row)
	}
	p.out.Table(t)
}

// clock says how far a device's clock is off, if that is far.
func clock(d *controlv1.Device) string {
	skew := d.GetClockSkew().AsDuration()
	switch {
	case skew > skewShown:
		return skew.Round(time.Second).String() + " ahead"
	case skew < -skewShown:
		return (-skew).Round(time.Second).String() + " behind"
	default:
		return ""
	}
}

// resolve finds the ids of devices that are named by id or by name.
func (p *program) resolve(ctx context.Context, names []string) ([]string, error) {
	devices, err := p.listDevices(ctx, false)
	if err != nil {
		return nil, err
	}
	ids := make([]string, 0, len(names))
	have := map[string]bool{}
	for _, name := range names {
		id, err := find(devices, strings.TrimSpace(name))
		if err != nil {
			return nil, err
		}
		if !have[id] { // the same device under its name and its id is one device
			ids = append(ids, id)
		}
		have[id] = true
	}
	return ids, nil
}

// find is the one device of an id, else of a name, else of a name in another case.
func find(devices []*controlv1.Device, name string) (string, error) {
	rules := []func(d *controlv1.Device) bool{
		func(d *controlv1.Device) bool { return d.GetDeviceId() == name },
		func(d *controlv1.Device) bool { return d.GetName() == name },
		func(d *controlv1.Device) bool { return strings.EqualFold(d.GetName(), name) },
	}
	for _, rule := range rules {
		var found []*controlv1.Device
		for _, d := range devices {
			if rule(d) {
				found = append(found, d)
			}
		}
		switch {
		case len(found) == 1:
			return found[0].GetDeviceId(), nil
		case len(found) > 1:
			return "", Errorf(Invalid, "%d devices are called %q: use an id: %s", len(found), name, describe(found))
		}
	}
	var names []string
	for _, d := range devices {
		names = append(names, d.GetName(), d.GetDeviceId())
	}
	if near := args.Nearest(name, names); near != "" {
		return "", Errorf(Invalid, "no device is called %q: did you mean %s?", name, near)
	}
	return "", Errorf(Invalid, "no device is called %q: `throwbar devices` lists them", name)
}

// describe lists devices by id, with what tells them apart.
func describe(devices []*controlv1.Device) string {
	words := make([]string, 0, len(devices))
	for _, d := range devices {
		state := "offline"
		if d.GetOnline() {
			state = "online"
		}
		words = append(words, fmt.Sprintf("%s (%s, %s)", d.GetDeviceId(), d.GetAgent(), state))
	}
	return strings.Join(words, ", ")
}

// askForDevice is the error of a command that says on no device where to run.
func (p *program) askForDevice(ctx context.Context, e *catalog.Entry) error {
	devices, err := p.listDevices(ctx, false)
	if err != nil {
		return err
	}
	if len(devices) == 0 {
		return Errorf(Invalid, "%s needs a device, and there is none yet: `throwbar pair` adds one", e.Name)
	}
	var names []string
	for _, d := range devices {
		names = append(names, d.GetName())
	}
	return Errorf(Invalid, "%s needs a device: say which with --device; there is %s", e.Name, strings.Join(names, ", "))
}

// devicesThatRun are the devices that are online and run a command.
func (p *program) devicesThatRun(ctx context.Context, e *catalog.Entry) ([]string, error) {
	devices, err := p.listDevices(ctx, true)
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, d := range devices {
		if slices.Contains(d.GetActions(), e.Name) {
			ids = append(ids, d.GetDeviceId())
		}
	}
	if len(ids) == 0 {
		return nil, Errorf(Offline, "no device that is online runs %s: `throwbar devices` lists them", e.Name)
	}
	return ids, nil
}

// oneOrAll is the id of the device that a filter names; empty for all.
func (p *program) oneOrAll(ctx context.Context, name string) (string, error) {
	if name == "" || name == allDevices {
		return "", nil
	}
	ids, err := p.resolve(ctx, []string{name})
	if err != nil {
		return "", err
	}
	return ids[0], nil
}

// resolveFields puts ids where the arguments name devices. A query for all devices is one without a filter.
func (p *program) resolveFields(ctx context.Context, e *catalog.Entry, m *dynamicpb.Message) error {
	for i := range m.Descriptor().Fields().Len() {
		fd := m.Descriptor().Fields().Get(i)
		if catalog.TargetOf(fd) != optionv1.Target_TARGET_DEVICE || fd.Kind() != protoreflect.StringKind || !m.Has(fd) {
			continue
		}
		if e.Method != nil && namesAll(m, fd) {
			m.Clear(fd)
			continue
		}
		if !fd.IsList() {
			ids, err := p.resolve(ctx, []string{m.Get(fd).String()})
			if err != nil {
				return err
			}
			m.Set(fd, protoreflect.ValueOfString(ids[0]))
			continue
		}
		list := m.Mutable(fd).List()
		for j := range list.Len() {
			ids, err := p.resolve(ctx, []string{list.Get(j).String()})
			if err != nil {
				return err
			}
			list.Set(j, protoreflect.ValueOfString(ids[0]))
		}
	}
	return nil
}

// namesAll says whether a field of devices means all of them.
func namesAll(m *dynamicpb.Message, fd protoreflect.FieldDescriptor) bool {
	if fd.IsList() {
		return m.Get(fd).List().Len() == 1 && m.Get(fd).List().Get(0).String() == allDevices
	}
	return m.Get(fd).String() == allDevices
}

// completeDevices offers the names of the devices, and the word for all.
func (p *program) completeDevices(c *cobra.Command, words []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
	names, directive := p.completeDevice(c, words, word)
	return append(names, cobra.CompletionWithDesc(allDevices, "every device")), directive
}

// completeDevice offers the names of the devices.
func (p *program) completeDevice(c *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(c.Context(), completeWait)
	defer cancel()
	devices, err := p.listDevices(ctx, false)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []cobra.Completion
	for _, d := range devices {
		names = append(names, cobra.CompletionWithDesc(term.Visible(d.GetName()), d.GetDeviceId()))
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
