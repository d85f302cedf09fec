package result_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"throwbar.dev/throwbar/agent/tool/result"
	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
)

func TestResultsAreTrimmed(t *testing.T) {
	t.Parallel()
	ok, gone, moved := commandv1.ItemStatus_ITEM_STATUS_OK, commandv1.ItemStatus_ITEM_STATUS_NOT_FOUND, commandv1.ItemStatus_ITEM_STATUS_REPLACED
	for _, row := range []struct {
		m    proto.Message
		want string
	}{
		{&commandv1.CloseTabs_Result{ClosedCount: 1, Items: []*commandv1.ItemOutcome{{Id: "a", Status: ok}, {Id: "b", Status: gone}}},
			`{"closedCount":1,"items":[{"id":"b","status":"not_found"}]}`},
		{&commandv1.CloseTabs_Result{Items: []*commandv1.ItemOutcome{{Id: "a", Status: ok}}}, `{"closedCount":0}`},
		{&commandv1.RestoreTabs_Result{RestoredCount: 1, Items: []*commandv1.ItemOutcome{{Id: "a", Status: ok, NewId: "n"}, {Id: "b", Status: moved}}},
			`{"restoredCount":1,"items":[{"id":"a","status":"ok","newId":"n"},{"id":"b","status":"replaced"}]}`},
		{&commandv1.CloseTabsByUrl_Result{Reason: "not_found"}, `{"closed":false,"closedCount":0,"reason":"not_found"}`},
		{&commandv1.GetActiveTab_Result{}, `{}`},
		{&commandv1.GetActiveTab_Result{TabId: proto.String("")}, `{"tabId":""}`},
		{&controlv1.ListTabsResponse{}, `{"total":0}`},
		{&controlv1.ListDevicesResponse{Devices: []*controlv1.Device{{
			DeviceId: "d", Kind: 1, Online: true, LastSeen: &timestamppb.Timestamp{Seconds: 1_800_000_000, Nanos: 123_456_789}, Actions: []string{"a", "b"},
			Freshness: &controlv1.Freshness{},
		}}}, `{"devices":[{"deviceId":"d","kind":"browser","online":true,"lastSeen":"2027-01-15T08:00:00Z","freshness":{},"actions":["a","b"]}]}`},
		{&commandv1.TabGroup{GroupId: "g", Colour: commandv1.Colour_COLOUR_PINK}, `{"groupId":"g","colour":"pink","collapsed":false}`},
		{&controlv1.CreateTokenResponse{Secret: "hush"}, `{"secret":"(hidden)"}`},
	} {
		if got := result.Of(row.m.ProtoReflect()).String(); got != row.want {
			t.Errorf("%T: %s, want %s", row.m, got, row.want)
		}
	}
}

func TestUnseenCharactersAreEscapes(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"a\"b\\c\n\t\r": `"a\"b\\c\n\t\r"`, "\x00\x1b\x7f\u0085": `"\u0000\u001b\u007f\u0085"`, "\u202e\u2066\u200b\ufeff\u00ad": `"\u202e\u2066\u200b\ufeff\u00ad"`,
		"\u2028\u2029": `"\u2028\u2029"`, "\U000E0041": `"\udb40\udc41"`, "\uE000": `"\ue000"`, "\U000E0100\uFE00": `"\udb40\udd00\ufe00"`,
		"é 日本 😀 ❤️ </>&": `"é 日本 😀 ❤️ </>&"`, "\xff": `"` + "\uFFFD" + `"`, "\u3164": `"\u3164"`,
	} {
		got := result.Text(in).String()
		if got != want {
			t.Errorf("%q: %s, want %s", in, got, want)
		}
		var back string
		if err := json.Unmarshal([]byte(got), &back); err != nil || back != strings.ToValidUTF8(in, "\uFFFD") {
			t.Errorf("%q comes back as %q, %v", in, back, err)
		}
	}
}

func TestCutKeepsCharactersWhole(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("é😀", 100)
	for most := range 40 {
		got := result.Cut(text, most)
		if !utf8.ValidString(got) || !strings.HasSuffix(got, " more bytes)") || len(got) > most+25 {
			t.Fatalf("%d: %q", most, got)
		}
	}
	if got := result.Cut("short", 5); got != "short" {
		t.Errorf("%q", got)
	}
}

// Whatever the value, what Fit leaves is no longer than the limit and is JSON.
func TestFitAlwaysFits(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	var value func(depth int) *result.Value
	value = func(depth int) *result.Value {
		switch n := random.IntN(6); {
		case n < 2 || depth == 0:
			return result.Text(strings.Repeat("é\u202e", random.IntN(90)))
		case n < 4:
			l := result.List()
			for range random.IntN(12) {
				l.Append(value(depth - 1))
			}
			return l
		default:
			o := result.Object()
			for i := range random.IntN(5) {
				o.Add(fmt.Sprint("m", i), value(depth-1))
			}
			return o
		}
	}
	cut := 0
	for range 200 {
		limit := 200 + random.IntN(4000)
		v := result.Object().Add("top", value(4))
		before := len(v.String())
		left := result.Fit(v, limit)
		got := v.String()
		if len(got) > limit && before > limit || !json.Valid([]byte(got)) || before <= limit && (len(left) > 0 || len(got) != before) {
			t.Fatalf("limit %d: %d bytes became %d: %s", limit, before, len(got), got)
		}
		if len(left) > 0 {
			cut++
		}
		for _, l := range left {
			if l.Shown >= l.Of {
				t.Errorf("left: %+v", l)
			}
		}
	}
	if cut < 20 {
		t.Errorf("only %d lists were cut", cut)
	}
}

