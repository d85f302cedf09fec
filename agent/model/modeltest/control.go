package modeltest

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// Control is the handler by which another process scripts the server. Mount it beside the server, for tests only:
//
//	POST /script      [reply, …]                              appends to the script
//	POST /rules       [{"match":…,"replies":[reply, …]}, …]   replaces the rules
//	POST /script?model=NAME, /rules?model=NAME                the same for one model only
//	POST /reset                                               forgets everything
//	GET  /requests    [{"number":…,"refused":…,"body":…}, …]  what was received
//	GET  /violations  [{"request":…,"text":…}, …]             what was wrong
//
// A reply is the JSON form of [Reply]. Unknown members are errors.
func (h *Handler) Control() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /script", h.postScript)
	mux.HandleFunc("POST /rules", h.postRules)
	mux.HandleFunc("POST /reset", func(w http.ResponseWriter, _ *http.Request) {
		h.Reset()
		w.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("GET /requests", func(w http.ResponseWriter, _ *http.Request) {
		out := []map[string]any{}
		for _, r := range h.Requests() {
			entry := map[string]any{"number": r.Number, "refused": r.Refused, "body": json.RawMessage(r.Body)}
			if !json.Valid(r.Body) {
				entry["body"] = string(r.Body)
			}
			out = append(out, entry)
		}
		respond(w, out)
	})
	mux.HandleFunc("GET /violations", func(w http.ResponseWriter, _ *http.Request) {
		respond(w, append([]Violation{}, h.Violations()...))
	})
	return mux
}

func (h *Handler) postScript(w http.ResponseWriter, r *http.Request) {
	var replies []Reply
	if !decode(w, r, &replies) {
		return
	}
	if model := r.URL.Query().Get("model"); model != "" {
		h.AddFor(model, steps(replies)...)
	} else {
		h.Add(steps(replies)...)
	}
	w.WriteHeader(http.StatusNoContent)
}

func (h *Handler) postRules(w http.ResponseWriter, r *http.Request) {
	var posted []struct {
		Match   string  `json:"match"`
		Replies []Reply `json:"replies"`
	}
	if !decode(w, r, &posted) {
		return
	}
	var rules []Rule
	for _, rule := range posted {
		rules = append(rules, Rule{Match: rule.Match, Steps: steps(rule.Replies)})
	}
	step, err := Rules(rules...)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if model := r.URL.Query().Get("model"); model != "" {
		h.SetRuleFor(model, step)
	} else {
		h.SetRule(step)
	}
	w.WriteHeader(http.StatusNoContent)
}

func steps(replies []Reply) []Step {
	var out []Step
	for _, reply := range replies {
		out = append(out, reply)
	}
	return out
}

func decode(w http.ResponseWriter, r *http.Request, into any) bool {
	dec := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		http.Error(w, fmt.Sprintf("read the request: %v", err), http.StatusBadRequest)
		return false
	}
	return true
}

func respond(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}
