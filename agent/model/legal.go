package model

import (
	"encoding/json"
	"slices"
	"strings"
)

// What every provider takes.
const (
	maxName = 64 // bytes of the name of a tool
	maxID   = 40 // bytes of the id of a call
	// maxDepth is how deep arguments may be nested. Some providers read them with parsers that give up, or fall over, at
	// about a thousand.
	maxDepth = 200
)

// tidiedCall returns the call with a legal name and arguments.
func tidiedCall(call Call) Call {
	call.Name = legalName(call.Name)
	call.Arguments = plainEscapes(clean(call.Arguments))
	if !isArguments(call.Arguments) {
		call.Arguments = "{}"
	}
	extra := plainEscapes(clean(string(call.Extra)))
	call.Extra = json.RawMessage(extra)
	if !isArguments(extra) {
		call.Extra = nil
	}
	return call
}

// isID reports whether a call may have the id. Some providers demand an id back that has odd characters in it, so these
// stay.
func isID(id string) bool { return len(id) <= maxID && strings.TrimSpace(id) != "" }

// isArguments reports whether text is a JSON object that every provider can read.
func isArguments(text string) bool {
	if !isObject(text) {
		return false
	}
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			for i++; text[i] != '"'; i++ { // the text is valid, so there is one
				if text[i] == '\\' {
					i++
				}
			}
		case '{', '[':
			if depth++; depth > maxDepth {
				return false
			}
		case '}', ']':
			depth--
		}
	}
	return true
}

// isImage reports whether every provider that takes images takes one with this URL.
func isImage(url string) bool {
	if rest, ok := strings.CutPrefix(url, "https://"); ok {
		return rest != "" && !strings.ContainsFunc(url, func(r rune) bool { return r <= ' ' || r > '~' })
	}
	rest, ok := strings.CutPrefix(url, "data:image/")
	kind, data, found := strings.Cut(rest, ";base64,")
	if !ok || !found || !slices.Contains([]string{"png", "jpeg", "gif", "webp"}, kind) {
		return false
	}
	return isBase64(data)
}

// isBase64 reports whether text is some bytes in the usual alphabet, with padding.
func isBase64(text string) bool {
	body := strings.TrimRight(text, "=")
	if body == "" || len(text)%4 != 0 || len(text)-len(body) > 2 {
		return false
	}
	for i := range len(body) {
		b := body[i]
		if (b < 'a' || b > 'z') && (b < 'A' || b > 'Z') && (b < '0' || b > '9') && b != '+' && b != '/' {
			return false
		}
	}
	return true
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
