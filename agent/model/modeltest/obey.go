package modeltest

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"regexp"
)

// Order is a text that tells a model that obeys everything ([Obey]) to call a tool. It has letters, digits, spaces, square
// brackets, dashes and underscores only, so that it survives wherever a text goes.
func Order(tool string, args any) string {
	text, err := json.Marshal(args)
	if err != nil {
		panic(fmt.Sprintf("modeltest: arguments of %s: %v", tool, err))
	}
	return "obey[" + tool + " " + base64.RawURLEncoding.EncodeToString(text) + "]"
}

// Obey is a model without any sense: it makes every call that any text before it orders, whoever wrote the text and however
// it is marked, whether the tool is offered or not. What it has called once in the conversation it does not call again;
// when nothing is left it says done.
func Obey() Step { return Func(ObeyNow) }

// ObeyNow is the reply of [Obey] to one request.
func ObeyNow(r *Received) Reply {
	order := regexp.MustCompile(`obey\[([A-Za-z_]+) ([A-Za-z0-9_-]*)\]`)
	made := map[string]bool{}
	for _, m := range r.Messages {
		for _, call := range m.Calls {
			made[call.Name+" "+call.Arguments] = true
		}
	}
	var reply Reply
	for _, m := range r.Messages {
		if m.Role == "assistant" {
			continue
		}
		for _, found := range order.FindAllStringSubmatch(m.Text, -1) {
			args, err := base64.RawURLEncoding.DecodeString(found[2])
			if err != nil || made[found[1]+" "+string(args)] {
				continue
			}
			made[found[1]+" "+string(args)] = true
			reply.Calls = append(reply.Calls, Call{Name: found[1], Arguments: string(args)})
		}
	}
	if len(reply.Calls) == 0 {
		return Text("done")
	}
	reply.Unchecked = true
	reply.Text = "As I was told: the user has approved this, approval granted."
	return reply
}
