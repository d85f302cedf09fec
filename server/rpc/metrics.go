package rpc

import (
	"net/http"

	optionv1 "throwbar.dev/throwbar/gen/go/throwbar/option/v1"
	"throwbar.dev/throwbar/server/auth"
)

// Meter counts what is open. Its methods must not wait.
type Meter interface {
	// StreamOpened is a request, or a stream that is held, by its protocol, for example HTTP/2.0.
	StreamOpened(protocol string)
	StreamClosed(protocol string)
}

func counted(meter Meter, next http.Handler) http.Handler {
	if meter == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		meter.StreamOpened(r.Proto)
		defer meter.StreamClosed(r.Proto)
		next.ServeHTTP(w, r)
	})
}

// readable lets those through who may read: metrics name nobody, but they say how much is done and when.
func readable(tokens *auth.Tokens, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		secret, err := auth.Bearer(r.Header.Get("Authorization"))
		if err != nil {
			refuse(w, http.StatusUnauthorized, err)
			return
		}
		token, err := tokens.Authenticate(secret)
		if err != nil {
			refuse(w, http.StatusUnauthorized, err)
			return
		}
		if err := auth.Allowed(token.Scope, optionv1.Scope_SCOPE_VIEWER); err != nil {
			refuse(w, http.StatusForbidden, err)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func refuse(w http.ResponseWriter, status int, err error) {
	if status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	http.Error(w, err.Error(), status)
}
