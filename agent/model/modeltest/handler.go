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
	// Model, if set, is the only one there is; Models, if set, are the ones there are. A script may be for one of them
	// ([Handler.AddFor]).
	Model  string
	Models []string
	// ContextBytes, if set, is the size over which requests are refused as too long. That is no violation.
	ContextBytes int
	// Secrets must not be in any request.
	Secrets []string
	// Reasoning takes reasoning_content and reasoning in assistant messages, as some providers do.
	Reasoning bool
	// NeedsReasoning refuses calls in the history without the reasoning that led to them, as some providers do.
	NeedsReasoning bool
	// ShortIDs refuses calls whose ids are not nine letters and digits, as some providers do.
	ShortIDs bool
	// NoTools refuses everything about tools, as models do that cannot call them.
	NoTools bool
	// Gemini refuses in schemas what Gemini's subset of OpenAPI does not have.
	Gemini bool
	// RefuseField, if set, is a member of requests that this provider does not know.
	RefuseField string
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
	scripts    map[string][]Step // by model
	rules      map[string]Step
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
		scripts: make(map[string][]Step),
		rules:   make(map[string]Step),
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

// AddFor appends steps that only requests for one model take, before those that are for all.
func (h *Handler) AddFor(model string, steps ...Step) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.scripts[model] = append(h.scripts[model], steps...)
}

// SetRuleFor replaces what answers one model when its script is used up.
func (h *Handler) SetRuleFor(model string, rule Step) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.rules[model] = rule
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

// RequestsFor returns what was received so far for one model.
func (h *Handler) RequestsFor(model string) []*Received {
	var out []*Received
	for _, r := range h.Requests() {
		if r.Model == model {
			out = append(out, r)
		}
	}
	return out
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
	n := len(h.script)
	for _, script := range h.scripts {
		n += len(script)
	}
	return n
}

// Reset forgets requests, violations and the script.
func (h *Handler) Reset() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.script, h.requests, h.violations, h.rule = nil, nil, nil, h.config.Rule
	clear(h.extras)
	clear(h.scripts)
	clear(h.rules)
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
	step := h.next(received.Model)
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

// next takes the next step for a model from the scripts.
func (h *Handler) next(model string) Step {
	h.mu.Lock()
	defer h.mu.Unlock()
	if own := h.scripts[model]; len(own) > 0 {
		h.scripts[model] = own[1:]
		return own[0]
	}
	if rule := h.rules[model]; rule != nil {
		return rule
	}
	if len(h.script) == 0 {
		return h.rule
	}
	step := h.script[0]
	h.script = h.script[1:]
	return step
}

// names are the models that there are, none if any name will do.
func (h *Handler) names() []string {
	if h.config.Model != "" {
		return append([]string{h.config.Model}, h.config.Models...)
	}
	return h.config.Models
}

func (h *Handler) knows(model string) bool {
	names := h.names()
	return len(names) == 0 || slices.Contains(names, model)
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
	names := h.names()
	if len(names) == 0 {
		names = []string{"modeltest"}
	}
	var list []map[string]any
	for _, name := range names {
		list = append(list, map[string]any{"id": name, "object": "model", "created": 1, "owned_by": "modeltest"})
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"object": "list", "data": list})
}
