package model

import (
	"crypto/sha256"
	"encoding/hex"
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
	noImage      = "(an image was here, in a form that cannot be shown)"
	imagesText   = "Images in the results of: "
	opening      = "(The conversation goes on from here.)"
	unknownTool  = "unknown_tool"
)

// NextMessage is the line between two messages of the user that are sent as one.
const NextMessage = "(Next message:)"

// CarriesImages reports whether a message of a repaired history is there only to show the images of results before it.
func CarriesImages(m Message) bool {
	return m.Role == RoleUser && strings.HasPrefix(m.Text, imagesText)
}

// Repair returns the history in a form that [Lint] accepts, with as little change as that takes; a history without
// faults comes back as it is, in the same memory. It never fails and never changes its argument.
//
// Every call has an id of its own, a legal name and an object as arguments, and exactly one result, which follows it
// directly: results are moved up to their calls, results without a call are dropped, calls without a result, or with one that
// may be another's, get [Interrupted]. System messages come first, then a user message. Messages without content are dropped.
// Images of results move into a user message after them, and images in a form that providers refuse become a remark. Strings
// are valid UTF-8 without NUL.
func Repair(messages []Message) []Message {
	if asRepaired(messages) {
		return slices.Clip(messages)
	}
	return mended(messages)
}

// mended is Repair for a history with faults.
func mended(messages []Message) []Message {
	r := repairer{ids: make(map[string]bool, len(messages)), in: make([]Message, 0, len(messages)), out: make([]Message, 0, len(messages)+1)}
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
	r.results = pair(r.in)
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
	if Blank(out.Text) {
		out.Text = ""
	}
	switch m.Role {
	case RoleAssistant:
		out.Reasoning, out.Profile = clean(m.Reasoning), m.Profile
		out.Calls = slices.Clone(m.Calls)
	case RoleTool:
		out.CallID = clean(m.CallID)
		out.images(m.Images)
	case RoleUser:
		out.images(m.Images)
	}
	return out
}

// images gives m those images that providers take, and a remark for the others.
func (m *Message) images(images []string) {
	for _, image := range images {
		image = strings.TrimSpace(image)
		if rest, ok := strings.CutPrefix(image, "data:image/jpg;"); ok { // a name that some tools use and no provider knows
			image = "data:image/jpeg;" + rest
		}
		switch {
		case isImage(image):
			m.Images = append(m.Images, image)
		case image != "" && m.Text == "":
			m.Text = noImage
		case image != "" && !strings.HasSuffix(m.Text, noImage):
			m.Text += "\n" + noImage
		}
	}
}

type repairer struct {
	in      []Message // without system messages
	results [][]int   // places in it of the results of each message's calls
	out     []Message
	head    int // number of system messages in out
	ids     map[string]bool
}

// assistant appends message i of the input and the results of its calls.
func (r *repairer) assistant(i int, m Message) {
	if len(r.out) == r.head {
		r.out = append(r.out, Message{Role: RoleUser, Text: opening})
	}
	r.out = append(r.out, m) // shares its calls, which are mended below
	follow := Message{Role: RoleUser, Text: imagesText}
	for j, call := range m.Calls {
		result := r.result(r.results[i][j])
		call = tidiedCall(call)
		call.ID = r.unique(clean(call.ID))
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
		r.out = append(r.out, result)
	}
	if len(follow.Images) > 0 {
		r.out = append(r.out, follow)
	}
}

// result is what stands for the result at a place of the input.
func (r *repairer) result(at int) Message {
	if at == none {
		return Message{Role: RoleTool, Text: Interrupted}
	}
	return r.in[at]
}

// unique returns id, or another that depends only on it and the history if it is no id or used before.
func (r *repairer) unique(id string) string {
	out := id
	for n := len(r.ids); !isID(out) || r.ids[out]; n++ {
		out = hashedID(id, n)
	}
	r.ids[out] = true
	return out
}

// hashedID returns the nth id that stands for one that cannot be used.
func hashedID(id string, n int) string {
	sum := sha256.Sum256([]byte(strconv.Itoa(n) + "/" + id))
	return hex.EncodeToString(sum[:])[:callIDLength]
}
