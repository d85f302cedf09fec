package browser

import (
	"bytes"
	"net/netip"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"
	"golang.org/x/net/publicsuffix"

	"throwbar.dev/throwbar/server/browser/search"
)

// maxSearched is how much of an address is searched, in bytes. What is longer carries data, not words.
const maxSearched = 2048

// address is a web address in its parts; together they are the address again. Unlike net/url it takes what browsers
// show, wrong escapes too.
type address struct{ before, host, after string }

// split finds the host of an address. Without one, all of it is in after.
func split(raw string) address {
	scheme, rest, ok := strings.Cut(raw, "://")
	if !ok || scheme == "" || strings.ContainsAny(scheme, "/?# \t\n") {
		return address{after: raw}
	}
	authority := rest
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		authority = rest[:end]
	}
	from := len(scheme) + len("://")
	host := authority
	if at := strings.LastIndexByte(host, '@'); at >= 0 {
		from += at + 1
		host = host[at+1:]
	}
	if colon := strings.LastIndexByte(host, ':'); colon > strings.LastIndexByte(host, ']') {
		host = host[:colon]
	}
	return address{before: raw[:from], host: host, after: raw[from+len(host):]}
}

// texts are what a tab is searched by: its title, its address, and the other ways to write that address where there are
// any, with its host in letters and its escapes decoded, and with its host in ASCII.
func texts(title, url string) []string {
	url = clip(url, maxSearched)
	out := []string{search.Fold(title), search.Fold(url)}
	a := split(url)
	ace := strings.Contains(strings.ToLower(a.host), "xn--")
	if ace || strings.IndexByte(url, '%') >= 0 {
		host := a.host
		if ace {
			if u, err := idna.Display.ToUnicode(host); err == nil {
				host = u
			}
		}
		if shown := search.Fold(a.before + host + unescape(a.after)); shown != out[1] {
			out = append(out, shown)
		}
	}
	if ascii, err := idna.Lookup.ToASCII(a.host); !isASCII(a.host) && err == nil {
		out = append(out, search.Fold(a.before+ascii+a.after))
	}
	return out
}

// unescape decodes the percent escapes of a text, as far as they stand for letters.
func unescape(s string) string {
	if strings.IndexByte(s, '%') < 0 {
		return s
	}
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); {
		if s[i] != '%' {
			out = append(out, s[i])
			i++
			continue
		}
		from, begin := i, len(out)
		for i+2 < len(s) && s[i] == '%' && hex(s[i+1]) >= 0 && hex(s[i+2]) >= 0 {
			out = append(out, byte(hex(s[i+1])<<4|hex(s[i+2])))
			i += 3
		}
		switch {
		case i == from: // a bare percent sign
			out = append(out, '%')
			i++
		case !utf8.Valid(out[begin:]):
			out = append(out[:begin], s[from:i]...)
		}
	}
	return string(out)
}

func hex(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c && c <= 'f':
		return int(c-'a') + 10
	case 'A' <= c && c <= 'F':
		return int(c-'A') + 10
	default:
		return -1
	}
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// domainOf is the registrable domain of a web address in ASCII, for example youtube.com, whichever way its host is
// written; the host itself where there is none, such as localhost or an IP address; and empty for pages that are not of
// the web.
func domainOf(raw string) string {
	a := split(raw)
	switch strings.ToLower(strings.TrimSuffix(a.scheme(), "://")) {
	case "http", "https", "ws", "wss", "ftp":
	default:
		return ""
	}
	host := strings.TrimSuffix(strings.ToLower(a.host), ".")
	if !isASCII(host) {
		if ascii, err := idna.Lookup.ToASCII(host); err == nil {
			host = strings.TrimSuffix(ascii, ".")
		}
	}
	if _, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return host
	}
	if domain, err := publicsuffix.EffectiveTLDPlusOne(host); err == nil {
		return domain
	}
	return host
}

func (a address) scheme() string {
	scheme, _, _ := strings.Cut(a.before, "://")
	return scheme
}

// reader says whether tabs have words. It has memory to use again, so that it is for one goroutine.
type reader struct{ low []byte }

// has is search.Match for one word and the texts of a tab, without making the texts where their letters are plain.
func (rd *reader) has(title, url, word string) bool {
	url = clip(url, maxSearched)
	if plain, has := rd.plain(title, word); plain && has {
		return true
	} else if !plain {
		return search.Match(texts(title, url), []string{word})
	}
	plain, has := rd.plain(url, word)
	if has || plain && strings.IndexByte(url, '%') < 0 && !bytes.Contains(rd.low, []byte("xn--")) {
		return has
	}
	return search.Match(texts(title, url), []string{word})
}

// plain lower-cases a text in ASCII and says whether it has a word.
func (rd *reader) plain(s, word string) (plain, has bool) {
	rd.low = rd.low[:0]
	for i := range len(s) {
		c := s[i]
		if c >= utf8.RuneSelf {
			return false, false
		}
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		rd.low = append(rd.low, c)
	}
	return true, bytes.Contains(rd.low, []byte(word))
}

// clip cuts a text at a rune border.
func clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most]
}
