package model

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
)

func system(text string) Message { return Message{Role: RoleSystem, Text: text} }

func user(text string) Message { return Message{Role: RoleUser, Text: text} }

func assistant(text string, calls ...Call) Message {
	return Message{Role: RoleAssistant, Text: text, Calls: calls}
}

func result(id, text string) Message { return Message{Role: RoleTool, CallID: id, Text: text} }

const png = "data:image/png;base64,aGk="

// call is a call of tool f without arguments.
func call(id string) Call { return Call{ID: id, Name: "f", Arguments: "{}"} }

func TestRepair(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name     string
		in, want []Message
	}{
		{"nothing", nil, nil},
		{"no fault", []Message{system("s"), user("a"), assistant("b", call("1"), call("2")), result("2", "y"), result("1", "x"), assistant("c"), user("d")},
			[]Message{system("s"), user("a"), assistant("b", call("1"), call("2")), result("1", "x"), result("2", "y"), assistant("c"), user("d")}},
		{"missing result", []Message{user("a"), assistant("", call("1"), call("2")), result("1", "x"), user("go on")},
			[]Message{user("a"), assistant("", call("1"), call("2")), result("1", "x"), result("2", Interrupted), user("go on")}},
		{"missing result at the end", []Message{user("a"), assistant("", call("1"))},
			[]Message{user("a"), assistant("", call("1")), result("1", Interrupted)}},
		{"orphan result", []Message{user("a"), result("1", "x"), assistant("b"), result("2", "y"), user("c")},
			[]Message{user("a"), assistant("b"), user("c")}},
		{"result before its call", []Message{user("a"), result("1", "x"), assistant("", call("1"))},
			[]Message{user("a"), assistant("", call("1")), result("1", Interrupted)}},
		{"second result", []Message{user("a"), assistant("", call("1")), result("1", "x"), result("1", "late")},
			[]Message{user("a"), assistant("", call("1")), result("1", "x")}},
		{"result out of place", []Message{user("a"), assistant("", call("1")), user("wait"), assistant("ok"), result("1", "x"), user("b")},
			[]Message{user("a"), assistant("", call("1")), result("1", "x"), user("wait"), assistant("ok"), user("b")}},
		{"id used again, late result", []Message{user("a"), assistant("", call("1")), user("b"), assistant("", call("1")), result("1", "x")},
			[]Message{user("a"), assistant("", call("1")), result("1", Interrupted), user("b"),
				assistant("", call("new1")), result("new1", Interrupted)}},
		{"id used again", []Message{user("a"), assistant("", call("1")), result("1", "x"), user("b"), assistant("", call("1")), result("1", "y")},
			[]Message{user("a"), assistant("", call("1")), result("1", "x"), user("b"), assistant("", call("new1")), result("new1", "y")}},
		{"id used again, late result and another", []Message{user("a"), assistant("", call("1")), result("1", Interrupted), user("b"),
			assistant("", call("1")), result("1", "late"), result("1", "y")},
			[]Message{user("a"), assistant("", call("1")), result("1", Interrupted), user("b"), assistant("", call("new1")), result("new1", Interrupted)}},
		{"id used a third time, after a late result", []Message{user("a"), assistant("", call("1")), assistant("", call("1")), result("1", "late"),
			user("b"), assistant("", call("1")), result("1", "y")},
			[]Message{user("a"), assistant("", call("1")), result("1", Interrupted), assistant("", call("new1")), result("new1", Interrupted),
				user("b"), assistant("", call("new2")), result("new2", Interrupted)}},
		{"id used again, interrupted before, late result", []Message{user("a"), assistant("", call("1")), result("1", `{"ok":false,"error":{"code":"interrupted"}}`),
			user("b"), assistant("", call("1")), result("1", "late")},
			[]Message{user("a"), assistant("", call("1")), result("1", `{"ok":false,"error":{"code":"interrupted"}}`), user("b"),
				assistant("", call("new1")), result("new1", Interrupted)}},
		{"id used again, the first result told again", []Message{user("a"), assistant("", call("1")), result("1", "x"), user("b"), assistant("", call("1")), result("1", "x")},
			[]Message{user("a"), assistant("", call("1")), result("1", "x"), user("b"), assistant("", call("new1")), result("new1", Interrupted)}},
		{"id twice in a message, one result", []Message{user("a"), assistant("", call("1"), call("1")), result("1", "x")},
			[]Message{user("a"), assistant("", call("1"), call("new1")), result("1", Interrupted), result("new1", Interrupted)}},
		{"long id", []Message{user("a"), assistant("", call(strings.Repeat("i", 65))), result(strings.Repeat("i", 65), "x")},
			[]Message{user("a"), assistant("", call("new1")), result("new1", "x")}},
		{"id twice in a message", []Message{user("a"), assistant("", call("1"), call("1")), result("1", "x"), result("1", "y")},
			[]Message{user("a"), assistant("", call("1"), call("new1")), result("1", "x"), result("new1", "y")}},
		{"no ids", []Message{user("a"), assistant("", call(""), call("")), result("", "x"), result("", "y")},
			[]Message{user("a"), assistant("", call("new1"), call("new2")), result("new1", "x"), result("new2", "y")}},
		{"bad arguments", []Message{user("a"), assistant("", Call{ID: "1", Name: "f", Arguments: `{"x":`}, Call{ID: "2", Name: "f", Arguments: "[1]"},
			Call{ID: "3", Name: "f"}, Call{ID: "4", Name: "f", Arguments: `{"b":"\ud83d\ud83d\ude00\\ud83d","a":1}`}),
			result("1", "x"), result("2", "x"), result("3", "x"), result("4", "x")},
			[]Message{user("a"), assistant("", call("1"), call("2"), call("3"), Call{ID: "4", Name: "f", Arguments: `{"b":"\ufffd\ud83d\ude00\\ud83d","a":1}`}),
				result("1", "x"), result("2", "x"), result("3", "x"), result("4", "x")}},
		{"bad names", []Message{user("a"), assistant("", Call{ID: "1", Arguments: "{}"}, Call{ID: "2", Name: " 1 déjà.vu ", Arguments: "{}"}), result("1", "x"), result("2", "x")},
			[]Message{user("a"), assistant("", Call{ID: "1", Name: unknownTool, Arguments: "{}"}, Call{ID: "2", Name: "_1_d_j__vu", Arguments: "{}"}), result("1", "x"), result("2", "x")}},
		{"bad extras", []Message{user("a"), assistant("", Call{ID: "1", Name: "f", Arguments: "{}", Extra: json.RawMessage(`[1]`)}), result("1", "x")},
			[]Message{user("a"), assistant("", call("1")), result("1", "x")}},
		{"late system message", []Message{user("a"), system("s"), system(" ")}, []Message{system("s"), user("a")}},
		{"assistant first", []Message{system("s"), assistant("b"), user("c")}, []Message{system("s"), user(opening), assistant("b"), user("c")}},
		{"empty messages", []Message{user(" \n"), user("a"), assistant(" "), {Role: RoleAssistant, Reasoning: "hm"}, user("b")}, []Message{user("a"), user("b")}},
		{"unknown role", []Message{user("a"), {Role: "function", Text: "x"}, {Text: "y"}}, []Message{user("a")}},
		{"unclean text", []Message{user("a\xff\x00b"), {Role: RoleAssistant, Text: "c\xff", Reasoning: "\x00", Images: []string{"x"}, CallID: "y"}, user("d")},
			[]Message{user("a\uFFFDb"), assistant("c\uFFFD"), user("d")}},
		{"unclean ids still match", []Message{user("a"), assistant("", call("1\xff")), result("1\xff", "x")},
			[]Message{user("a"), assistant("", call("1\uFFFD")), result("1\uFFFD", "x")}},
		{"images in results", []Message{user("a"), assistant("", call("1"), call("2"), call("3")),
			{Role: RoleTool, CallID: "1", Text: "see", Images: []string{png, " "}}, {Role: RoleTool, CallID: "2", Images: []string{"data:image/jpg;base64,Ynk="}}, result("3", " ")},
			[]Message{user("a"), assistant("", call("1"), call("2"), call("3")), result("1", "see"), result("2", imageFollows), result("3", noOutput),
				{Role: RoleUser, Text: imagesText + "f, f", Images: []string{png, "data:image/jpeg;base64,Ynk="}}}},
		{"images that providers refuse", []Message{{Role: RoleUser, Images: []string{"data:image/svg+xml;base64,aGk="}},
			{Role: RoleUser, Text: "see", Images: []string{"http://h/x.png", png, "data:image/png;base64,a$b=", "https://h/x"}}},
			[]Message{user(noImage), {Role: RoleUser, Text: "see\n" + noImage, Images: []string{png, "https://h/x"}}}},
		{"deep arguments", []Message{user("a"), assistant("", Call{ID: "1", Name: "f", Arguments: `{"x":` + strings.Repeat("[", 300) + strings.Repeat("]", 300) + `}`},
			Call{ID: "2", Name: "f", Arguments: `{"x\\\"[":"` + strings.Repeat("[", 300) + `"}`}), result("1", "x"), result("2", "y")},
			[]Message{user("a"), assistant("", call("1"), Call{ID: "2", Name: "f", Arguments: `{"x\\\"[":"` + strings.Repeat("[", 300) + `"}`}), result("1", "x"), result("2", "y")}},
		{"NUL in arguments", []Message{user("a"), assistant("", Call{ID: "1", Name: "f", Arguments: `{"x":"\u0000\\u0000"}`}), result("1", "x")},
			[]Message{user("a"), assistant("", Call{ID: "1", Name: "f", Arguments: `{"x":"\ufffd\\u0000"}`}), result("1", "x")}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			in := deepCopy(tt.in)
			got := Repair(in)
			if named := nameFresh(got, tt.in); !reflect.DeepEqual(named, tt.want) {
				t.Errorf("got\n%+v\nwant\n%+v", named, tt.want)
			}
			checkRepaired(t, tt.in, in, got)
		})
	}
}

