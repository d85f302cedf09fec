package args_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"throwbar.dev/throwbar/agent/tool/args"
	"throwbar.dev/throwbar/agent/tool/tooltest"
)

var update = flag.Bool("update", false, "write the golden file")

// tabs is a contract with a bit of everything that a tool's arguments have.
const tabs = `
enum Colour { COLOUR_UNSPECIFIED=0; COLOUR_GREY=1; COLOUR_BLUE=2; COLOUR_GREEN=3; COLOUR_OLD=4 [deprecated=true]; }
message Place { string window_id=1 [` + v + `.string.min_len=1]; uint32 index=2 [` + v + `.uint32.lte=100]; }
message Part { string name=1; int64 size=2; repeated Part parts=3; }
message In {
	repeated string tab_ids=1 [` + v + `.repeated={min_items:1,max_items:3,unique:true,items:{string:{min_len:1}}}];
	string url=2 [` + v + `.string={uri:true,max_len:40}, ` + v + `.ignore=IGNORE_IF_ZERO_VALUE];
	optional string title=3 [` + v + `.string.max_len=8]; Colour colour=4; optional bool pinned=5; int64 long=6; uint32 count=7;
	Place place=8; repeated Part parts=9; map<string,int32> counts=10 [` + v + `.map={max_pairs:2,values:{int32:{gte:0}}}];
	map<int64,Part> named=11; oneof where { string group_id=12; Place spot=13; } google.protobuf.Duration pause=14 [` + v + `.duration.lte={seconds:60}];
	google.protobuf.Timestamp at=15; google.protobuf.FieldMask fields=16; google.protobuf.Value data=17; google.protobuf.Struct extra=18;
	optional bytes key=19 [` + v + `.bytes.len=3]; double share=20 [` + v + `.double={gte:0,lte:1}]; google.protobuf.Int64Value size=21;
	repeated Colour colours=22; google.protobuf.Empty nothing=23;
}`

