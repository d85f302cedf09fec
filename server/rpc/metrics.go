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
	// Called is a call that came through the listener's rules, by its procedure. Its token is not looked at yet.
	Called(procedure string)
	// Refused is a request that the rules or the limits of the listener did not let through.
	Refused(reason string)
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
func readable(tokens *auth.Tokens, limits *throttle, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		secret, err := auth.Bearer(r.Header.Get("Authorization"))
		if err != nil {
			refuse(w, http.StatusUnauthorized, err)
			return
		}
		token, err := tokens.Authenticate(secret)
		if err != nil {
			if wait := limits.failed(r.RemoteAddr); wait > 0 {
				w.Header().Set("Retry-After", seconds(wait))
				refuse(w, http.StatusTooManyRequests, err)
				return
			}
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
