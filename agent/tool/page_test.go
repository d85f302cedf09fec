package tool_test

import (
	"crypto/rand"
	"fmt"
	"strings"
	"testing"

	"throwbar.dev/throwbar/gen"
	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
)

// TestOnlyRowsComeInPages: which list of an answer pages count. Devices beside the rows are not asked for by pages: where
// they are too many, the answer says how many are missing and still goes on where the page ends.
func TestOnlyRowsComeInPages(t *testing.T) {
	t.Parallel()
	listing, _ := load(t, gen.Descriptors).Lookup("listTabs")
	answer := func(tabs, devices int) *controlv1.ListTabsResponse {
		r := &controlv1.ListTabsResponse{Total: 900, NextPageToken: "further"}
		for i := range tabs {
			r.Tabs = append(r.Tabs, &commandv1.Tab{TabId: fmt.Sprintf("d_tb-%d", i), Url: "https://example.com/some/page/of/some/length", Title: "A title"})
		}
		for i := range devices {
			r.Devices = append(r.Devices, &controlv1.DeviceState{DeviceId: fmt.Sprintf("device-%d", i), Name: strings.Repeat("n", 80)})
		}
		return r
	}
	for _, c := range []struct {
		name          string
		tabs, devices int
		shorter       bool
	}{
		{"it fits", 20, 2, false}, {"many rows", 300, 2, true}, {"many rows and devices", 400, 300, true}, {"many devices", 3, 300, false},
	} {
		request := &controlv1.ListTabsRequest{}
		rows, shorter := listing.Shorten(request, answer(c.tabs, c.devices))
		if shorter != c.shorter || shorter && (rows < 1 || rows >= c.tabs) || int(request.GetPageSize()) != rows {
			t.Errorf("%s: a page of %d rows, %t, asked for %d", c.name, rows, shorter, request.GetPageSize())
		}
	}
	shown, err := listing.Found(answer(3, 300)).Print(rand.Reader)
	if err != nil || !strings.Contains(shown, `"nextPageToken":"further"`) || !strings.Contains(shown, "of 300 rows of devices left out for size\"") {
		t.Errorf("many devices: %v, %s", err, shown[max(0, len(shown)-300):])
	}
	// A server that does not keep to a page size: what is missing is not skipped in silence, and no argument that the
	// model has not is advised.
	shown, err = listing.Found(answer(300, 2)).Print(rand.Reader)
	if err != nil || strings.Contains(shown, "nextPageToken") || !strings.Contains(shown, "of 300 rows of tabs left out for size; narrow the call") ||
		strings.Contains(shown, "pageSize") {
		t.Errorf("many rows: %v, %s", err, shown[max(0, len(shown)-300):])
	}
}
