package model

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"
)

// encode is the body of a request in one piece.
func (c *Client) encode(request Request) ([]byte, error) {
	body, err := c.body(request)
	return bytes.Join(body, nil), err
}

// TestToolsAreWrittenDownAsTheyAre offers tools that change now and then, also in the memory that they were in: they are written down
// as they are without a memory, and not again while they are the same.
func TestToolsAreWrittenDownAsTheyAre(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 7))
	tools := []Tool{{Name: "a", Description: "what a does"}, {Name: "b", Parameters: json.RawMessage(`{"type":"object","title":"0"}`)}}
	var known Repairer
	var last, copied []byte
	same := 0
	for step := range 500 {
		switch i := r.IntN(len(tools)); r.IntN(12) {
		case 0:
			tools[i].Description = randomText(r)
		case 1:
			tools[1].Parameters[26] = byte('0' + r.IntN(10)) // in place
		case 2:
			tools[i].Strict = !tools[i].Strict
		case 3:
			tools = append(tools, Tool{Name: fmt.Sprint("t", step)})
		case 4:
			tools = tools[:2]
		case 5:
			known.begin([]Message{{Role: RoleUser, Text: fmt.Sprint(step)}}) // another history
		}
		got, err := known.writtenTools(tools)
		if err != nil {
			t.Fatal(err)
		}
		want, err := (*Repairer)(nil).writtenTools(tools)
		if err != nil || !bytes.Equal(got, want) {
			t.Fatalf("step %d: %v\n%s\nwant\n%s", step, err, got, want)
		}
		if !bytes.Equal(last, copied) {
			t.Fatalf("step %d: what was written down before is another now", step)
		}
		if len(last) > 0 && &last[0] == &got[0] {
			same++
		}
		last, copied = got, bytes.Clone(got)
		if size, most := known.Size(), 2*len(got)+len(tools)*200+4096; size < len(got) || size > most {
			t.Fatalf("step %d: %d bytes are said to be kept, of at most %d", step, size, most)
		}
	}
	if same < 250 {
		t.Errorf("tools were the same %d times", same)
	}
	if _, err := known.writtenTools([]Tool{{Name: "c", Parameters: json.RawMessage(`{`)}}); err == nil {
		t.Error("parameters that are not JSON are written down")
	}
	if got, err := known.writtenTools(nil); err != nil || got != nil {
		t.Errorf("no tools: %q, %v", got, err)
	}
}
