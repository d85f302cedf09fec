package ident

import (
	"net/url"
	"strings"
)

// URLPattern makes a function that says whether an address matches a pattern. In a pattern, * stands for any text,
// also none; without one, the address has to be the same once both are written alike: scheme and host in lower case,
// no default port, a slash where the path is empty. A pattern without a scheme gets https.
func URLPattern(pattern string) func(address string) bool {
	pattern = strings.TrimSpace(pattern)
	if !strings.Contains(pattern, "*") {
		want := normalURL(withScheme(pattern))
		return func(address string) bool { return normalURL(address) == want }
	}
	if !strings.Contains(pattern, "://") && !strings.HasPrefix(pattern, "*") {
		pattern = "https://" + pattern
	}
	parts := strings.Split(pattern, "*")
	return func(address string) bool { return glob(parts, address) }
}

func withScheme(address string) string {
	if strings.Contains(address, ":") {
		return address
	}
	return "https://" + address
}

func normalURL(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return address
	}
	u.Scheme = strings.ToLower(u.Scheme)
	u.Host = strings.ToLower(u.Host)
	if port := u.Port(); (u.Scheme == "https" && port == "443") || (u.Scheme == "http" && port == "80") {
		u.Host = strings.TrimSuffix(u.Host, ":"+port)
	}
	if u.Path == "" {
		u.Path = "/"
	}
	return u.String()
}

// glob says whether the parts of a pattern, between its stars, occur in order, the first one at the beginning and the
// last one at the end.
func glob(parts []string, s string) bool {
	first, last := parts[0], parts[len(parts)-1]
	if !strings.HasPrefix(s, first) {
		return false
	}
	s = s[len(first):]
	for _, part := range parts[1 : len(parts)-1] {
		i := strings.Index(s, part)
		if i < 0 {
			return false
		}
		s = s[i+len(part):]
	}
	return strings.HasSuffix(s, last)
}
