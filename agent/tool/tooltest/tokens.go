package tooltest

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/tiktoken-go/tokenizer/codec"
)

// Function is a tool as it goes to a model.
type Function struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
	Strict      bool            `json:"strict,omitempty"`
}

// Array is the list of tools of a request, as compact JSON.
func Array(t testing.TB, functions []Function) string {
	t.Helper()
	type entry struct {
		Type     string   `json:"type"`
		Function Function `json:"function"`
	}
	list := make([]entry, len(functions))
	for i, f := range functions {
		list[i] = entry{"function", f}
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(list); err != nil {
		t.Fatal(err)
	}
	return string(bytes.TrimSpace(out.Bytes()))
}

// Tokens is how many tokens of o200k a text has.
func Tokens(t testing.TB, text string) int {
	t.Helper()
	n, err := codec.NewO200kBase().Count(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
