package rpc

import (
	"net/http"
	"strings"
)

// exact refuses a path that is written in any other way than the one that is looked up: percent signs, an address before
// it, or what a proxy and this server may read differently. Every method has one name.
func exact(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if path, _, _ := strings.Cut(r.RequestURI, "?"); path != r.URL.Path {
			http.NotFound(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}
