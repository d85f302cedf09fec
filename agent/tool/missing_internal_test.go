package tool

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"throwbar.dev/throwbar/agent/tool/result"
)

// sameMark makes every mark the same.
type sameMark struct{}

func (sameMark) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

func rowsOf(n int, text string) *result.Value {
	l := result.List()
	for range n {
		l.Append(result.Text(text))
	}
	return l
}

// told prints an answer and returns it with its notes.
func told(t *testing.T, a Answer) (string, map[string]any) {
	t.Helper()
	shown, err := a.Print(sameMark{})
	if err != nil || len(shown) > MaxAnswer {
		t.Fatalf("%d bytes, %v", len(shown), err)
	}
	var out struct {
		Data map[string]any `json:"data"`
	}
	if err := json.Unmarshal([]byte(shown), &out); err != nil {
		t.Fatal(err)
	}
	return shown, out.Data
}

// TestEveryListThatIsCutIsTold: a list with one row left that nobody says is cut would be taken for all there is.
func TestEveryListThatIsCutIsTold(t *testing.T) {
	t.Parallel()
	body := result.Object()
	for i := range 6 {
		body.Add(fmt.Sprint("list", i), rowsOf(3000, "abcd"))
	}
	_, data := told(t, Answer{OK: true, body: body})
	note, _ := data["note"].(string)
	if !strings.HasSuffix(note, "rows of list2 left out for size. rows of 3 more lists left out for size") {
		t.Errorf("note %q", note)
	}
}

// TestWhatIsTooLargeIsNotSaidToBeShown has a member that no cutting of rows and texts makes small enough. It says itself that
// it is missing, what fits stays, and no rows are said to be there that are not.
func TestWhatIsTooLargeIsNotSaidToBeShown(t *testing.T) {
	t.Parallel()
	large := func(n int) *result.Value {
		v := result.Object()
		for i := range n {
			v.Add(fmt.Sprint("a key of some length ", i), result.Literal("true"))
		}
		return v
	}
	_, data := told(t, Answer{OK: true, body: result.Object().Add("deviceId", result.Text("d")).Add("rows", rowsOf(30, "abcd")).Add("values", large(3000)).
		Add(adviceKey, result.Text(editedText))})
	rows, _ := data["rows"].([]any)
	values, _ := data["values"].(string)
	note, _ := data["note"].(string)
	if data["deviceId"] != "d" || data[adviceKey] != editedText || len(rows) == 0 || !strings.HasSuffix(values, " bytes left out)") ||
		!strings.HasPrefix(note, fmt.Sprintf("%d of 30 rows of rows left out", 30-len(rows))) {
		t.Errorf("%d rows, %v", len(rows), data)
	}
	// A single row that is too large is left out too: the page is not said to be whole, and what comes after it is not gone on to.
	list := result.List(large(3000))
	_, data = told(t, Answer{OK: true, rows: "rows", body: result.Object().Add("rows", list).Add("nextPageToken", result.Text("further"))})
	note, _ = data["note"].(string)
	if data["nextPageToken"] != nil || !strings.HasPrefix(note, "1 of 1 rows of rows left out for size; narrow the call") {
		t.Errorf("%v", data)
	}
	// What has too many members of its own.
	shown, data := told(t, Answer{OK: true, body: large(3000).Add("rows", rowsOf(30, "abcd"))})
	if note, _ = data["note"].(string); data["tooLarge"] != true || note != "30 of 30 rows of rows left out for size" {
		t.Error(shown)
	}
}

// TestListsInWhatIsMissingAreNotTold: of a row that is left out, what was left out of its own lists says nothing.
func TestListsInWhatIsMissingAreNotTold(t *testing.T) {
	t.Parallel()
	outer := result.List()
	for i := range 60 {
		outer.Append(result.Object().Add("inner", rowsOf(60-i, strings.Repeat("z", 30))))
	}
	_, data := told(t, Answer{OK: true, body: result.Object().Add("outer", outer)})
	rows, _ := data["outer"].([]any)
	note, _ := data["note"].(string)
	if len(rows) == 0 || strings.Count(note, "rows of outer") != 1 || strings.Count(note, "rows of inner") > len(rows) {
		t.Errorf("%d rows: %s", len(rows), note)
	}
}

// TestACutAnswerKeepsItsOwnNote has an answer with a note of its own: what is missing is told beside it, under another name.
func TestACutAnswerKeepsItsOwnNote(t *testing.T) {
	t.Parallel()
	shown, data := told(t, Answer{OK: true, body: result.Object().Add("answer", result.Text(strings.Repeat("x", 40_000))).Add("note", result.Text("it still works"))})
	if missing, _ := data["cutNote"].(string); data["note"] != "it still works" || !strings.HasPrefix(missing, "texts were cut") || strings.Count(shown, `"note"`) != 1 {
		t.Errorf("%q, %q", data["note"], data["cutNote"])
	}
}