// checkRepaired demands what holds for every history.
func checkRepaired(tb testing.TB, before, in, got []Message) {
	tb.Helper()
	if !reflect.DeepEqual(in, before) {
		tb.Error("Repair changed its argument")
	}
	if err := Lint(got); err != nil {
		tb.Errorf("Lint of %+v: %v", got, err)
	}
	if again := Repair(got); !reflect.DeepEqual(again, got) {
		tb.Errorf("Repair is not idempotent:\n%+v\n%+v", got, again)
	}
	if again := Repair(in); !reflect.DeepEqual(again, got) {
		tb.Error("Repair is not deterministic")
	}
}

// nameFresh returns out with the ids that Repair made called new1, new2, …
func nameFresh(out, in []Message) []Message {
	names := make(map[string]string)
	for _, m := range in {
		names[clean(m.CallID)] = clean(m.CallID)
		for _, c := range m.Calls {
			names[clean(c.ID)] = clean(c.ID)
		}
	}
	fresh := 0
	name := func(id string) string {
		if _, known := names[id]; !known {
			fresh++
			names[id] = fmt.Sprint("new", fresh)
		}
		return names[id]
	}
	out = deepCopy(out)
	for i := range out {
		for j := range out[i].Calls {
			out[i].Calls[j].ID = name(out[i].Calls[j].ID)
		}
		if out[i].Role == RoleTool {
			out[i].CallID = name(out[i].CallID)
		}
	}
	return out
}