// broken are arguments with mistakes that models make, and where each mistake is. A place that a name is suggested for is
// followed by the name. The texts are in testdata/broken.golden.
func broken() [][2]string {
	return [][2]string{
		{`{}`, "/tabIds"},
		{`{"tabIds":[]}`, "/tabIds"},
		{`{"tabIds":"none"}`, ""}, // one item
		{`{"tabIds":[1]}`, "/tabIds/0"},
		{`{"tabIds":[1,true,null,{},[]]}`, "/tabIds/0 /tabIds/1 /tabIds/2 /tabIds/3 /tabIds/4"},
		{`{"tabIds":["a","a"]}`, "/tabIds"},
		{`{"tabIds":["a","b","c","d"]}`, "/tabIds"},
		{`{"tabIds":["a",""]}`, "/tabIds/1"},
		{`{"tab_ids":["a",""],"title":"much too long"}`, "/tab_ids/1 /title"},
		{`{"tabids":["a"]}`, "/tabids=tabIds"},
		{`{"tab_id":["a"]}`, "/tab_id=tabIds"},
		{`{"ids":["a"]}`, "/ids=tabIds"},
		{`{"tabIds":["a"],"tab_ids":["b"]}`, "/tab_ids"},
		{`{"tabIds":["a"],"tabIds":["b"]}`, "/tabIds"},
		{`{"tabIds":{"0":"a"}}`, "/tabIds/0"},
		{`{"tabIds":["a"],"url":"not a url"}`, "/url"},
		{`{"tabIds":["a"],"url":["https://a.example"]}`, "/url"},
		{`{"tabIds":["a"],"url":{"href":"https://a.example"}}`, "/url"},
		{`{"tabIds":["a"],"titel":"x"}`, "/titel=title"},
		{`{"tabIds":["a"],"Title":"x"}`, "/Title=title"},
		{`{"tabIds":["a"],"title":7}`, "/title"},
		{`{"tabIds":["a"],"colour":"gren"}`, "/colour=green"},
		{`{"tabIds":["a"],"color":"green"}`, "/color=colour"},
		{`{"tabIds":["a"],"colour":"magenta"}`, "/colour"},
		{`{"tabIds":["a"],"colour":["green"]}`, "/colour"},
		{`{"tabIds":["a"],"colour":17}`, "/colour"},
		{`{"tabIds":["a"],"colour":true}`, "/colour"},
		{`{"tabIds":["a"],"colours":["blue","gray","green"]}`, "/colours/1=grey"},
		{`{"tabIds":["a"],"pinned":"true"}`, "/pinned"},
		{`{"tabIds":["a"],"pinned":1}`, "/pinned"},
		{`{"tabIds":["a"],"isPinned":true}`, "/isPinned=pinned"},
		{`{"tabIds":["a"],"long":1.5}`, "/long"},
		{`{"tabIds":["a"],"long":"12 tabs"}`, "/long"},
		{`{"tabIds":["a"],"long":9223372036854775808}`, "/long"},
		{`{"tabIds":["a"],"long":"0x10"}`, "/long"},
		{`{"tabIds":["a"],"count":-1}`, "/count"},
		{`{"tabIds":["a"],"count":4294967296}`, "/count"},
		{`{"tabIds":["a"],"count":"many"}`, "/count"},
		{`{"tabIds":["a"],"place":"left"}`, "/place"},
		{`{"tabIds":["a"],"place":{}}`, "/place/windowId"},
		{`{"tabIds":["a"],"place":{"window_id":"","index":101}}`, "/place/window_id /place/index"},
		{`{"tabIds":["a"],"place":{"windowID":"w","position":3}}`, "/place/windowID=windowId /place/position"},
		{`{"tabIds":["a"],"place":[{"windowId":"w"}]}`, "/place"},
		{`{"tabIds":["a"],"parts":[{"name":1,"parts":[{"size":"big","nam":"x"}]}]}`, "/parts/0/name /parts/0/parts/0/size /parts/0/parts/0/nam=name"},
		{`{"tabIds":["a"],"counts":{"a":-1,"b":"two"}}`, "/counts/b /counts/a"},
		{`{"tabIds":["a"],"counts":{"a":1,"b":2,"c":3}}`, "/counts"},
		{`{"tabIds":["a"],"counts":[1,2]}`, "/counts"},
		{`{"tabIds":["a"],"counts":[{"key":"a","value":-1}]}`, "/counts/0/value"},
		{`{"tabIds":["a"],"named":{"first":{"name":"x"},"2":{"nme":"y"}}}`, "/named/first /named/2/nme=name"},
		{`{"tabIds":["a"],"groupId":"g","spot":{"windowId":"w"}}`, "/spot"},
		{`{"tabIds":["a"],"pause":30}`, "/pause"},
		{`{"tabIds":["a"],"pause":"PT30S"}`, "/pause"},
		{`{"tabIds":["a"],"pause":"90s"}`, "/pause"},
		{`{"tabIds":["a"],"at":"tomorrow"}`, "/at"},
		{`{"tabIds":["a"],"at":1764288000}`, "/at"},
		{`{"tabIds":["a"],"fields":"window_id"}`, "/fields"},
		{`{"tabIds":["a"],"fields":["windowId","url"]}`, "/fields"},
		{`{"tabIds":["a"],"data":{"n":9007199254740993}}`, "/data/n"},
		{`{"tabIds":["a"],"extra":["a"]}`, "/extra"},
		{`{"tabIds":["a"],"key":"AQIDBA=="}`, "/key"},
		{`{"tabIds":["a"],"key":"not base64!"}`, "/key"},
		{`{"tabIds":["a"],"share":"half"}`, "/share"},
		{`{"tabIds":["a"],"share":50}`, "/share"},
		{`{"tabIds":["a"],"size":"1e3"}`, "/size"},
		{`{"tabIds":["a"],"nothing":{"x":1}}`, "/nothing"},
		{`{"tabIds":["a"]`, "/"},
		{`{"tabIds":["a"],}`, "/"},
		{`{'tabIds':['a']}`, "/"},
		{`["a"]`, "/"},
		{`{"arguments":{"tabIds":["a"]}}`, "/arguments /tabIds"},
	}
}

// TestBrokenArguments scores the decoder on fixed mistakes: it finds each of them, all at once, says where, and suggests
// the name that was meant.
func TestBrokenArguments(t *testing.T) {
	t.Parallel()
	md := tooltest.Message(t, tabs)
	var golden strings.Builder
	found, planted := 0, 0
	for _, row := range broken() {
		want := strings.Fields(row[1])
		got, err := decode(md, row[0], false)
		fmt.Fprintf(&golden, "%s\n", row[0])
		var problems args.Problems
		errors.As(err, &problems)
		for _, line := range problems.Lines() {
			fmt.Fprintf(&golden, "    %s\n", line)
		}
		for _, line := range got.Repairs {
			fmt.Fprintf(&golden, "    (%s)\n", line)
		}
		var places []string
		for _, p := range problems {
			place := p.Pointer
			if place == "" {
				place = "/"
			}
			if p.Nearest != "" {
				place += "=" + p.Nearest
			}
			places = append(places, place)
		}
		planted += len(want)
		for _, place := range want {
			if slices.Contains(places, place) {
				found++
			}
		}
		if !slices.Equal(places, want) {
			t.Errorf("%s: problems at %q, want %q\n%v", row[0], places, want, err)
		}
	}
	t.Logf("%d objects: %d of %d mistakes found where they are", len(broken()), found, planted)
	if *update {
		if err := os.WriteFile("testdata/broken.golden", []byte(golden.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	saved, err := os.ReadFile("testdata/broken.golden")
	if err != nil || string(saved) != golden.String() {
		t.Errorf("the texts are not those of testdata/broken.golden (%v); run with -update and look at the difference", err)
	}
}
