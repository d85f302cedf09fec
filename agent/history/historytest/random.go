package historytest

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"

	"throwbar.dev/throwbar/agent/model"
)

// Talk makes conversations that look like those of people: they ask, the model calls tools, several at once now and then,
// and answers. Everything in them is as the turn writes it, images on the results of tools included.
type Talk struct {
	Random *rand.Rand
	// Long is the most bytes of a result; 400 if zero.
	Long int
	// Plain leaves out images.
	Plain bool

	call int
}

// Conversation makes a conversation of about n messages. It ends with an answer.
func (t *Talk) Conversation(n int) []model.Message {
	var out []model.Message
	for len(out) < n {
		out = append(out, t.Turn()...)
	}
	return out
}

// Turn makes a message of the user and all that follows it.
func (t *Talk) Turn() []model.Message {
	out := []model.Message{{Role: model.RoleUser, Text: t.Words(1 + t.Random.IntN(30))}}
	for range t.Random.IntN(4) {
		out = append(out, t.Round(1+t.Random.IntN(4))...)
	}
	return append(out, model.Message{Role: model.RoleAssistant, Text: t.Words(1 + t.Random.IntN(40)), Reasoning: t.sometimes(t.Words(5))})
}

// Round makes an answer with calls, and their results.
func (t *Talk) Round(calls int) []model.Message {
	out := []model.Message{{Role: model.RoleAssistant, Text: t.sometimes(t.Words(6)), Reasoning: t.sometimes(t.Words(9))}}
	for range calls {
		t.call++
		call := model.Call{ID: fmt.Sprintf("call_%d", t.call), Name: t.pick("searchTabs", "closeTabs", "listDevices", "openTab"), Arguments: t.object(3)}
		if t.Random.IntN(5) == 0 {
			call.Extra = json.RawMessage(`{"google":{"thought_signature":"` + t.id() + `"}}`)
		}
		out[0].Calls = append(out[0].Calls, call)
		out = append(out, t.result(call.ID))
	}
	return out
}

func (t *Talk) result(id string) model.Message {
	m := model.Message{Role: model.RoleTool, CallID: id}
	mark := t.id()[:6]
	switch t.Random.IntN(8) {
	case 0:
		m.Text = `{"ok":false,"mark":"` + mark + `","error":{"code":"offline","message":"Home PC is offline"},"end":"` + mark + `"}`
	case 1:
		m.Text = `{"ok":false,"mark":"` + mark + `","error":{"code":"interrupted","message":"the turn was stopped"},"end":"` + mark + `"}`
	default:
		long := t.Long
		if long == 0 {
			long = 400
		}
		m.Text = `{"ok":true,"mark":"` + mark + `","data":` + t.object(1+t.Random.IntN(long)/40) + `,"end":"` + mark + `"}`
	}
	if !t.Plain && t.Random.IntN(8) == 0 {
		m.Images = []string{t.Image(30 + t.Random.IntN(300))}
	}
	return m
}

// Image makes the URL of an image of some bytes. They are no picture: nobody here looks.
func (t *Talk) Image(bytes int) string {
	raw := make([]byte, bytes)
	for i := range raw {
		raw[i] = byte(t.Random.Uint32())
	}
	return "data:image/" + t.pick("png", "jpeg", "webp") + ";base64," + base64.StdEncoding.EncodeToString(raw)
}

func (t *Talk) object(members int) string {
	o := map[string]any{}
	for range members {
		switch t.Random.IntN(4) {
		case 0:
			o["tabIds"] = []string{t.id(), t.id()}
		case 1:
			o["deviceId"] = t.id()
		case 2:
			o["n"+t.id()[:4]] = t.Random.IntN(1e9)
		default:
			o["t"+t.id()[:4]] = t.Words(4)
		}
	}
	text, err := json.Marshal(o)
	if err != nil {
		panic(err) // texts and numbers
	}
	return string(text)
}

func (t *Talk) id() string { return fmt.Sprintf("%08x-%04x", t.Random.Uint32(), t.Random.Uint32()>>16) }

// Words makes a text of some words, in several scripts.
func (t *Talk) Words(n int) string {
	words := make([]string, n)
	for i := range words {
		words[i] = t.pick("close", "all", "tabs", "about", "the", "Zürich", "Москва", "東京", "مرحبا", "नमस्ते", "👩‍👩‍👧", "🇨🇭", "e\u0301", "\"quoted\"",
			`C:\temp`, "https://example.org/a?b=c", "2026-11-28", "\n", "<b>", "done")
	}
	return strings.TrimSpace("x " + strings.Join(words, " "))
}

func (t *Talk) sometimes(text string) string {
	if t.Random.IntN(3) > 0 {
		return ""
	}
	return text
}

func (t *Talk) pick(from ...string) string { return from[t.Random.IntN(len(from))] }
