package model

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// Texts that Repair puts where something is missing.
const (
	// Interrupted is the result of a call that has none: an abort or a crash came between.
	Interrupted = "interrupted: this call was not brought to an end, and it is not known whether it took effect"

	noOutput     = "(no output)"
	imageFollows = "(an image, see below)"
	imagesText   = "Images in the results of: "
	opening      = "(The conversation goes on from here.)"
	unknownTool  = "unknown_tool"
)

// NextMessage is the line between two messages of the user that are sent as one.
const NextMessage = "(Next message:)"

// CarriesImages reports whether a message of a repaired history is there only to show the images of results before it.
func CarriesImages(m Message) bool { return m.Role == RoleUser && strings.HasPrefix(m.Text, imagesText) }

// maxName is the longest name of a tool that every provider takes.
const maxName = 64

// Repair returns the history in a form that [Lint] accepts, with as little change as that takes; a history without
// faults comes back as it is. It never fails and never changes its argument.
//
// Every call has an id of its own, a legal name and an object as arguments, and exactly one result, which follows it
// directly: results are moved up to their calls, results without a call are dropped, calls without a result get
// [Interrupted]. System messages come first, then a user message. Messages without content are dropped. Images of
// results move into a user message after them. Strings are valid UTF-8 without NUL.
func Repair(messages []Message) []Message {
	r := repairer{ids: make(map[string]bool)}
	for _, m := range messages {
		m = tidied(m)
		switch {
		case m.Role == RoleSystem && m.Text != "":
			r.out = append(r.out, m)
		case m.Role == RoleUser, m.Role == RoleAssistant, m.Role == RoleTool:
			r.in = append(r.in, m)
		}
	}
	r.head = len(r.out)
	r.claimed = make([]bool, len(r.in))
	for i, m := range r.in {
		switch {
		case m.Role == RoleUser && (m.Text != "" || len(m.Images) > 0):
			r.out = append(r.out, m)
		case m.Role == RoleAssistant && (m.Text != "" || len(m.Calls) > 0):
			r.assistant(i, m)
		}
	}
	return r.out
}

// tidied returns m with clean strings and only the fields its role has.
func tidied(m Message) Message {
	out := Message{Role: m.Role, Text: clean(m.Text)}
	if strings.TrimSpace(out.Text) == "" {
		out.Text = ""
	}
	switch m.Role {
	case RoleAssistant:
		out.Reasoning = clean(m.Reasoning)
		out.Calls = slices.Clone(m.Calls)
	case RoleTool:
		out.CallID = clean(m.CallID)
		out.Images = tidiedImages(m.Images)
	case RoleUser:
		out.Images = tidiedImages(m.Images)
	}
	return out
}

func tidiedImages(images []string) []string {
	var out []string
	for _, image := range images {
		if image = strings.TrimSpace(clean(image)); image != "" {
			out = append(out, image)
		}
	}
	return out
}

type repairer struct {
	in      []Message // without system messages
	claimed []bool    // which results of in were put in their place
	out     []Message
	head    int // number of system messages in out
	ids     map[string]bool
}

// assistant appends message i of the input and the results of its calls.
func (r *repairer) assistant(i int, m Message) {
	if len(r.out) == r.head {
		r.out = append(r.out, Message{Role: RoleUser, Text: opening})
	}
	results := make([]Message, 0, len(m.Calls))
	follow := Message{Role: RoleUser, Text: imagesText}
	for j, call := range m.Calls {
		id := clean(call.ID)
		result := r.claim(i, id)
		call = tidiedCall(call)
		call.ID = r.unique(id)
		result.CallID = call.ID
		m.Calls[j] = call
		if len(result.Images) > 0 {
			if len(follow.Images) > 0 {
				follow.Text += ", "
			}
			follow.Text += call.Name
			follow.Images = append(follow.Images, result.Images...)
			result.Images = nil
			if result.Text == "" {
				result.Text = imageFollows
			}
		}
		if result.Text == "" {
			result.Text = noOutput
		}
		results = append(results, result)
	}
	r.out = append(append(r.out, m), results...)
	if len(follow.Images) > 0 {
		r.out = append(r.out, follow)
	}
}

// claim takes the first free result for id after message i. A later message that uses the id again ends the search:
// what follows answers that one.
func (r *repairer) claim(i int, id string) Message {
	for k := i + 1; k < len(r.in); k++ {
		m := r.in[k]
		if m.Role == RoleAssistant && slices.ContainsFunc(m.Calls, func(c Call) bool { return clean(c.ID) == id }) {
			break
		}
		if m.Role == RoleTool && !r.claimed[k] && m.CallID == id {
			r.claimed[k] = true
			return m
		}
	}
	return Message{Role: RoleTool, Text: Interrupted}
}

// unique returns id, or another that depends only on it and the history if it is empty or used before.
func (r *repairer) unique(id string) string {
	out := id
	for n := len(r.ids); out == "" || r.ids[out]; n++ {
		sum := sha256.Sum256([]byte(strconv.Itoa(n) + "/" + id))
		out = hex.EncodeToString(sum[:])[:callIDLength]
	}
	r.ids[out] = true
	return out
}

// tidiedCall returns the call with a legal name and arguments.
func tidiedCall(call Call) Call {
	call.Name = legalName(call.Name)
	call.Arguments = pairSurrogates(clean(call.Arguments))
	if !isObject(call.Arguments) {
		call.Arguments = "{}"
	}
	extra := clean(string(call.Extra))
	call.Extra = json.RawMessage(pairSurrogates(extra))
	if !isObject(extra) {
		call.Extra = nil
	}
	return call
}

// isLegalName reports whether every provider takes name as the name of a tool.
func isLegalName(name string) bool {
	if name == "" || len(name) > maxName || !legalFirst(name[0]) {
		return false
	}
	for i := range len(name) {
		if !legalFirst(name[i]) && name[i] != '-' && (name[i] < '0' || name[i] > '9') {
			return false
		}
	}
	return true
}

func legalFirst(b byte) bool {
	return b == '_' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z'
}

// legalName returns name with what providers refuse replaced. It is for names that a model made up; the names of
// tools are legal to begin with.
func legalName(name string) string {
	if isLegalName(name) {
		return name
	}
	var out strings.Builder
	for _, c := range strings.TrimSpace(name) {
		switch {
		case out.Len() == maxName:
		case c < 0x80 && isLegalName("_"+string(c)):
			if out.Len() == 0 && !legalFirst(byte(c)) {
				out.WriteByte('_')
			}
			out.WriteRune(c)
		default:
			out.WriteByte('_')
		}
	}
	if out.Len() == 0 {
		return unknownTool
	}
	return out.String()
}
