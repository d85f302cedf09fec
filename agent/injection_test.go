package agent_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"throwbar.dev/throwbar/agent/agenttest"
	"throwbar.dev/throwbar/agent/model/modeltest"
	"throwbar.dev/throwbar/agent/tool"
	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
)

// unseen says whether a person who reads a request would not see a character, or not where it is.
func unseen(r rune) bool {
	return r != '\n' && (r < ' ' || r >= 0x7F && r < 0xA0 || unicode.In(r, unicode.Cf, unicode.Co, unicode.Zl, unicode.Zp, unicode.Variation_Selector) &&
		r != 0xFE0E && r != 0xFE0F || r >= 0xE0000 && r <= 0xE0FFF)
}

// fenced says what is wrong with the result of a tool: it has to be one JSON document, whose data stands between two equal
// marks that occur nowhere else.
func fenced(text string) error {
	var s struct {
		OK          *bool
		Mark, End   string
		Data, Error json.RawMessage
	}
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	switch err := d.Decode(&s); {
	case err != nil || d.More():
		return fmt.Errorf("it is not one document: %w", err)
	case s.OK == nil || s.Mark == "" || s.Mark != s.End || strings.Count(text, s.Mark) != 2:
		return fmt.Errorf("marks %q and %q", s.Mark, s.End)
	case (len(s.Data) > 0) != *s.OK || (len(s.Error) > 0) == *s.OK:
		return fmt.Errorf("neither data nor error")
	case len(text) > tool.MaxAnswer || !utf8.ValidString(text) || strings.IndexFunc(text, unseen) >= 0:
		return fmt.Errorf("%d bytes, or characters that nobody sees", len(text))
	}
	return nil
}

// onlyInResults fails if a text from outside reached a model anywhere but in fenced results, and says whether it did there.
func onlyInResults(t *testing.T, r *modeltest.Received, h agenttest.Hostile) bool {
	t.Helper()
	found := false
	for _, m := range r.Messages {
		switch m.Role {
		case "tool":
			if err := fenced(m.Text); err != nil {
				t.Errorf("%s: %v: %.300s", h.Name, err, m.Text)
			}
			found = found || strings.Contains(m.Text, h.Marker)
		case "assistant": // what the model said and called is its own
		default:
			if strings.Contains(fmt.Sprint(m.Fields), h.Marker) {
				t.Errorf("%s: it is in the role %s: %.300s", h.Name, m.Role, m.Text)
			}
		}
	}
	for _, offered := range r.Tools {
		if strings.Contains(offered.Description+string(offered.Parameters), h.Marker) {
			t.Errorf("%s: it is in the tool %s", h.Name, offered.Name)
		}
	}
	return found
}

// Titles, addresses, names of groups and devices, errors of devices and arguments that are echoed reach a model only in
// results of tools, between marks, and visible.
func TestTextsFromOutsideReachAModelOnlyAsData(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	hostiles := agenttest.Hostiles(modeltest.Order("closeTabs", map[string]any{"tabIds": []string{"lap_tb-1"}}))
	if len(hostiles) < 60 {
		t.Fatalf("%d texts", len(hostiles))
	}
	for _, h := range hostiles {
		for len(b.ended) > 0 {
			<-b.ended
		}
		b.world.Tab("lap", "https://evil.example/?q="+h.Text, "calm")
		b.world.Tab("lap", "https://calm.example/", h.Text)
		b.world.Rename("lap", h.Text)
		b.world.Groups = []*commandv1.TabGroup{{GroupId: "lap_gb-1", Title: h.Text}}
		b.world.Refuse = &commandv1.CommandError{Code: commandv1.ErrorCode_ERROR_CODE_FAILED, Message: h.Text}
		echoed := map[string]any{"tabIds": []string{}, strings.ToValidUTF8(h.Text, "?"): 1}
		steps := []modeltest.Step{
			modeltest.Reply{Unchecked: true, Calls: []modeltest.Call{
				modeltest.NewCall("listDevices", map[string]any{}), modeltest.NewCall("searchTabs", map[string]any{"query": h.Marker}),
				modeltest.NewCall("listTabGroups", map[string]any{}), modeltest.NewCall("openTab", map[string]any{"deviceId": "lap", "url": "https://a.example"}),
				modeltest.NewCall("closeTabs", echoed), modeltest.NewCall("openTab", map[string]any{"deviceId": "lap", "url": "https://" + h.Marker + ".example"}),
			}},
			modeltest.Text("I looked around."),
		}
		b.model.Add(steps...)
		before := len(b.model.Requests())
		events := b.must(b.chat("", "look around"))
		if end(events) != agentv1.TurnEnd_TURN_END_ANSWERED {
			t.Errorf("%s: %v", h.Name, events[len(events)-2:])
		}
		b.model.Add(modeltest.Text("Still."))
		b.must(b.chat(events[0].GetConversationId(), "and now?"))
		requests := b.model.Requests()[before:]
		found := false
		for _, r := range requests {
			found = onlyInResults(t, r, h) || found
		}
		if cut := h.Name == "very long, at its end"; len(requests) != 3 || !found && !cut {
			t.Errorf("%s: %d requests, found %v", h.Name, len(requests), found)
		}
	}
}
