package catalog_test

import (
	"errors"
	"os"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"throwbar.dev/throwbar/catalog"
	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	_ "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	optionv1 "throwbar.dev/throwbar/gen/go/throwbar/option/v1"
)

func load(t *testing.T) *catalog.Catalogue {
	t.Helper()
	image, err := os.ReadFile("../gen/descriptors.binpb")
	if err != nil {
		t.Fatal(err)
	}
	c, err := catalog.New(image)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func names(entries []*catalog.Entry) []string {
	var out []string
	for _, e := range entries {
		out = append(out, e.Name)
	}
	return out
}

func TestCatalogueListsCommandsAndQueries(t *testing.T) {
	t.Parallel()
	c := load(t)
	if got := names(c.Commands()); len(got) != 14 {
		t.Errorf("commands: %v", got)
	}
	if got := names(c.Queries()); len(got) != 7 {
		t.Errorf("queries: %v", got)
	}
	e, ok := c.Lookup("tabClose")
	if !ok || e.Name != "closeTabs" || e.Summary == "" || e.Command.GetEffect() != optionv1.Effect_EFFECT_DESTRUCTIVE {
		t.Errorf("tabClose = %+v", e)
	}
	if e.Comment(e.In.Fields().ByName("tab_ids")) == "" {
		t.Error("no comment on closeTabs.tab_ids")
	}
}

func TestDeviceIsAskedForOnlyWhereNoTargetFixesIt(t *testing.T) {
	t.Parallel()
	c := load(t)
	for name, fixed := range map[string]bool{
		"closeTabs": true, "activateTab": true, "openTab": false, "closeTabsByUrl": false, "getActiveTab": false,
		"restoreTabs": false, "moveTabs": true,
	} {
		if e, _ := c.Lookup(name); e.FixesDevice() != fixed {
			t.Errorf("%s: FixesDevice = %v", name, e.FixesDevice())
		}
	}
}

func TestRequiredFollowsTheRules(t *testing.T) {
	t.Parallel()
	c := load(t)
	for _, row := range []struct {
		entry, field string
		want         bool
	}{
		{"openTab", "url", true},
		{"openTab", "window_id", false},
		{"openTab", "active", false},
		{"pinTabs", "pinned", true},
		{"pinTabs", "tab_ids", true},
		{"groupTabs", "colour", false},
		{"searchTabs", "query", true},
		{"searchTabs", "device_id", false},
	} {
		e, _ := c.Lookup(row.entry)
		if got := catalog.Required(e.In.Fields().ByName(protoreflect.Name(row.field))); got != row.want {
			t.Errorf("%s.%s: required = %v", row.entry, row.field, got)
		}
	}
}

func TestWrapAndArgsAreLossless(t *testing.T) {
	t.Parallel()
	c := load(t)
	e, _ := c.Lookup("closeTabs")
	args := e.New()
	if err := protojson.Unmarshal([]byte(`{"tabIds":["a_tb-1","a_tb-2"]}`), args); err != nil {
		t.Fatal(err)
	}
	action, err := e.Wrap(args)
	if err != nil {
		t.Fatal(err)
	}
	if got := action.GetCloseTabs().GetTabIds(); len(got) != 2 || got[1] != "a_tb-2" {
		t.Errorf("wrapped: %v", action)
	}
	if found, err := c.ByAction(action); err != nil || found != e {
		t.Errorf("ByAction = %v, %v", found, err)
	}
	back, err := e.Args(action)
	if err != nil || !proto.Equal(back, args) {
		t.Errorf("Args = %v, %v", back, err)
	}
	if refs := catalog.Targets(back); len(refs) != 2 || refs[0].Kind != optionv1.Target_TARGET_TAB || refs[1].ID != "a_tb-2" {
		t.Errorf("targets: %+v", refs)
	}
}

func TestAnEmptyMemberIsNoEmptyAction(t *testing.T) {
	t.Parallel()
	c := load(t)
	e, _ := c.Lookup("getActiveTab")
	action, err := e.Wrap(e.New())
	if err != nil || action.GetGetActiveTab() == nil {
		t.Fatalf("wrap: %v, %v", action, err)
	}
	if _, err := c.ByAction(&commandv1.Action{}); !errors.Is(err, catalog.ErrNoAction) {
		t.Errorf("empty action: %v", err)
	}
}

func TestAMemberOfTheFutureIsUnknown(t *testing.T) {
	t.Parallel()
	c := load(t)
	wire := protowire.AppendTag(nil, 77, protowire.BytesType)
	wire = protowire.AppendBytes(wire, []byte("x"))
	action := &commandv1.Action{}
	if err := proto.Unmarshal(wire, action); err != nil {
		t.Fatal(err)
	}
	if _, err := c.ByAction(action); !errors.Is(err, catalog.ErrUnknownAction) {
		t.Errorf("ByAction: %v", err)
	}
	if got := c.Name(action); got != "action 77" {
		t.Errorf("Name = %q", got)
	}
}

func TestResultOfAnotherCommandIsRefused(t *testing.T) {
	t.Parallel()
	c := load(t)
	e, _ := c.Lookup("closeTabs")
	result := &commandv1.Result{Kind: &commandv1.Result_OpenTab{OpenTab: &commandv1.OpenTab_Result{TabId: "a_tb-1"}}}
	if out, err := e.Unwrap(result); err == nil {
		t.Errorf("Unwrap = %v, want an error", out)
	}
}

// A command that is idempotent is run again after a crash. A second close of a tab whose page asks destroys what a
// person typed there.
func TestNothingDestructiveIsIdempotent(t *testing.T) {
	t.Parallel()
	for _, e := range load(t).Commands() {
		if e.Command.GetEffect() == optionv1.Effect_EFFECT_DESTRUCTIVE && e.Command.GetIdempotent() {
			t.Errorf("%s is destructive and idempotent", e.Name)
		}
	}
}
