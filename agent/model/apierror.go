package model

import (
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"slices"
	"strings"
	"unicode"
)

const (
	// maxErrorBody bounds what is read of the answer to a refused request.
	maxErrorBody = 64 << 10
	// maxErrorText bounds what is shown of it.
	maxErrorText = 2000
)

// APIError is a provider's refusal of a request, or its report that an answer went wrong midway.
type APIError struct {
	// Status is the HTTP status, or the status the report names; zero if neither is known.
	Status int
	// Message is the provider's text, free of the key and of control characters.
	Message string
	// Code is the provider's word for the error, if it has one.
	Code string
	// Midway is set if the answer had begun.
	Midway bool
}

func (e *APIError) Error() string {
	var out strings.Builder
	out.WriteString("the model provider answered")
	if e.Midway {
		out.Reset()
		out.WriteString("the model provider broke off")
	}
	if e.Status != 0 {
		fmt.Fprintf(&out, " %d", e.Status)
	}
	if e.Code != "" {
		fmt.Fprintf(&out, " (%s)", e.Code)
	}
	return out.String() + ": " + e.Message
}

// Temporary reports whether the same request may succeed later.
func (e *APIError) Temporary() bool {
	return !e.deterministic() && (e.Status == http.StatusRequestTimeout || e.Status == http.StatusConflict ||
		e.Status == http.StatusTooManyRequests || e.Status >= http.StatusInternalServerError)
}

// deterministic reports whether sending the same request again is pointless.
func (e *APIError) deterministic() bool {
	switch e.Status {
	case http.StatusRequestTimeout, http.StatusConflict:
		return false
	case http.StatusTooManyRequests: // used for an empty account as well
		return e.Overflow() || contains(e.Code, "insufficient_quota", "exceeded_current_quota", "billing", "balance")
	case http.StatusNotImplemented:
		return true
	}
	return e.Status >= 400 && e.Status < 500 || e.Overflow()
}

// contains reports whether a text has one of some words in lower case, whatever its own case.
func contains(text string, words ...string) bool {
	text = strings.ToLower(text)
	return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(text, word) })
}

// Overflow reports whether the request was too long for the model, as far as the many wordings can be recognised.
func (e *APIError) Overflow() bool {
	switch {
	case e.Status == http.StatusRequestEntityTooLarge,
		contains(e.Code, "context_length_exceeded", "exceed_context_size", "max_prompt_tokens_exceeded", "tokens_limit_reached"):
		return true
	case e.Status == http.StatusTooManyRequests: // "too many tokens" is a matter of time there, unless no wait helps
		return contains(e.Message, "request too large")
	}
	return contains(e.Message,
		"context length", "context_length", "context window", "context size", "context limit", "maximum context", "max_model_len",
		"prompt is too long", "prompt too long", "prompt exceeds max", "maximum prompt length", "maximum model length",
		"prompt token count", "input token count", "input is too long", "input length should be", "maximum allowed input length",
		"`inputs` tokens", "`inputs` must have less than", "too many tokens", "exceeds the limit of tokens", "model token limit",
		"request too large for")
}

// newAPIError reads the body of a refusal, in whatever form it has.
func newAPIError(status int, body []byte) *APIError {
	e := &APIError{Status: status}
	var doc json.RawMessage
	if json.Unmarshal(body, &doc) == nil {
		e.Message, e.Code = errorText(doc, 0)
	} else if text := clean(string(body)); strings.HasPrefix(strings.TrimSpace(text), "<") {
		e.Message = htmlText(text)
	} else {
		e.Message = text
	}
	e.tidy()
	return e
}

// tidy makes the texts fit to be shown in one line of a terminal.
func (e *APIError) tidy() {
	e.Message = cut(oneLine(e.Message), maxErrorText)
	e.Code = cut(oneLine(e.Code), 100)
	if e.Message == "" {
		e.Message = strings.ToLower(http.StatusText(e.Status))
	}
	if e.Message == "" {
		e.Message = "no reason given"
	}
}

func oneLine(text string) string {
	printable := strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, clean(text))
	return strings.Join(strings.Fields(printable), " ")
}

// maxErrorDepth bounds how deep a message is looked for.
const maxErrorDepth = 5

// errorText finds the message and code in an error document: {"error":{…}}, {"error":"text"}, [{"error":{…}}],
// {"message":…}, {"detail":[{"msg":…}]} and mixtures.
func errorText(raw json.RawMessage, depth int) (message, code string) {
	if depth > maxErrorDepth || isNull(raw) {
		return "", ""
	}
	switch kind(raw) {
	case '[':
		for _, element := range asList(raw) {
			if message, code = errorText(element, depth+1); message != "" {
				return message, code
			}
		}
		return "", ""
	case '{':
	default:
		return asText(raw), ""
	}
	doc := asObject(raw)
	for _, name := range []string{"code", "type", "status"} {
		if code == "" && kind(doc[name]) == '"' {
			code = doc.text(name)
		}
	}
	for _, name := range []string{"error", "message", "detail", "details", "msg", "errors", "title"} {
		inner, innerCode := errorText(doc[name], depth+1)
		if inner == "" {
			continue
		}
		if innerCode != "" {
			code = innerCode
		}
		// A gateway's own message is often just "provider returned error".
		if raw := doc.object("metadata").text("raw"); raw != "" {
			inner += ": " + raw
		}
		return inner, code
	}
	return "", code
}

// htmlText returns the words of a page.
func htmlText(page string) string {
	var out strings.Builder
	for page != "" {
		text, rest, found := strings.Cut(page, "<")
		out.WriteString(text)
		if !found {
			break
		}
		out.WriteByte(' ')
		page = rest
		for _, hidden := range []string{"script", "style"} {
			if len(page) >= len(hidden) && strings.EqualFold(page[:len(hidden)], hidden) {
				_, page, _ = strings.Cut(page, "</")
			}
		}
		_, page, _ = strings.Cut(page, ">")
	}
	return html.UnescapeString(out.String())
}

// embeddedError returns the error that a document inside an answer reports, or nil.
func embeddedError(doc fields) error {
	raw, found := doc["error"]
	if !found || saysNothing(raw) {
		if doc.text("object") != "error" && doc.text("type") != "error" {
			return nil
		}
		raw, _ = marshal(doc)
	}
	return midwayError(raw)
}

// saysNothing reports whether a value, or every member of it, says nothing.
func saysNothing(raw json.RawMessage) bool {
	for _, member := range asObject(raw) {
		if !isNothing(member) {
			return false
		}
	}
	return kind(raw) == '{' || isNothing(raw)
}

// midwayError reads the report of an error in the middle of an answer.
func midwayError(raw json.RawMessage) *APIError {
	e := &APIError{Midway: true}
	e.Message, e.Code = errorText(raw, 0)
	if status, ok := asObject(raw).integer("code"); ok && status >= 400 && status < 600 {
		e.Status = int(status)
	}
	e.tidy()
	return e
}
