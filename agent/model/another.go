package model

import (
	"context"
	"errors"
	"net"
	"net/http"
)

// errRequest says that a request could not be written down, which no other model changes.
var errRequest = errors.New("the request cannot be sent")

// Another reports whether another model may answer the request that failed with err: its provider cannot be reached,
// does not take the key, does not know the model or what the request uses of it, is busy or out of order, went silent or sent what is no answer. It is
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
	if e.Status < http.StatusBadRequest { // no status, a page and no answer, or a redirect to nowhere
		return true
	}
	switch e.Status {
	case http.StatusUnauthorized, http.StatusPaymentRequired, http.StatusForbidden, http.StatusNotFound,
		http.StatusRequestTimeout, http.StatusTooManyRequests:
		return true
	}
	return e.Status >= http.StatusInternalServerError || e.Status == http.StatusBadRequest && e.unfit()
}

// unfit reports whether a refused request is at fault only with this provider or model: some say so with 400, as far as
// that can be recognised.
func (e *APIError) unfit() bool {
	return contains(e.Code, "model_not_found", "model_not_available", "invalid_api_key", "billing") ||
		contains(e.Message, "api key not valid", "incorrect api key", "invalid api key", "credit balance", "model not exist",
			"not a valid model", "invalid model", "unknown model", "model not found", "not support")
}

// filtered reports whether the provider refused what the request says, as far as that can be recognised.
func (e *APIError) filtered() bool {
	return contains(e.Code, "content_filter", "content_policy", "moderation", "responsible_ai") ||
		e.Status == http.StatusForbidden && contains(e.Message, "moderation", "flagged")
}

// Empty reports whether nothing of an answer came: no text, no thought, no call.
func (t Turn) Empty() bool {
	return t.Text == "" && t.Reasoning == "" && len(t.Calls) == 0 && len(t.Open) == 0
}