func TestFitLeavesOutRowsFromTheEnd(t *testing.T) {
	t.Parallel()
	rows := result.List()
	for i := range 100 {
		rows.Append(result.Object().Add("n", result.Literal(fmt.Sprint(i))))
	}
	v := result.Object().Add("rows", rows).Add("total", result.Literal("100"))
	left := result.Fit(v, 200)
	var got struct {
		Rows  []struct{ N int }
		Total int
	}
	if err := json.Unmarshal([]byte(v.String()), &got); err != nil {
		t.Fatal(err)
	}
	if len(left) != 1 || left[0] != (result.Left{Name: "rows", Top: true, Shown: len(got.Rows), Of: 100}) || got.Total != 100 || len(got.Rows) < 10 || got.Rows[5].N != 5 {
		t.Errorf("%+v; %s", left, v)
	}
}

func TestTheMarkOfASealDoesNotOccurInIt(t *testing.T) {
	t.Parallel()
	body := result.Object().Add("a", result.Text(`","end":"aaaaaa"}`))
	got, err := result.Seal(bytes.NewReader(append(make([]byte, 4), 0xFF, 0xFF, 0xFF, 0xFF)), false, body)
	if want := `{"ok":false,"mark":"777777","error":{"a":"\",\"end\":\"aaaaaa\"}"},"end":"777777"}`; err != nil || got != want {
		t.Errorf("%s, %v", got, err)
	}
	if got, err := result.Seal(bytes.NewReader(make([]byte, 400)), true, body); err == nil {
		t.Errorf("sealed with a mark that is in it: %s", got)
	}
	if _, err := result.Seal(iotest.ErrReader(errors.New("dry")), true, result.Object()); err == nil {
		t.Error("no error")
	}
}

// No character that a reader does not see gets through, whether its kind is known to the tables of Go or not.
func TestWhatCannotBeSeenIsAnEscape(t *testing.T) {
	t.Parallel()
	for _, r := range []rune{
		0, 7, 0x1B, 0x7F, 0x80, 0x9B, 0xAD, 0x34F, 0x61C, 0x115F, 0x1160, 0x17B4, 0x180B, 0x180E, 0x180F, 0x200B, 0x200D, 0x200E, 0x202A, 0x202E,
		0x2028, 0x2029, 0x2060, 0x2064, 0x2065, 0x2066, 0x2069, 0x206F, 0x2800, 0x3164, 0xE000, 0xFDD0, 0xFE00, 0xFEFF, 0xFFA0, 0xFFF0, 0xFFF9,
		0xFFFE, 0x1D173, 0xE0000, 0xE0001, 0xE0002, 0xE0041, 0xE007F, 0xE0100, 0xE01EF, 0xE0FFF, 0xF0000, 0x10FFFF,
	} {
		text := "a" + string(r) + "b"
		got := result.Text(text).String()
		var back string
		if err := json.Unmarshal([]byte(got), &back); err != nil || back != text || strings.ContainsRune(got, r) || !strings.Contains(got, `\u`) {
			t.Errorf("%U: %q, %v", r, got, err)
		}
		if got := result.Visible(text); got != "a\uFFFDb" {
			t.Errorf("%U is visible as %q", r, got)
		}
	}
	for _, text := range []string{"plain", "Größe", "日本語", "❤\uFE0F", "😀", "שלום", "नमस्ते", "a\u00A0b", "²"} {
		if got := result.Text(text).String(); got != `"`+text+`"` || result.Visible(text) != text {
			t.Errorf("%q became %s", text, got)
		}
	}
	if got := result.Visible("a\r\nb\tc"); got != "a  b c" {
		t.Errorf("%q", got)
	}
}

// Of a private tab a model reads the id and what state it is in: what it reads is kept.
func TestPrivateTabsHaveNoText(t *testing.T) {
	t.Parallel()
	tab := &commandv1.Tab{
		TabId: "d_tb1-1", WindowId: "d_wb1-1", Url: "https://canary.example/", Title: "canary", Pinned: true, Private: true,
	}
	page := &controlv1.ListTabsResponse{Total: 2, Tabs: []*commandv1.Tab{tab, {TabId: "d_tb1-2", Url: "https://b.example/", Title: "B"}}}
	got := result.Of(page.ProtoReflect()).String()
	if strings.Contains(got, "canary") || !strings.Contains(got, `"tabId":"d_tb1-1"`) || !strings.Contains(got, `"private":true`) ||
		!strings.Contains(got, `"pinned":true`) || !strings.Contains(got, "https://b.example/") {
		t.Error(got)
	}
}
