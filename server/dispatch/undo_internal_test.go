package dispatch

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"throwbar.dev/throwbar/catalog"
	"throwbar.dev/throwbar/gen"
	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
)

// TestBunchesHoldWhatACommandTakes: no more ids than its rule allows, no more bytes than a message carries, in order, each
// tab once, and none that another command took away.
func TestBunchesHoldWhatACommandTakes(t *testing.T) {
	t.Parallel()
	known, err := catalog.New(gen.Descriptors)
	if err != nil {
		t.Fatal(err)
	}
	var entry *catalog.Entry
	for _, e := range known.Commands() {
		if e.HasSaved() {
			entry = e
		}
	}
	var all []*bunch
	for n := range 1300 {
		device := []string{"lap", "desk"}[n%2]
		tab := &commandv1.SavedTab{SavedId: fmt.Sprint("s", n), DeviceId: device, Url: "https://a.example/"}
		if n >= 1200 {
			tab.Url = strings.Repeat("x", 64<<10)
		}
		all = pack(all, entry, Kept{Tab: tab, Command: "close on " + device})
	}
	seen := map[string]bool{}
	sizes := map[string]string{}
	for _, b := range all {
		if b.command != "close on "+b.device {
			t.Errorf("%s brings back what was taken away by %s", b.device, b.command)
		}
		sizes[b.device] += fmt.Sprint(len(b.ids), " ")
		if b.bytes > maxSavedBytes {
			t.Errorf("%d bytes", b.bytes)
		}
		p, err := b.piece()
		if err != nil || len(catalog.Targets(p.args)) != len(b.ids) || proto.Size(p.action) > 1<<20 {
			t.Errorf("piece: %v, %v", p, err)
		}
		for _, id := range b.ids {
			if seen[id] {
				t.Errorf("%s is there twice", id)
			}
			seen[id] = true
		}
	}
	if len(seen) != 1300 || sizes["lap"] != "500 147 3 " || sizes["desk"] != "500 147 3 " {
		t.Errorf("%d tabs in %v", len(seen), sizes)
	}
}