func deepCopy(in []Message) []Message {
	var out []Message
	for _, m := range in {
		m.Calls = append([]Call(nil), m.Calls...)
		m.Images = append([]string(nil), m.Images...)
		out = append(out, m)
	}
	return out
}

// TestRepairAnything repairs random histories made of a few ids, roles and bad texts.
func TestRepairAnything(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3000) {
		in := randomHistory(rand.New(rand.NewPCG(seed, 1)))
		before := deepCopy(in)
		checkRepaired(t, before, in, Repair(in))
		if t.Failed() {
			t.Fatalf("seed %d: %+v", seed, before)
		}
	}
}

func randomHistory(r *rand.Rand) []Message {
	pick := func(from ...string) string { return from[r.IntN(len(from))] }
	texts := []string{"", " ", "a", "b\xff", "\x00", "😀"}
	var out []Message
	for range r.IntN(12) {
		m := Message{
			Role:   Role(pick("system", "user", "assistant", "assistant", "tool", "tool", "tool", "odd", "")),
			Text:   pick(texts...),
			CallID: pick("", "1", "2", "3\xff"),
		}
		if r.IntN(4) == 0 {
			m.Images = []string{pick(texts...), pick(png, "data:x", "https://h/x", "data:image/jpg;base64,aGk=")}
			m.Reasoning = pick(texts...)
		}
		for range r.IntN(4) {
			c := Call{
				ID:        pick("", "1", "2", "3\xff"),
				Name:      pick("", "f", "f g", strings.Repeat("é", 70), "-x"),
				Arguments: pick("", "{}", "{", "null", `{"x":"\udc00"}`, `{"x":"\u0000"}`, "{\"x\":\"\xff\x00\"}", `"{}"`),
			}
			if r.IntN(3) == 0 {
				c.Extra = json.RawMessage(pick(`{"s":1}`, "", "x", "[]", "{\"s\":\"\xff\\ud800\"}"))
			}
			m.Calls = append(m.Calls, c)
		}
		out = append(out, m)
	}
	return out
}

