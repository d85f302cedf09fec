package history

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"throwbar.dev/throwbar/agent/model"
)

// detail is how many bytes of each thing a line has.
type detail struct {
	user, text, arguments, result, ids int
}

// brief is what a summary has of a step; the others are what a model is told that writes one.
func brief() detail { return detail{user: 100, text: 240, arguments: 160, ids: 8} }

func full() detail { return detail{user: 2_000, text: 1_200, arguments: 400, result: 600} }

func middle() detail { return detail{user: 800, text: 500, arguments: 200, result: 200} }

// maxID is how many bytes of an id are told.
const maxID = 100

// steps tells what happened, a line for each message and each call.
func steps(messages []message, d detail) []string {
	results := map[string]string{}
	for _, m := range messages {
		if m.Role == model.RoleTool {
			results[m.CallID] = m.Text
		}
	}
	var out []string
	for _, m := range messages {
		who, most := "user", d.user
		switch {
		case m.Role == model.RoleTool, m.Role == model.RoleSystem, model.CarriesImages(m), isSummary(m):
			continue
		case m.Role == model.RoleAssistant:
			who, most = "agent", d.text
		case strings.HasPrefix(m.Text, agentIntro):
			who = "another agent"
		}
		if m.Text != "" {
			out = append(out, who+": "+Cut(m.Text, most))
		}
		for _, call := range m.Calls {
			out = append(out, fmt.Sprintf("agent called %s %s: %s", call.Name, Cut(call.Arguments, d.arguments), outcome(results[call.ID], d)))
		}
	}
	return out
}

// outcome tells how a call ended, and the ids that its result has.
func outcome(text string, d detail) string {
	if text == "" || strings.HasPrefix(text, model.Interrupted) {
		return "interrupted; it is not known whether it took effect"
	}
	if d.result > 0 {
		return Cut(text, d.result)
	}
	var sealed struct {
		OK    *bool           `json:"ok"`
		Data  json.RawMessage `json:"data"`
		Error struct {
			Code    string `json:"code"`
			Message string `json:"message"`
		} `json:"error"`
	}
	if json.Unmarshal([]byte(text), &sealed) != nil || sealed.OK == nil {
		return Cut(text, d.arguments)
	}
	if !*sealed.OK {
		return strings.TrimSpace("failed: " + sealed.Error.Code + " " + Cut(sealed.Error.Message, d.arguments))
	}
	found := ids(sealed.Data, d.ids)
	if len(found) == 0 {
		return "succeeded"
	}
	return "succeeded; " + strings.Join(found, ", ")
}

// ids are the first values of members that hold ids, with their names.
func ids(raw json.RawMessage, most int) []string {
	var out []string
	collect(json.NewDecoder(bytes.NewReader(raw)), "", func(name, id string) bool {
		out = append(out, name+" "+Cut(id, maxID))
		return len(out) < most
	})
	return out
}

// collect reads one value and passes on the ids in it, until there are enough. It says whether to go on.
func collect(dec *json.Decoder, name string, found func(name, id string) bool) bool {
	token, err := dec.Token()
	if err != nil {
		return false
	}
	if text, ok := token.(string); ok && (strings.HasSuffix(name, "Id") || strings.HasSuffix(name, "Ids")) {
		return found(name, text)
	}
	if token != json.Delim('{') && token != json.Delim('[') {
		return true
	}
	for dec.More() {
		if token == json.Delim('{') {
			key, err := dec.Token()
			if err != nil {
				return false
			}
			name, _ = key.(string)
		}
		if !collect(dec, name, found) {
			return false
		}
	}
	_, err = dec.Token()
	return err == nil
}
