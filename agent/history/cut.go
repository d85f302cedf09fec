package history

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// maxLook is how many bytes a cut may move to a better border.
	maxLook = 96
	// maxRun is how many halves of flags, or backslashes, in a row are counted to find where one begins.
	maxRun = 4096
)

// Cut makes a text no longer than most bytes: it keeps the beginning and the end, and says between them how much was left
// out. What comes back is valid UTF-8. No character is cut in two, nor, as far as that is cheap to see, what is drawn as one:
// a letter and its accents, a picture made of several, a flag. Escapes of JSON stay whole too. A text that is short enough
// comes back as it is, but for bytes that are no UTF-8.
func Cut(text string, most int) string {
	if !utf8.ValidString(text) {
		text = strings.ToValidUTF8(text, string(utf8.RuneError))
	}
	if len(text) <= most {
		return text
	}
	room := most - len(remark(len(text), len(text)))
	if room < 2 {
		return text[:before(text, max(most, 0))] // too little to say anything
	}
	head := before(text, room-room/3)
	tail := after(text, len(text)-room/3)
	if tail <= head {
		return text[:head] // not reachable: borders only move apart
	}
	return text[:head] + remark(tail-head, len(text)) + text[tail:]
}

func remark(left, of int) string {
	return "\n[… " + strconv.Itoa(left) + " of " + strconv.Itoa(of) + " bytes left out here …]\n"
}

// before is the best place to cut at or before at.
func before(text string, at int) int {
	for i := at; i >= max(at-maxLook, 0); i-- {
		if border(text, i) {
			return i
		}
	}
	for !utf8.RuneStart(text[at]) {
		at--
	}
	return at
}

// after is the best place to cut at or after at.
func after(text string, at int) int {
	for i := at; i <= min(at+maxLook, len(text)); i++ {
		if border(text, i) {
			return i
		}
	}
	for at < len(text) && !utf8.RuneStart(text[at]) {
		at++
	}
	return at
}

// border reports whether a text may be cut before byte i.
func border(text string, i int) bool {
	if i <= 0 || i >= len(text) {
		return true
	}
	if !utf8.RuneStart(text[i]) || inEscape(text, i) {
		return false
	}
	next, _ := utf8.DecodeRuneInString(text[i:])
	last, _ := utf8.DecodeLastRuneInString(text[:i])
	switch {
	case next < utf8.RuneSelf && last < utf8.RuneSelf:
		return last != '\r' || next != '\n'
	case unicode.Is(unicode.M, next), isJoiner(next), isJoiner(last), next >= 0x1f3fb && next <= 0x1f3ff:
		return false
	case isFlag(last) && isFlag(next):
		n := 0
		for at := i; at > 0 && n < maxRun; n++ {
			r, size := utf8.DecodeLastRuneInString(text[:at])
			if !isFlag(r) {
				break
			}
			at -= size
		}
		return n%2 == 0
	case isTag(next):
		return false
	}
	return true
}

func isJoiner(r rune) bool { return r == 0x200d }

// isFlag reports whether two such make a flag.
func isFlag(r rune) bool { return r >= 0x1f1e6 && r <= 0x1f1ff }

// isTag reports whether r goes on with the picture before it, as in the flags of parts of countries.
func isTag(r rune) bool { return r >= 0xe0020 && r <= 0xe007f }

// inEscape reports whether byte i is inside an escape of JSON, \n or \uXXXX, or between two of the latter that make one
// character.
func inEscape(text string, i int) bool {
	for back := 1; back <= 6 && back <= i; back++ {
		if text[i-back] != '\\' {
			continue
		}
		at := i - back
		if !begins(text, at) {
			return false
		}
		if back < escapeLength(text[at:]) {
			return true
		}
		return back == 6 && isHigh(text[at:]) && strings.HasPrefix(text[i:], `\u`)
	}
	return false
}

// begins reports whether the backslash at a place is not itself escaped.
func begins(text string, at int) bool {
	n := 0
	for at > n && text[at-1-n] == '\\' && n < maxRun {
		n++
	}
	return n%2 == 0
}

func escapeLength(text string) int {
	if len(text) > 1 && text[1] == 'u' {
		return 6
	}
	return 2
}

// isHigh reports whether an escape is the first half of a pair.
func isHigh(text string) bool {
	return len(text) >= 6 && (text[2] == 'd' || text[2] == 'D') && strings.IndexByte("89abAB", text[3]) >= 0
}
