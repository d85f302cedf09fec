package catalog_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"

	"throwbar.dev/throwbar/catalog"
	"throwbar.dev/throwbar/catalog/catalogtest"
	"throwbar.dev/throwbar/gen"
	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	optionv1 "throwbar.dev/throwbar/gen/go/throwbar/option/v1"
)

// asking is a command whose arguments have the given fields.
func asking(t *testing.T, fields string) (*catalog.Catalogue, error) {
	t.Helper()
	return catalog.New(catalogtest.Image(t, catalogtest.Command{
		Name: "BrewDrink", Member: "brew_drink", Number: 900, Source: `syntax = "proto3";
package throwbar.command.v1;
import "buf/validate/validate.proto";
import "throwbar/option/v1/option.proto";
message BrewDrink {
  option (throwbar.option.v1.command) = { effect: EFFECT_REVERSIBLE approval: APPROVAL_AUTO };
  message Result {}
` + fields + "}",
	}))
}

const approves = `[(throwbar.option.v1.requires_approval) = true]`

// TestConsentsOfTheContract: the flags that ask, and no others.
func TestConsentsOfTheContract(t *testing.T) {
	t.Parallel()
	got := map[string]string{}
	for _, e := range load(t).Commands() {
		if all := e.Consents(); len(all) > 0 {
			got[e.Name] = fmt.Sprint(all)
		}
	}
	if len(got) != 2 || got["closeTabs"] != "[force]" || got["closeTabsByUrl"] != "[force]" {
		t.Errorf("%v", got)
	}
	e, _ := load(t).Lookup("closeTabs")
	on, off := &commandv1.CloseTabs{Force: proto.Bool(true)}, &commandv1.CloseTabs{Force: proto.Bool(false)}
	if in := e.ConsentsIn(on.ProtoReflect()); !slices.Equal(in, []string{"force"}) {
		t.Errorf("set: %v", in)
	}
	if in := e.ConsentsIn(off.ProtoReflect()); in != nil || e.ConsentsIn(nil) != nil {
		t.Errorf("not set: %v", in)
	}
}

func TestConsentsAreFoundAnywhere(t *testing.T) {
	t.Parallel()
	c, err := asking(t, `
  message Inner { bool hot = 1 `+approves+`; Inner again = 2; }
  Inner one = 1; repeated Inner many = 2; map<string, Inner> named = 3;
  repeated bool flags = 4 `+approves+`; map<string, bool> marks = 5 `+approves+`;
`)
	if err != nil {
		t.Fatal(err)
	}
	e, _ := c.Lookup("brewDrink")
	if want := "[one.hot many.hot named.hot flags marks]"; fmt.Sprint(e.Consents()) != want {
		t.Errorf("%v, want %s", e.Consents(), want)
	}
	for text, want := range map[string]string{
		`{}`: "[]",
		`{"one":{"hot":false},"many":[{}],"named":{"x":{}},"flags":[false],"marks":{"x":false}}`: "[]",
		`{"one":{"again":{"again":{"hot":true}}}}`:                                               "[one.again.again.hot]",
		`{"many":[{},{"hot":true},{"hot":true}],"flags":[false,true]}`:                           "[flags many.hot]",
		`{"named":{"x":{},"y":{"hot":true}},"marks":{"x":false,"y":true}}`:                       "[marks named.hot]",
	} {
		m := e.New()
		if err := protojson.Unmarshal([]byte(text), m); err != nil {
			t.Fatal(err)
		}
		in := e.ConsentsIn(m)
		if fmt.Sprint(in) != want {
			t.Errorf("%s: %v, want %s", text, in, want)
		}
		for _, path := range in {
			if fd := catalog.FieldAt(e.In, path); fd == nil || !catalog.RequiresApproval(fd) {
				t.Errorf("%s leads to %v", path, fd)
			}
		}
	}
	for _, path := range []string{"none", "flags.hot", "one.none", "named.none"} {
		if fd := catalog.FieldAt(e.In, path); fd != nil {
			t.Errorf("%s leads to %v", path, fd)
		}
	}
}

// TestConsentsThatNobodyCanGiveAreRefused: a contract in which the option could not work is no contract.
func TestConsentsThatNobodyCanGiveAreRefused(t *testing.T) {
	t.Parallel()
	const secret = `(throwbar.option.v1.sensitive) = true`
	for fields, want := range map[string]string{
		`string text = 1 ` + approves + `;`:                                                "only a bool",
		`map<string, string> texts = 1 ` + approves + `;`:                                  "only a bool",
		`bool on = 1 [(throwbar.option.v1.requires_approval) = true, ` + secret + `];`:     "has to see it",
		`message Inner { bool hot = 1 ` + approves + `; } Inner one = 1 [` + secret + `];`: "something sensitive",
		`message Inner { bytes raw = 1 ` + approves + `; } map<string, Inner> all = 1;`:    "only a bool",
	} {
		if _, err := asking(t, fields); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", fields, err)
		}
	}
	set := &descriptorpb.FileDescriptorSet{}
	if err := proto.Unmarshal(gen.Descriptors, set); err != nil {
		t.Fatal(err)
	}
	for _, f := range set.GetFile() {
		for _, m := range f.GetMessageType() {
			if m.GetName() == "ListDevicesRequest" {
				options := &descriptorpb.FieldOptions{}
				proto.SetExtension(options, optionv1.E_RequiresApproval, true)
				m.GetField()[0].Options = options
			}
		}
	}
	image, err := proto.Marshal(set)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := catalog.New(image); err == nil || !strings.Contains(err.Error(), "nobody can be asked about a query") {
		t.Errorf("a query: %v", err)
	}
}