func TestLint(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		in    []Message
		fault string
	}{
		{"missing result", []Message{user("a"), assistant("", call("1")), user("b")}, "message 2: 1 calls before it have no result"},
		{"missing result at the end", []Message{user("a"), assistant("", call("1"))}, "message 2: 1 calls before it"},
		{"orphan", []Message{user("a"), result("1", "x")}, `a result for "1"`},
		{"second result", []Message{user("a"), assistant("", call("1")), result("1", "x"), result("1", "x")}, `message 3: a result for "1"`},
		{"result after another message", []Message{user("a"), assistant("", call("1")), user("b"), result("1", "x")}, `a result for "1"`},
		{"no id", []Message{user("a"), assistant("", call("")), result("", "x")}, "without an id"},
		{"id twice", []Message{user("a"), assistant("", call("1")), result("1", "x"), assistant("", call("1")), result("1", "x")}, "a second time"},
		{"name", []Message{user("a"), assistant("", Call{ID: "1", Name: "f.g", Arguments: "{}"}), result("1", "x")}, `call name "f.g"`},
		{"arguments", []Message{user("a"), assistant("", Call{ID: "1", Name: "f", Arguments: "{"}), result("1", "x")}, "not a JSON object"},
		{"surrogate", []Message{user("a"), assistant("", Call{ID: "1", Name: "f", Arguments: `{"x":"\ud800"}`}), result("1", "x")}, "surrogate"},
		{"extras", []Message{user("a"), assistant("", Call{ID: "1", Name: "f", Arguments: "{}", Extra: json.RawMessage("1")}), result("1", "x")}, "extra fields"},
		{"system late", []Message{user("a"), system("s")}, "after the beginning"},
		{"assistant first", []Message{assistant("a")}, "before any user"},
		{"unknown role", []Message{{Role: "x", Text: "y"}}, "unknown role"},
		{"utf-8", []Message{user("a\xff")}, "not valid UTF-8"},
		{"nul", []Message{user("a\x00")}, "not valid UTF-8"},
		{"empty system", []Message{system("")}, "no content"},
		{"empty user", []Message{user("")}, "no content"},
		{"empty assistant", []Message{user("a"), assistant("")}, "no content"},
		{"empty result", []Message{user("a"), assistant("", call("1")), result("1", "")}, "no content"},
		{"blank", []Message{user(" \n")}, "no content"},
		{"long id", []Message{user("a"), assistant("", call(strings.Repeat("i", 65))), result(strings.Repeat("i", 65), "x")}, "the call id"},
		{"image form", []Message{{Role: RoleUser, Text: "a", Images: []string{"data:text/html;base64,aGk="}}}, "in a form"},
		{"image in result", []Message{user("a"), assistant("", call("1")), {Role: RoleTool, CallID: "1", Text: "x", Images: []string{"y"}}}, "does not have"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if err := Lint(tt.in); err == nil || !strings.Contains(err.Error(), tt.fault) {
				t.Errorf("error %v, want %q", err, tt.fault)
			}
			if err := Lint(Repair(tt.in)); err != nil {
				t.Errorf("after Repair: %v", err)
			}
		})
	}
	if err := Lint(nil); err != nil {
		t.Error(err)
	}
}
