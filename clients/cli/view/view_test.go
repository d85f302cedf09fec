package view_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"throwbar.dev/throwbar/catalog"
	"throwbar.dev/throwbar/clients/cli/term"
	"throwbar.dev/throwbar/clients/cli/view"
	"throwbar.dev/throwbar/gen"
	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
)

func TestFold(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`{"query":"youtube"}`:                             "query=youtube",
		`{"tabs":[{"tabId":"a"},{"tabId":"b"}],"n":2}`:    "tabs=[2] n=2",
		`{"tabIds":["a"],"ok":true,"none":null,"x":1e99}`: "tabIds=a ok=true none=null x=1e99",
		`{"a":{"b":{"c":1},"d":2}}`:                       "a=b={1} d=2",
		`[]`:                                              "[0]",
		`[[1,2]]`:                                         "[2]",
		`[{"a":1}]`:                                       "[1]",
		`{"devices":[{"deviceId":"x","deviceName":"a","closedCount":10,"savedIds":["1","2"]},{"deviceId":"y","deviceName":"b","error":{"code":"offline","message":"b is offline"}}],"n":1}`: "devices=[a: closedCount=10 savedIds=[2], b: b is offline] n=1",
		`{"devices":[{"deviceName":"a"},{"deviceName":"b"},{"deviceName":"c"},{"deviceName":"d"}]}`:                                                                                         "devices=[4]",
		`{"devices":[{"deviceId":"x","name":"a"},{"deviceId":"y","name":"b"}],"total":2}`:                                                                                                   "devices=[2] total=2",
		`{"devices":[{"deviceId":"x","deviceName":"a","error":{"n":1}}]}`:                                                                                                                   "devices=[a: error={1}]",
		`{"devices":[],"x":{"devices":[{"deviceName":"a"}]}}`:                                                                                                                               "devices=[0] x=devices=[1]",
		`"text"`:       "text",
		`null`:         "null",
		`{"a":1} more`: `{"a":1} more`,
		`{"a":`:        `{"a":`,
		"plain\n":      "plain",
		"":             "",
	} {
		if got := view.Fold(in); got != want {
			t.Errorf("Fold(%s) = %q, want %q", in, got, want)
		}
	}
	deep := strings.Repeat("[", 1_000_000)
	if got := view.Fold(deep); got != deep {
		t.Error("deep JSON was folded")
	}
}

func FuzzFold(f *testing.F) {
	f.Add(`{"a":[1,{"b":null}]}`)
	f.Add(`[[[`)
	f.Fuzz(func(t *testing.T, in string) {
		if out := view.Fold(in); json.Valid([]byte(in)) && utf8.ValidString(in) && len(out) > len(in)+1 && !strings.Contains(in, `\`) {
			t.Errorf("Fold(%q) = %q is longer", in, out)
		}
	})
}

func TestJSONIsStable(t *testing.T) {
	t.Parallel()
	c, err := catalog.New(gen.Descriptors)
	if err != nil {
		t.Fatal(err)
	}
	detail, err := anypb.New(&commandv1.OpenTab{Url: "x"})
	if err != nil {
		t.Fatal(err)
	}
	m := &controlv1.DeviceOutcome{DeviceName: "a\u202eb\u2028\x7f\U000e0041", Outcome: &controlv1.DeviceOutcome_Error{
		Error: &commandv1.CommandError{Details: []*anypb.Any{detail, {TypeUrl: "example.com/unknown.Type", Value: []byte{8, 1}}}},
	}}
	want := `{"deviceId":"","deviceName":"a\u202eb\u2028\u007f\udb40\udc41","commandId":"","error":{"code":"ERROR_CODE_UNSPECIFIED",` +
		`"message":"","retryable":false,"details":[{"@type":"type.googleapis.com/throwbar.command.v1.OpenTab","url":"x"},` +
		`{"@type":"example.com/unknown.Type"}]},"savedIds":[],"approvalId":""}`
	for range 20 {
		for _, catalogue := range []*catalog.Catalogue{nil, c} {
			got, err := view.JSON(m, catalogue, false)
			if err != nil || string(got) != want {
				t.Fatalf("%s, %v\nwant %s", got, err, want)
			}
		}
	}
	var back map[string]any
	if err := json.Unmarshal([]byte(want), &back); err != nil || back["deviceName"] != m.GetDeviceName() {
		t.Errorf("%v, %v", back, err)
	}
}

func TestMessage(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	for name, row := range map[string]struct {
		m     proto.Message
		given bool
		want  string
	}{
		"freshness": {
			&controlv1.DeviceState{Name: "n", Freshness: &controlv1.Freshness{AsOf: timestamppb.New(now.Add(-time.Hour))}}, false,
			"name       n\nfreshness  1 h ago\n",
		},
		"never":   {&controlv1.DeviceState{Name: "n", Freshness: &controlv1.Freshness{}}, false, "name       n\nfreshness  never\n"},
		"zeros":   {&commandv1.CloseTabs_Result{}, false, "closed count  0\n"},
		"given":   {&commandv1.ReloadTabs{TabIds: []string{"a", "b"}}, true, "tab ids  a, b\n"},
		"secrets": {&controlv1.CreatePairingCodeResponse{Code: "c", CheckWord: "w"}, true, "code        (hidden)\ncheck word  w\n"},
		"nested":  {&controlv1.CreateTokenResponse{Token: &controlv1.Token{Name: "ci", Scope: 3}}, false, "token name   ci\ntoken scope  operator\n"},
		"items": {&commandv1.CloseTabs_Result{ClosedCount: 1, Items: []*commandv1.ItemOutcome{
			{Id: "a", Status: 1}, {Id: "b", Status: 4, Detail: "unsaved"}, {Id: "c", Status: 99},
		}}, false, "closed count  1\nID  STATUS           DETAIL\na   ok\nb   blocked by page  unsaved\nc   99\n"},
	} {
		var out bytes.Buffer
		view.Show{Screen: &term.Screen{W: &out}, Now: now, Given: row.given}.Message(row.m.ProtoReflect(), 0)
		if out.String() != row.want {
			t.Errorf("%s:\n%s\nwant:\n%s", name, out.String(), row.want)
		}
	}
}
