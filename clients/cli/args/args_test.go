package args_test

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"throwbar.dev/throwbar/clients/cli/args"
	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
)

func bind(in protoreflect.MessageDescriptor, taken ...string) (*pflag.FlagSet, *args.Flags) {
	set := pflag.NewFlagSet("test", pflag.ContinueOnError)
	return set, args.Bind(set, in, func(d protoreflect.Descriptor) string { return "About `" + string(d.Name()) + "`." },
		func(name string) bool { return strings.Contains(strings.Join(taken, " "), name) })
}

func TestMessage(t *testing.T) {
	t.Parallel()
	in := (&commandv1.GroupTabs{}).ProtoReflect().Descriptor()
	for line, want := range map[string]*commandv1.GroupTabs{
		"--tab-ids a,b --tab-ids=c":           {TabIds: []string{"a", "b", "c"}},
		"--title x --colour COLOUR_PINK":      {Title: new("x"), Colour: commandv1.Colour_COLOUR_PINK.Enum()},
		"--colour 6":                          {Colour: commandv1.Colour_COLOUR_PINK.Enum()},
		"--colour Pink --colour cyan":         {Colour: commandv1.Colour_COLOUR_CYAN.Enum()},
		`--json {"tabIds":["z"],"title":"j"}`: {TabIds: []string{"z"}, Title: new("j")},
	} {
		set, flags := bind(in)
		text := set.String("json", "", "")
		if err := set.Parse(strings.Fields(line)); err != nil {
			t.Fatal(err)
		}
		got, err := flags.Message([]byte(*text), nil)
		if err != nil {
			t.Fatal(err)
		}
		if a, b := encode(t, got), encode(t, want); a != b {
			t.Errorf("%s: %q, want %q", line, a, b)
		}
	}
}

func encode(t *testing.T, m protoreflect.ProtoMessage) string {
	t.Helper()
	typed := &commandv1.GroupTabs{}
	raw, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	if err := proto.Unmarshal(raw, typed); err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(typed.String(), "  ", " ")
}

func TestHelpText(t *testing.T) {
	t.Parallel()
	set, flags := bind((&controlv1.RenameDeviceRequest{}).ProtoReflect().Descriptor(), "name")
	if f := set.Lookup("arg-name"); f == nil || f.Usage != "About 'name'. (required)" {
		t.Errorf("arg-name: %+v", f)
	}
	if got := strings.Join(flags.Required(), " "); got != "--device-id device --arg-name text" {
		t.Errorf("required: %s", got)
	}
	set, _ = bind((&commandv1.Custom{}).ProtoReflect().Descriptor())
	if f := set.Lookup("request"); !strings.Contains(f.Usage, "--json - is safer") || f.Value.Type() != "base64" {
		t.Errorf("request: %+v", f)
	}
	_, flags = bind((&controlv1.DispatchRequest{}).ProtoReflect().Descriptor())
	if got := strings.Join(flags.JSONOnly(), " "); got != "action" {
		t.Errorf("JSON only: %s", got)
	}
}

func TestCheckNamesFlags(t *testing.T) {
	t.Parallel()
	in := (&controlv1.DispatchRequest{}).ProtoReflect().Descriptor()
	_, flags := bind(in)
	m := dynamicpb.NewMessage(in)
	if err := flags.Check(m); err == nil || err.Error() != `--json "action" is missing` {
		t.Errorf("Check: %v", err)
	}
	ids := m.Mutable(in.Fields().ByName("device_ids")).List()
	ids.Append(protoreflect.ValueOfString("a"))
	ids.Append(protoreflect.ValueOfString(""))
	m.Set(in.Fields().ByName("action"), protoreflect.ValueOfMessage(dynamicpb.NewMessage(in.Fields().ByName("action").Message())))
	if err := flags.Check(m); err == nil || !strings.Contains(err.Error(), "--device-ids, item 2: ") {
		t.Errorf("Check: %v", err)
	}
}

func TestNearest(t *testing.T) {
	t.Parallel()
	names := []string{"closeTabs", "closeTabsByUrl", "openTab", "groupTabs", "ungroupTabs", "grey", "green"}
	for in, want := range map[string]string{
		"closeTab": "closeTabs", "close_tabs": "closeTabs", "CLOSE-TABS": "closeTabs", "opentba": "openTab",
		"gren": "green", "ungroup": "ungroupTabs", "xyzzy": "", "": "", "a": "", "closetabsbyurls": "closeTabsByUrl",
	} {
		if got := args.Nearest(in, names); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", in, got, want)
		}
	}
	if got := args.Nearest("kette", []string{"Kessel", "日本"}); got != "Kessel" && got != "" {
		t.Errorf("Nearest = %q", got)
	}
}

func TestValidName(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"closeTabs": true, "tabs.open": true, "a_b-c9": true, "": false, "9a": false, "-x": false, "a b": false, "a\x1b": false, "ä": false,
	} {
		if args.ValidName(name) != want {
			t.Errorf("ValidName(%q) = %v", name, !want)
		}
	}
}

func FuzzFlags(f *testing.F) {
	f.Add("a,b", "pink", "{}")
	f.Add("\"a,b\",c\nd", "7", `{"tabIds":["x"]}`)
	in := (&commandv1.GroupTabs{}).ProtoReflect().Descriptor()
	f.Fuzz(func(t *testing.T, ids, colour, text string) {
		set, flags := bind(in)
		if set.Set("tab-ids", ids) != nil || set.Set("colour", colour) != nil {
			return
		}
		m, err := flags.Message([]byte(text), nil)
		if err != nil {
			return
		}
		list := m.Get(in.Fields().ByName("tab_ids")).List()
		if list.Len() == 0 {
			t.Fatalf("%q was taken and is not there", ids)
		}
		for i := range list.Len() {
			if list.Get(i).String() == "" {
				t.Fatalf("%q has an empty item", ids)
			}
		}
	})
}
