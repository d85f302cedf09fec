package historytest

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"

	"throwbar.dev/throwbar/agent/model"
)

// Prefixes are all states in which an abort or a crash can leave a history: after each message, and also with a part of the
// results of parallel calls, in whatever order they came.
func Prefixes(messages []model.Message) [][]model.Message {
	out := make([][]model.Message, 0, len(messages)+1)
	for n := range len(messages) + 1 {
		out = append(out, slices.Clone(messages[:n]))
		// The last result so far may as well be the only one.
		if n >= 2 && messages[n-1].Role == model.RoleTool && messages[n-2].Role == model.RoleTool {
			begin := n - 1
			for messages[begin].Role == model.RoleTool {
				begin--
			}
			out = append(out, append(slices.Clone(messages[:begin+1]), messages[n-1]))
		}
	}
	return out
}

// Mangle returns a copy of a history with some things in it broken: messages that are gone, twice there or elsewhere, ids
// that are used again, gone or too long, names, arguments, roles and texts that nobody should send. Texts of users stay whole.
func Mangle(r *rand.Rand, messages []model.Message) []model.Message {
	out := clone(messages)
	for range 1 + r.IntN(6) {
		if len(out) == 0 {
			return out
		}
		i, j := r.IntN(len(out)), r.IntN(len(out))
		switch r.IntN(8) {
		case 0:
			if out[i].Role != model.RoleUser {
				out = slices.Delete(out, i, i+1)
			}
		case 1:
			out = slices.Insert(out, j, clone(out[i : i+1])[0])
		case 2:
			out[i], out[j] = out[j], out[i]
		case 3:
			out = slices.Insert(out, j, model.Message{Role: model.RoleSystem, Text: "a rule in the middle"})
		case 4:
			out[i].Images = append(out[i].Images, pick(r, "data:text/html;base64,aGk=", "http://h/x.png", "", "data:image/png;base64,aGk="))
		default:
			mangle(r, &out[i])
		}
	}
	return out
}

func mangle(r *rand.Rand, m *model.Message) {
	switch {
	case m.Role == model.RoleTool:
		switch r.IntN(4) {
		case 0:
			m.CallID = badID(r)
		case 1:
			m.Text = badText(r, m.Text)
		case 2:
			m.Role = pick(r, model.RoleAssistant, "function", "")
		default:
			m.Calls = []model.Call{{ID: badID(r)}}
		}
	case m.Role == model.RoleAssistant && len(m.Calls) > 0:
		c := &m.Calls[r.IntN(len(m.Calls))]
		switch r.IntN(5) {
		case 0:
			c.ID = badID(r)
		case 1:
			c.Name = pick(r, "", "close tabs", "-x", strings.Repeat("é", 70), "f.g/h")
		case 2:
			c.Extra = json.RawMessage(pick(r, "[]", "{", `{"a":"\ud800"}`, `{"a":"\u0000"}`, "{\"a\":\"\xff\"}", "null"))
		case 3:
			m.Calls = append(m.Calls, *c)
		default:
			c.Arguments = pick(r, "", "{", "null", "[1]", `"{}"`, `{"a":"\udc00"}`, `{"a":"\u0000"}`, "{\"a\":\"\xff\x00\"}", c.Arguments[:len(c.Arguments)/2],
				`{"a":`+strings.Repeat("[", 2000)+strings.Repeat("]", 2000)+`}`)
		}
	case m.Role == model.RoleAssistant:
		m.Text = badText(r, m.Text)
	}
}

func badID(r *rand.Rand) string {
	return pick(r, "", " ", "call_1", "call_2", "call_3", strings.Repeat("i", 70), "i\xff\x00")
}

// badText breaks a text, in its middle where it has one.
func badText(r *rand.Rand, text string) string {
	at := 0
	if len(text) > 0 {
		at = r.IntN(len(text))
	}
	return pick(r, "", " \n", "\x00", text[:at], text[:at]+"\xed\xa0\xbd"+text[at:], text[:at]+"\x00"+text[at:], text[at:])
}

func clone(messages []model.Message) []model.Message {
	out := slices.Clone(messages)
	for i := range out {
		out[i].Calls = slices.Clone(out[i].Calls)
		out[i].Images = slices.Clone(out[i].Images)
	}
	return out
}

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }
