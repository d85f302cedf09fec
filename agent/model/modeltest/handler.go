package modeltest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Key is the key a server wants unless configured otherwise.
const Key = "sk-modeltest-0123456789"

// maxBody is the most a provider takes.
const maxBody = 8 << 20

// Config says how strict a server is, beyond what all of them refuse.
type Config struct {
	// Key must come as bearer token; [Key] unless set.
	Key string
	// NoKey wants no key, as local servers do.
	NoKey bool
	// Model, if set, is the only one there is.
	Model string
	// ContextBytes, if set, is the size over which requests are refused as too long. That is no violation.
	ContextBytes int
	// Secrets must not be in any request.
	Secrets []string
	// Reasoning takes reasoning_content and reasoning in assistant messages, as some providers do.
	Reasoning bool
	// Rule answers when the script is used up; nil makes such a request a violation.
	Rule Step
}

// Violation is something that a strict provider would have refused, or that the script did not provide for.
type Violation struct {
	// Request is the number of the request.
	Request int    `json:"request"`
	Text    string `json:"text"`
}

func (v Violation) String() string { return fmt.Sprintf("request %d: %s", v.Request, v.Text) }

// Handler is the server. It answers POST …/chat/completions and GET …/models.
type Handler struct {
	config Config

	mu         sync.Mutex
	script     []Step
	rule       Step
	requests   []*Received
	violations []Violation
	arrived    chan struct{} // closed and replaced when a request arrives
	lastCall   int
	// extras are the further members of the calls that were sent, by id.
	extras  map[string]json.RawMessage
	schemas map[string]*jsonschema.Schema // compiled parameters by their text
}

var _ http.Handler = (*Handler)(nil)

// NewHandler returns a server with a script.
func NewHandler(config Config, script ...Step) *Handler {
	if config.Key == "" && !config.NoKey {
		config.Key = Key
	}
	return &Handler{
		config:  config,
		script:  script,
		rule:    config.Rule,
		arrived: make(chan struct{}),
		extras:  make(map[string]json.RawMessage),
		schemas: make(map[string]*jsonschema.Schema),
	}
}

// Add appends steps to the script.
func (h *Handler) Add(steps ...Step) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.script = append(h.script, steps...)
}

// SetRule replaces what answers when the script is used up.
func (h *Handler) SetRule(rule Step) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.rule = rule
}

// Requests returns what was received so far.
func (h *Handler) Requests() []*Received {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.requests)
}

// Last returns the last request, nil if there is none.
func (h *Handler) Last() *Received {
	requests := h.Requests()
	if len(requests) == 0 {
		return nil
	}
	return requests[len(requests)-1]
}

// Await returns request number n, waiting for it if need be.
func (h *Handler) Await(ctx context.Context, n int) (*Received, error) {
	for {
		h.mu.Lock()
		arrived := h.arrived
		if len(h.requests) >= n {
			defer h.mu.Unlock()
			return h.requests[n-1], nil
		}
		h.mu.Unlock()
		select {
		case <-arrived:
		case <-ctx.Done():
			return nil, fmt.Errorf("await request %d: %w", n, context.Cause(ctx))
		}
	}
}

// Violations returns what was wrong so far.
func (h *Handler) Violations() []Violation {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.violations)
}

// TakeViolations returns what was wrong so far and forgets it, for tests that expect it.
func (h *Handler) TakeViolations() []Violation {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := h.violations
	h.violations = nil
	return out
}

// Remaining returns the number of steps not used yet.
func (h *Handler) Remaining() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.script)
}

// Reset forgets requests, violations and the script.
func (h *Handler) Reset() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.script, h.requests, h.violations, h.rule = nil, nil, nil, h.config.Rule
	clear(h.extras)
}

// ServeHTTP answers one request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasSuffix(r.URL.Path, "/models") && r.Method == http.MethodGet {
		h.serveModels(w, r)
		return
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	if err != nil {
		return // the client is gone
	}
	received := &Received{Header: r.Header.Clone(), Body: body}
	refusal := h.check(r, received)
	violation := refusal != nil
	if !violation && h.config.ContextBytes > 0 && len(body) > h.config.ContextBytes {
		refusal = &refused{status: http.StatusBadRequest, code: overflowCode, message: overflowText}
	}
	h.record(received, refusal, violation)
	if refusal != nil {
		refusal.write(w)
		return
	}
	step := h.next()
	if step == nil {
		h.violate(received, "the script has no step for this request")
		(&refused{status: http.StatusBadRequest, message: "modeltest: script used up"}).write(w)
		return
	}
	reply, err := step.reply(received).prepare(received, h.nextID)
	if err == nil && !reply.Unchecked {
		err = h.checkCalls(received, reply.Calls)
	}
	if err != nil {
		h.violate(received, "the script's reply: "+err.Error())
		(&refused{status: http.StatusBadRequest, message: "modeltest: " + err.Error()}).write(w)
		return
	}
	h.remember(reply.Calls)
	writeReply(r.Context(), w, received, reply)
}

// record files a request.
func (h *Handler) record(received *Received, refusal *refused, violation bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	received.Number = len(h.requests) + 1
	h.requests = append(h.requests, received)
	if refusal != nil {
		received.Refused = refusal.message
	}
	if violation {
		h.violations = append(h.violations, Violation{Request: received.Number, Text: refusal.message})
	}
	close(h.arrived)
	h.arrived = make(chan struct{})
}

// next takes the next step from the script.
func (h *Handler) next() Step {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.script) == 0 {
		return h.rule
	}
	step := h.script[0]
	h.script = h.script[1:]
	return step
}

func (h *Handler) violate(received *Received, text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.violations = append(h.violations, Violation{Request: received.Number, Text: text})
}

func (h *Handler) nextID() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lastCall++
	return fmt.Sprintf("call_%06d", h.lastCall)
}

// remember keeps what must come back with the calls.
func (h *Handler) remember(calls []Call) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, call := range calls {
		if len(call.Extra) > 0 {
			h.extras[call.ID] = call.Extra
		}
	}
}

func (h *Handler) serveModels(w http.ResponseWriter, r *http.Request) {
	if refusal := h.checkKey(r); refusal != nil {
		refusal.write(w)
		return
	}
	model := h.config.Model
	if model == "" {
		model = "modeltest"
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{
		"object": "list",
		"data":   []map[string]any{{"id": model, "object": "model", "created": 1, "owned_by": "modeltest"}},
	})
}
