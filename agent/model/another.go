package model

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
)

// errRequest says that a request could not be written down, which no other model changes.
var errRequest = errors.New("the request cannot be sent")

// Another reports whether another model may answer the request that failed with err: its provider cannot be reached,
// does not take the key, does not know the model, is busy or out of order, went silent or sent what is no answer. It is
// false where the fault is in the request (400, a history that is too long, filtered content), where the caller gave up,
// and where err is nil.
//
// Ask it only while nothing of the answer has come ([Turn.Empty]): what a person has read cannot be begun anew.
func Another(err error) bool {
	var api *APIError
	var network *net.OpError
	switch {
	case err == nil, errors.Is(err, errRequest), errors.Is(err, ErrNothingToAnswer):
		return false
	case errors.As(err, &api):
		return api.another()
	case errors.As(err, &network): // also one that took too long, which looks like the caller's deadline
		return true
	}
	return !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded)
}

// another is Another for what a provider said.
func (e *APIError) another() bool {
	if e.Overflow() || e.filtered() {
		return false
	}
	switch e.Status {
	case 0, http.StatusOK: // no status, or a page and no answer
		return true
	case http.StatusUnauthorized, http.StatusPaymentRequired, http.StatusForbidden, http.StatusNotFound,
		http.StatusRequestTimeout, http.StatusTooManyRequests:
		return true
	}
	return e.Status >= http.StatusInternalServerError
}

// filtered reports whether the provider refused what the request says, as far as that can be recognised.
func (e *APIError) filtered() bool {
	code := strings.ToLower(e.Code)
	for _, word := range []string{"content_filter", "content_policy", "moderation", "responsible_ai"} {
		if strings.Contains(code, word) {
			return true
		}
	}
	text := strings.ToLower(e.Message)
	return e.Status == http.StatusForbidden && (strings.Contains(text, "moderation") || strings.Contains(text, "flagged"))
}

// Empty reports whether nothing of an answer came: no text, no thought, no call.
func (t Turn) Empty() bool {
	return t.Text == "" && t.Reasoning == "" && len(t.Calls) == 0 && len(t.Open) == 0
}
