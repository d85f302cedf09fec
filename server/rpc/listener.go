package rpc

import (
	"net"
	"net/http"
	"slices"
	"strings"

	"throwbar.dev/throwbar/gen/go/throwbar/device/v1/devicev1connect"
)

// maxHeaders is how many header lines a request may have.
const maxHeaders = 100

// Listener has the rules of the address that the server listens on.
type Listener struct {
	// Hosts are the values of the Host header that are let through, with the port where it is not the scheme's own. A page
	// that has its own name point at this machine brings that name along.
	Hosts []string
	// Origins are the origins of pages that are let through, besides the server's own and those of paired extensions.
	Origins []string
}

// LoopbackHosts are the names that a local client may call a listener by.
func LoopbackHosts(address string) []string {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return []string{address}
	}
	hosts := []string{address}
	if ip := net.ParseIP(host); host == "localhost" || (ip != nil && ip.IsLoopback()) {
		for _, name := range []string{"127.0.0.1", "localhost", "::1"} {
			hosts = append(hosts, net.JoinHostPort(name, port))
		}
	}
	return hosts
}

// denial is why the listener does not let a request through.
type denial struct {
	status int
	reason string // its label in the metrics
	text   string
}

// gate is what stands before every path of a listener: calls, health, reflection, metrics, and what does not exist.
type gate struct {
	hosts   map[string]bool
	origins map[string]bool
	paired  func() []string
	meter   Meter // may be nil
}

// guard refuses requests for a foreign host, from a foreign page, and in a form that no client of ours sends, before
// anything else sees them.
func (l Listener) guard(paired func() []string, meter Meter, next http.Handler) http.Handler {
	g := &gate{hosts: map[string]bool{}, origins: map[string]bool{}, paired: paired, meter: meter}
	for _, host := range l.Hosts {
		g.hosts[strings.ToLower(host)] = true
	}
	for _, origin := range l.Origins {
		g.origins[origin] = true
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		safeHeaders(w.Header())
		for _, check := range []func(*http.Request) *denial{g.target, g.source, form} {
			if no := check(r); no != nil {
				g.refuse(w, no)
				return
			}
		}
		g.share(w.Header(), r)
		if r.Method == http.MethodOptions {
			w.WriteHeader(http.StatusNoContent) // a preflight of an origin that may call
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (g *gate) refuse(w http.ResponseWriter, no *denial) {
	if g.meter != nil {
		g.meter.Refused(no.reason)
	}
	switch no.status {
	case http.StatusMethodNotAllowed:
		w.Header().Set("Allow", "GET, POST")
	case http.StatusUnsupportedMediaType:
		w.Header().Set("Accept-Post", acceptPost())
	}
	http.Error(w, no.text, no.status)
}

// target checks whom the request is for. An absolute target would name the host a second time, and so would a Host
// header beside the authority of HTTP/2: a request that says it twice is for nobody.
func (g *gate) target(r *http.Request) *denial {
	lines := 0
	for _, values := range r.Header {
		lines += len(values)
	}
	switch {
	case lines > maxHeaders:
		return &denial{http.StatusRequestHeaderFieldsTooLarge, "headers", "the request has too many headers"}
	case r.URL.Host != "" || r.URL.Scheme != "" || r.URL.User != nil || len(r.Header["Host"]) > 0:
		return &denial{http.StatusBadRequest, "target", "the request has to name its host once, in Host or :authority"}
	case !g.hosts[strings.ToLower(r.Host)]:
		return &denial{http.StatusForbidden, "host", "this host name is not one of the server's: --allow-host adds one"}
	}
	return nil
}

// source checks which page the request comes from, if it comes from one. Browsers leave Origin out of some requests
// that a page makes (images, forms by GET, navigations); then they say in Sec-Fetch-Site that it is a foreign one.
func (g *gate) source(r *http.Request) *denial {
	foreign := &denial{http.StatusForbidden, "origin", "pages of this origin may not call the server"}
	origins, given := r.Header["Origin"]
	if given {
		if len(origins) != 1 || !g.allows(origins[0], r) {
			return foreign
		}
		return nil
	}
	for _, site := range r.Header["Sec-Fetch-Site"] {
		if site != "same-origin" && site != "none" {
			return foreign
		}
	}
	return nil
}

func (g *gate) allows(origin string, r *http.Request) bool {
	if g.shares(origin) || ownOrigin(origin, r) {
		return true
	}
	// An extension that is not paired yet may do that, and nothing else. Pairing pins its origin.
	return r.URL.Path == devicev1connect.DeviceServicePairProcedure && isExtension(origin)
}

func (g *gate) shares(origin string) bool {
	return g.origins[origin] || slices.Contains(g.paired(), origin)
}

// ownOrigin says whether an origin is the server's own, under the name that the request calls it by. Without TLS of its
// own it may stand behind a proxy that has it.
func ownOrigin(origin string, r *http.Request) bool {
	host := strings.ToLower(r.Host)
	return origin == "https://"+host || (r.TLS == nil && origin == "http://"+host)
}

// isExtension says whether an origin is that of a browser extension.
func isExtension(origin string) bool {
	return strings.HasPrefix(origin, "chrome-extension://") || strings.HasPrefix(origin, "moz-extension://")
}

// share lets pages of an allowed origin read the answer: that origin, by its name, and without cookies or other
// credentials that the browser would add by itself.
func (g *gate) share(h http.Header, r *http.Request) {
	origin := r.Header.Get("Origin")
	if origin == "" || ownOrigin(origin, r) {
		return
	}
	h.Set("Access-Control-Allow-Origin", origin)
	h.Add("Vary", "Origin")
	if r.Method == http.MethodOptions {
		h.Set("Access-Control-Allow-Methods", "GET, POST")
		h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, Content-Encoding, Connect-Protocol-Version, "+
			"Connect-Timeout-Ms, Connect-Content-Encoding, Grpc-Timeout, X-Grpc-Web, X-User-Agent")
		h.Set("Access-Control-Max-Age", "600")
		return
	}
	h.Set("Access-Control-Expose-Headers", "Content-Encoding, Connect-Content-Encoding, Grpc-Status, Grpc-Message, "+
		"Grpc-Status-Details-Bin, Retry-After")
}

// safeHeaders keep a browser from making more of an answer than it is. The server has no pages: what it says is never a
// document, a script, or part of another page. Strict-Transport-Security is left out on purpose: it would hold for all
// ports of the host, also for those that are not ours.
func safeHeaders(h http.Header) {
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
}
