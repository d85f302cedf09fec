package tool

import (
	"encoding/base64"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"throwbar.dev/throwbar/agent/tool/result"
)

const (
	// MaxWhole is how many bytes of an answer are kept for people where the model is told only a part.
	MaxWhole = 4 << 20
	// maxImages is how many images one answer may have, and maxImage how many bytes one that comes with it.
	maxImages = 8
	maxLines  = 32
	maxImage  = 5 << 20
	// tail is which part of a text that is cut is its end: a quarter. What went wrong stands there as a rule.
	tail = 4
)

// The members of an answer that is text.
const (
	textKey   = "text"
	imagesKey = "images"
)

// Plain is the answer of a tool that gives text and images rather than a message. An image is an https: or data: address.
func Plain(ok bool, text string, images ...string) Answer {
	text = strings.ToValidUTF8(text, "\uFFFD")
	a := Answer{OK: ok, plain: true, text: text, body: result.Object().Add(textKey, result.Text(text))}
	lines := result.List()
	for i, image := range images {
		line, shown := placeholder(image)
		if shown && len(a.Images) == maxImages {
			line, shown = "not shown: there are too many", false
		}
		if shown {
			a.Images = append(a.Images, image)
		}
		if i < maxLines {
			lines.Append(result.Text(fmt.Sprintf("image %d: %s", i+1, result.Cut(line, maxName))))
		}
	}
	if !lines.Empty() {
		a.body.Add(imagesKey, lines)
	}
	return a
}

// placeholder says in words which image stands here, and whether a model can be shown it.
func placeholder(image string) (string, bool) {
	head := regexp.MustCompile(`^data:(image/(?:png|jpeg|gif|webp));base64,`).FindStringSubmatch(image)
	switch {
	case head != nil:
		raw := image[len(head[0]):]
		size := base64.StdEncoding.DecodedLen(len(raw))
		if _, err := base64.StdEncoding.DecodeString(raw); err != nil || size > maxImage {
			return fmt.Sprintf("not shown: %s of %d bytes, broken or too large", head[1], size), false
		}
		return fmt.Sprintf("%s, %d KB", head[1], (size+1023)/1024), true
	case strings.HasPrefix(image, "https://") && len(image) <= maxLine && strings.IndexFunc(image, unseen) < 0:
		return image, true
	default:
		return "not shown: " + result.Cut(image, maxName), false
	}
}

func unseen(r rune) bool { return r <= ' ' || r == utf8.RuneError || r > '~' }

// shorten leaves out the middle of a text that is too long for a model. It returns the body as it is shown, and the whole
// text if something is missing in it.
func (a Answer) shorten() (shown *result.Value, whole string) {
	with := func(text string) *result.Value {
		body := result.Object().Add(textKey, result.Text(text))
		if images := a.body.Get(imagesKey); images != nil {
			body.Add(imagesKey, images)
		}
		return body
	}
	fits := func(body *result.Value) bool { return len(body.String()) <= MaxAnswer-envelope }
	if fits(a.body) {
		return a.body, ""
	}
	least, most := 0, min(len(a.text), MaxAnswer) // an escape takes more room than what it stands for
	for least < most {
		if middle := (least + most + 1) / 2; fits(with(middleOut(a.text, middle))) {
			least = middle
		} else {
			most = middle - 1
		}
	}
	return with(middleOut(a.text, least)), a.text
}

// middleOut keeps about a number of bytes of a text, the beginning and the end, and says between them how many are missing.
func middleOut(text string, keep int) string {
	if keep >= len(text) {
		return text
	}
	from, to := keep-keep/tail, len(text)-keep/tail
	for from > 0 && !utf8.RuneStart(text[from]) {
		from--
	}
	for to < len(text) && !utf8.RuneStart(text[to]) {
		to++
	}
	return fmt.Sprintf("%s\n…(%d of %d bytes left out here; the user can read them)…\n%s", text[:from], to-from, len(text), text[to:])
}

// bounded is what is kept of a whole answer.
func bounded(whole string) string {
	if len(whole) <= MaxWhole {
		return whole
	}
	at := MaxWhole
	for !utf8.RuneStart(whole[at]) {
		at--
	}
	return whole[:at] + fmt.Sprintf("\n…(%d more bytes were not kept)", len(whole)-at)
}
