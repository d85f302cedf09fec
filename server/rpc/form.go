package rpc

import (
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// form checks what a request looks like: its path, its method, its query and its content type. It lets through what a
// client of ours can send, and nothing that a browser sends by itself.
func form(r *http.Request) *denial {
	if !plainPath(r.URL) {
		return &denial{http.StatusNotFound, "path", "there is no such path"}
	}
	if len(r.Header["Upgrade"]) > 0 {
		return &denial{http.StatusBadRequest, "upgrade", "the server changes to no other protocol"}
	}
	switch r.Method {
	case http.MethodPost:
		if r.URL.RawQuery != "" || r.URL.ForceQuery {
			return &denial{http.StatusBadRequest, "query", "a call has no query: what it says is in its body, and its token in Authorization"}
		}
		if types := r.Header["Content-Type"]; len(types) != 1 || !rpcContent(types[0]) {
			return &denial{http.StatusUnsupportedMediaType, "content_type", "the content type has to be one of " + acceptPost()}
		}
	case http.MethodGet, http.MethodHead:
		return readForm(r)
	case http.MethodOptions:
		// Access-Control-Request-Method makes it a preflight.
		if r.Header.Get("Origin") == "" || r.Header.Get("Access-Control-Request-Method") == "" {
			return &denial{http.StatusMethodNotAllowed, "method", "this method is not offered"}
		}
	default:
		return &denial{http.StatusMethodNotAllowed, "method", "this method is not offered"}
	}
	return nil
}

// readForm checks a read by GET. Its URL may be kept in histories and logs: it holds the message and never a secret.
func readForm(r *http.Request) *denial {
	if r.ContentLength != 0 {
		return &denial{http.StatusUnsupportedMediaType, "content_type", "a read by GET has no body"}
	}
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return &denial{http.StatusBadRequest, "query", "the query cannot be read"}
	}
	for key, values := range query {
		switch key {
		case "connect", "encoding", "message", "base64", "compression":
			if len(values) == 1 {
				continue
			}
		}
		return &denial{http.StatusBadRequest, "query", "the query has more than a read by GET: a token goes into Authorization"}
	}
	return nil
}

// plainPath says whether a path is written in the one way that the paths of calls are: without percent signs, dots that go
// up or what a proxy and this server may read differently. Every method has one name.
func plainPath(u *url.URL) bool {
	if u.RawPath != "" || !strings.HasPrefix(u.Path, "/") || strings.Contains(u.Path, "//") || strings.Contains(u.Path, "/.") {
		return false
	}
	return !strings.ContainsFunc(u.Path, func(r rune) bool {
		plain := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		return !plain && !strings.ContainsRune("/._-", r)
	})
}

// contentTypes are those of the three protocols. None of them can a page send to a foreign server without asking first.
func contentTypes() []string {
	return []string{
		"application/json", "application/proto", "application/connect+json", "application/connect+proto",
		"application/grpc", "application/grpc+proto", "application/grpc+json",
		"application/grpc-web", "application/grpc-web+proto", "application/grpc-web+json",
	}
}

func acceptPost() string { return strings.Join(contentTypes(), ", ") }

// rpcContent says whether a content type is one of them, with no parameter but the only charset that there is.
func rpcContent(text string) bool {
	base, parameters := text, map[string]string(nil)
	if strings.Contains(text, ";") {
		var err error
		if base, parameters, err = mime.ParseMediaType(text); err != nil || len(parameters) != 1 {
			return false
		}
		if !strings.EqualFold(parameters["charset"], "utf-8") || !strings.HasSuffix(base, "json") {
			return false
		}
	}
	return slices.Contains(contentTypes(), base)
}
