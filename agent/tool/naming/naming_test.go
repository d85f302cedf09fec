package naming_test

import (
	"slices"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"

	"throwbar.dev/throwbar/agent/tool/naming"
	"throwbar.dev/throwbar/agent/tool/tooltest"
)

func enum(t *testing.T, declaration string) protoreflect.EnumDescriptor {
	t.Helper()
	return tooltest.Message(t, declaration+` message In {}`).ParentFile().Enums().Get(0)
}

func TestNamesOfEnums(t *testing.T) {
	t.Parallel()
	for declaration, want := range map[string][]string{
		`enum Color{COLOR_UNSPECIFIED=0;COLOR_RED=1;}`:                     {"red"},
		`enum ItemStatus{ITEM_STATUS_UNSPECIFIED=0;ITEM_STATUS_OK=1;}`:     {"ok"},
		`enum Shade{SHADE_DARK_RED=0;SHADE_DARK_BLUE=1;}`:                  {"dark_red", "dark_blue"},
		`enum X{KIND_A=0;KIND_B=1;}`:                                       {"a", "b"},
		`enum Size{SIZE_UNSPECIFIED=0;SIZE_2XL=1;}`:                        {"size_2xl"},
		`enum Only{ONLY_UNSPECIFIED=0;}`:                                   {"unspecified"},
		`enum Free{NOTHING=0;Some=1;}`:                                     {"nothing", "some"},
		`enum Old{OLD_UNSPECIFIED=0;OLD_GONE=1[deprecated=true];OLD_A=2;}`: {"a"},
	} {
		ed := enum(t, declaration)
		var got []string
		for _, value := range naming.Offered(ed) {
			name, ok := naming.Short(ed, value.Number())
			if number, found := naming.Find(ed, name); !ok || !found || number != value.Number() {
				t.Errorf("%s: %q leads to %d, %v", declaration, name, number, found)
			}
			got = append(got, name)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", declaration, got, want)
		}
	}
	ed := enum(t, `enum Color{COLOR_UNSPECIFIED=0;COLOR_RED=1;}`)
	for _, name := range []string{"red", "RED", "COLOR_RED", "color_red"} {
		if n, ok := naming.Find(ed, name); !ok || n != 1 {
			t.Errorf("%q: %d, %v", name, n, ok)
		}
	}
	if _, ok := naming.Find(ed, "magenta"); ok {
		t.Error("magenta was found")
	}
	if _, ok := naming.Short(ed, 9); ok {
		t.Error("9 has a name")
	}
}

func TestNearestNames(t *testing.T) {
	t.Parallel()
	candidates := []string{"closeTabs", "openTab", "tabIds", "windowId"}
	for name, want := range map[string]string{
		"closeTab": "closeTabs", "close_tabs": "closeTabs", "tab_idz": "tabIds", "opnTab": "openTab", "window": "windowId",
		"tabsId": "tabIds", "deleteEverything": "", "x": "", "": "",
	} {
		if got := naming.Nearest(name, candidates); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}
