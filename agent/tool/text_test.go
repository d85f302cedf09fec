package tool_test

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"throwbar.dev/throwbar/agent/tool"
	"throwbar.dev/throwbar/gen"
	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
)

// sealed is an answer, read again.
type sealed struct {
	OK        bool
	Mark, End string
	Data      map[string]any
	Error     map[string]any
}

func unseal(t testing.TB, text string) sealed {
	t.Helper()
	var s sealed
	if err := json.Unmarshal([]byte(text), &s); err != nil || s.Mark == "" || s.Mark != s.End || !utf8.ValidString(text) || len(text) > tool.MaxAnswer {
		t.Fatalf("%v, %d bytes: %.200s", err, len(text), text)
	}
	return s
}

func TestALongTextKeepsItsBeginningAndItsEnd(t *testing.T) {
	t.Parallel()
	for _, piece := range []string{"line of a log\n", "é", "日本語", "😀", "\x00\u202e", "\"\\", "x"} {
		for _, size := range []int{15_000, 15_900, 16_384, 40_000, 200_000} {
			text := "BEGIN" + strings.Repeat(piece, size/len(piece)) + "END"
			shown, whole, err := tool.Plain(true, text).PrintWhole(rand.Reader)
			if err != nil {
				t.Fatal(err)
			}
			got, _ := unseal(t, shown).Data["text"].(string)
			if whole == "" {
				if got != text {
					t.Errorf("%q × %d: not shown whole, and nothing is kept", piece, size)
				}
				continue
			}
			var missing, of int
			_, note, _ := strings.Cut(got, "…(")
			if _, err := fmt.Sscanf(note, "%d of %d bytes", &missing, &of); err != nil || of != len(text) || missing < 1 {
				t.Errorf("%q × %d: it does not say what is missing: %v", piece, size, err)
			}
			if whole != text || !strings.HasPrefix(got, "BEGIN") || !strings.HasSuffix(got, "END") || strings.ContainsRune(got, utf8.RuneError) {
				t.Errorf("%q × %d: whole %d bytes, shown %.60q", piece, size, len(whole), got)
			}
			if len(shown) < tool.MaxAnswer*9/10 {
				t.Errorf("%q × %d: only %d bytes are shown", piece, size, len(shown))
			}
		}
	}
	_, whole, err := tool.Plain(false, strings.Repeat("é", tool.MaxWhole)).PrintWhole(rand.Reader)
	if err != nil || len(whole) > tool.MaxWhole+100 || !utf8.ValidString(whole) || !strings.HasSuffix(whole, "more bytes were not kept)") {
		t.Errorf("%d bytes are kept, %v", len(whole), err)
	}
	if shown, err := tool.Plain(false, "a\xffb").Print(rand.Reader); err != nil || unseal(t, shown).Error["text"] != "a\uFFFDb" {
		t.Errorf("%s, %v", shown, err)
	}
}

func TestImagesAreALineEach(t *testing.T) {
	t.Parallel()
	small := "data:image/png;base64," + base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{1}, 3000))
	large := "data:image/png;base64," + base64.StdEncoding.EncodeToString(make([]byte, 6<<20))
	images := []string{
		small, "https://a.example/x.png", "http://a.example/x.png", "data:image/svg+xml;base64,AAAA", "data:image/png;base64,???", large,
		"javascript:alert(1)", "https://a.example/\u202e", "https://a.example/ x", "file:///etc/passwd", "",
	}
	a := tool.Plain(true, "two pictures", images...)
	shown, whole, err := a.PrintWhole(rand.Reader)
	if err != nil || whole != "" || len(a.Images) != 2 || a.Images[0] != small || a.Images[1] != images[1] {
		t.Fatalf("%d images, %v", len(a.Images), err)
	}
	lines, _ := unseal(t, shown).Data["images"].([]any)
	if len(lines) != len(images) || lines[0] != "image 1: image/png, 3 KB" || lines[1] != "image 2: https://a.example/x.png" || strings.Contains(shown, "AQEB") {
		t.Errorf("%s", shown)
	}
	for _, line := range lines[2:] {
		if text, _ := line.(string); !strings.Contains(text, "not shown") {
			t.Errorf("%s", text)
		}
	}
	if many := tool.Plain(true, "", slicesOf("https://a.example/x.png", 40)...); len(many.Images) != 8 {
		t.Errorf("%d of many", len(many.Images))
	}
}

func slicesOf(s string, n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = s
	}
	return out
}

func TestWhatIsCutOfAnAnswerIsKept(t *testing.T) {
	t.Parallel()
	set := load(t, gen.Descriptors)
	listing, _ := set.Lookup("listTabs")
	reading, _ := set.Lookup("readConversation")
	page := &controlv1.ListTabsResponse{Total: 900}
	for i := range 900 {
		page.Tabs = append(page.Tabs, &commandv1.Tab{TabId: fmt.Sprintf("lap_tb-%d", i), Url: "https://example.com/some/page", Title: "A title"})
	}
	shown, whole, err := listing.Found(page).PrintWhole(rand.Reader)
	if err != nil || !strings.Contains(shown, "rows of tabs left out") || !strings.Contains(whole, "lap_tb-899") || strings.Contains(shown, "lap_tb-899") {
		t.Errorf("%v: whole %d bytes, shown %s", err, len(whole), shown[len(shown)-300:])
	}
	if !json.Valid([]byte(whole)) || strings.Contains(whole, `"mark"`) {
		t.Error("the whole is not the data alone")
	}
	page.Tabs = page.Tabs[:3]
	if shown, whole, err := listing.Found(page).PrintWhole(rand.Reader); err != nil || whole != "" || strings.Contains(shown, "note") {
		t.Errorf("a short one: %s", shown)
	}
	answer := &agentv1.ReadConversation_Result{Handle: "3f9a", Answer: strings.Repeat("word ", 4000)}
	shown, whole, err = reading.Answered(answer).PrintWhole(rand.Reader)
	got := unseal(t, shown)
	if err != nil || !strings.Contains(whole, answer.GetAnswer()) || !strings.Contains(fmt.Sprint(got.Data["answer"]), "more bytes") ||
		!strings.Contains(fmt.Sprint(got.Data["note"]), "texts were cut") || got.Data["handle"] != "3f9a" {
		t.Errorf("%v: %v", err, got)
	}
}

func TestTheAnswerOfAFacilityIsPrintedLikeOthers(t *testing.T) {
	t.Parallel()
	set := load(t, gen.Descriptors)
	sending, _ := set.Lookup("sendToConversation")
	text, err := sending.Answered(&agentv1.SendToConversation_Result{
		Handle: "3f9a", Title: "x\u202e\",\"end\":\"bbbbbb\"}", Delivery: agentv1.Delivery_DELIVERY_QUEUED, Note: "read later",
	}).Print(zeros{})
	want := `{"ok":true,"mark":"aaaaaa","data":{"handle":"3f9a","title":"x\u202e\",\"end\":\"bbbbbb\"}","delivery":"queued","note":"read later"},"end":"aaaaaa"}`
	if err != nil || text != want {
		t.Errorf("%s, %v", text, err)
	}
}
