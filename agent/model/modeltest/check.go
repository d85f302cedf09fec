package modeltest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"
)

// refused is a refusal as OpenAI words it.
type refused struct {
	status  int
	message string
	param   string
	code    string
}

func badRequest(param, format string, args ...any) *refused {
	return &refused{status: http.StatusBadRequest, param: param, message: fmt.Sprintf(format, args...)}
}

func (r *refused) write(w http.ResponseWriter) {
	body := map[string]any{"message": r.message, "type": "invalid_request_error", "param": nil, "code": nil}
	if r.param != "" {
		body["param"] = r.param
	}
	if r.code != "" {
		body["code"] = r.code
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(r.status)
	_ = json.NewEncoder(w).Encode(map[string]any{"error": body})
}

// check fills in received and returns what is wrong with the request.
func (h *Handler) check(r *http.Request, received *Received) *refused {
	if refusal := h.checkEnvelope(r, received.Body); refusal != nil {
		return refusal
	}
	if refusal := checkText(received.Body); refusal != nil {
		return refusal
	}
	for _, secret := range append([]string{h.config.Key}, h.config.Secrets...) {
		if secret != "" && bytes.Contains(received.Body, []byte(secret)) {
			return badRequest("", "the request holds a secret")
		}
	}
	if err := json.Unmarshal(received.Body, &received.Fields); err != nil {
		return badRequest("", "We could not parse the JSON body of your request: %v", err)
	}
	if refusal := h.checkFields(received); refusal != nil {
		return refusal
	}
	if refusal := h.checkTools(received); refusal != nil {
		return refusal
	}
	return h.checkMessages(received)
}

func (h *Handler) checkEnvelope(r *http.Request, body []byte) *refused {
	switch {
	case !strings.HasSuffix(r.URL.Path, "/v1/chat/completions"):
		return &refused{status: http.StatusNotFound, message: fmt.Sprintf("Invalid URL (%s %s)", r.Method, r.URL.Path)}
	case r.Method != http.MethodPost:
		return &refused{status: http.StatusMethodNotAllowed, message: "Not allowed to " + r.Method}
	case r.URL.RawQuery != "":
		return badRequest("", "Unknown query parameters")
	}
	if refusal := h.checkKey(r); refusal != nil {
		return refusal
	}
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || media != "application/json" {
		return &refused{status: http.StatusUnsupportedMediaType, message: "Unsupported content type: " + r.Header.Get("Content-Type")}
	}
	if len(body) > maxBody {
		return &refused{status: http.StatusRequestEntityTooLarge, message: "Request too large"}
	}
	return nil
}

func (h *Handler) checkKey(r *http.Request) *refused {
	got := r.Header.Values("Authorization")
	switch {
	case h.config.NoKey && len(got) > 0:
		return &refused{status: http.StatusUnauthorized, message: "a key was sent to a server that wants none"}
	case h.config.NoKey:
		return nil
	case len(got) == 0:
		return &refused{status: http.StatusUnauthorized, message: "You didn't provide an API key."}
	case len(got) > 1 || got[0] != "Bearer "+h.config.Key:
		return &refused{status: http.StatusUnauthorized, code: "invalid_api_key", message: "Incorrect API key provided."}
	}
	return nil
}

// checkText refuses text that some parser cannot take.
func checkText(body []byte) *refused {
	switch {
	case !utf8.Valid(body):
		return badRequest("", "the body is not valid UTF-8")
	case halfPair(string(body)):
		return badRequest("", "the body has half a surrogate pair")
	case hasNUL(string(body)):
		return badRequest("", "the body has a NUL character")
	}
	if err := checkDuplicates(body); err != nil {
		return badRequest("", "We could not parse the JSON body of your request: %v", err)
	}
	return nil
}

// escapes calls f with the code unit of each \uXXXX escape of a JSON text and what follows, until f returns false.
func escapes(text string, f func(unit, rest string) bool) {
	for i := 0; i+1 < len(text); i++ {
		if text[i] != '\\' {
			continue
		}
		i++
		if text[i] == 'u' && i+5 <= len(text) && !f(strings.ToLower(text[i+1:i+5]), text[i+5:]) {
			return
		}
	}
}

// halfPair reports whether a JSON text has the escape of half a surrogate pair.
func halfPair(text string) bool {
	found, low := false, false // low: the unit to come was already seen as the second of a pair
	escapes(text, func(unit, rest string) bool {
		second := low
		low = false
		if unit[0] != 'd' || unit[1] < '8' || second {
			return true
		}
		high := strings.ContainsRune("89ab", rune(unit[1]))
		next := strings.ToLower(rest[:min(len(rest), 4)])
		if high && strings.HasPrefix(next, `\ud`) && len(next) == 4 && strings.ContainsRune("cdef", rune(next[3])) {
			low = true
			return true
		}
		found = true
		return false
	})
	return found
}

func hasNUL(text string) bool {
	found := strings.ContainsRune(text, 0)
	escapes(text, func(unit, _ string) bool {
		found = found || unit == "0000"
		return !found
	})
	return found
}

// checkDuplicates refuses anything that is not one JSON document, and members that occur twice.
func checkDuplicates(body []byte) error {
	dec := json.NewDecoder(bytes.NewReader(body))
	if err := checkValue(dec); err != nil {
		return err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("text after the document")
	}
	return nil
}

func checkValue(dec *json.Decoder) error {
	token, err := dec.Token()
	if err != nil {
		return err
	}
	delim, ok := token.(json.Delim)
	if !ok {
		return nil
	}
	seen := make(map[string]bool)
	for dec.More() {
		if delim == '{' {
			key, err := dec.Token()
			if err != nil {
				return err
			}
			name, _ := key.(string)
			if seen[name] {
				return fmt.Errorf("member %q occurs twice", name)
			}
			seen[name] = true
		}
		if err := checkValue(dec); err != nil {
			return err
		}
	}
	_, err = dec.Token()
	return err
}

// knownFields are the members of a request.
func knownFields() []string {
	return []string{
		"model", "messages", "tools", "tool_choice", "parallel_tool_calls", "stream", "stream_options", "max_tokens",
		"max_completion_tokens", "temperature", "top_p", "reasoning_effort", "reasoning", "response_format", "stop", "seed", "user", "n",
	}
}

func (h *Handler) checkFields(received *Received) *refused {
	for name := range received.Fields {
		if !slices.Contains(knownFields(), name) {
			return badRequest(name, "Unrecognized request argument supplied: %s", name)
		}
	}
	has := func(name string) bool { _, found := received.Fields[name]; return found }
	if json.Unmarshal(received.Fields["model"], &received.Model) != nil || received.Model == "" {
		return badRequest("model", "you must provide a model parameter")
	}
	if !h.knows(received.Model) {
		return &refused{status: http.StatusNotFound, param: "model", code: "model_not_found",
			message: fmt.Sprintf("The model `%s` does not exist or you do not have access to it.", received.Model)}
	}
	if has("stream") && json.Unmarshal(received.Fields["stream"], &received.Stream) != nil {
		return badRequest("stream", "Invalid type for 'stream': expected a boolean")
	}
	switch {
	case has("stream_options") && !received.Stream:
		return badRequest("stream_options", "The 'stream_options' parameter is only allowed when 'stream' is enabled.")
	case has("max_tokens") && has("max_completion_tokens"):
		return badRequest("max_tokens", "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.")
	case !has("tools") && has("tool_choice"):
		return badRequest("tool_choice", "'tool_choice' is only allowed when 'tools' are specified.")
	case !has("tools") && has("parallel_tool_calls"):
		return badRequest("parallel_tool_calls", "'parallel_tool_calls' is only allowed when 'tools' are specified.")
	}
	for _, name := range []string{"max_tokens", "max_completion_tokens"} {
		var n int
		if has(name) && (json.Unmarshal(received.Fields[name], &n) != nil || n < 1) {
			return badRequest(name, "Invalid '%s': expected a positive integer", name)
		}
	}
	if field := h.config.RefuseField; field != "" && has(field) {
		return badRequest(field, "Unrecognized request argument supplied: %s", field)
	}
	efforts := []string{`"none"`, `"minimal"`, `"low"`, `"medium"`, `"high"`, `"xhigh"`, `"max"`}
	if effort, found := received.Fields["reasoning_effort"]; found && !slices.Contains(efforts, string(effort)) {
		return badRequest("reasoning_effort", "Invalid value: %s", effort)
	}
	return nil
}
