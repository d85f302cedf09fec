package browser_test

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"throwbar.dev/throwbar/server/browser"
	"throwbar.dev/throwbar/server/browser/search"
)

func TestDomainOf(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"https://www.youtube.com/watch?v=1":          "youtube.com",
		"HTTPS://WWW.YouTube.COM:443":                "youtube.com",
		"https://youtube.com./":                      "youtube.com",
		"https://user:pass@m.youtube.com:8443/x?y#z": "youtube.com",
		"https://a.b.co.uk/":                         "b.co.uk",
		"https://co.uk/":                             "co.uk",
		"https://someone.github.io/":                 "someone.github.io",
		"https://xn--bcher-kva.example/":             "xn--bcher-kva.example",
		"https://www.bücher.example/":                "xn--bcher-kva.example",
		"https://WWW.BÜCHER.example/":                "xn--bcher-kva.example",
		"https://example.com/%zz":                    "example.com",
		"https://example.com?next=https://other.org": "example.com",
		"http://127.0.0.1:8080/":                     "127.0.0.1",
		"http://[::1]:3000/":                         "[::1]",
		"http://localhost:5173/":                     "localhost",
		"http://wiki/":                               "wiki",
		"ftp://ftp.example.org/pub":                  "example.org",
		"file:///home/me/notes.txt":                  "",
		"chrome://settings/":                         "",
		"chrome-extension://abcdefgh/panel.html":     "",
		"about:blank":                                "",
		"data:text/html,https://example.com":         "",
		"view-source:https://example.com/":           "",
		"javascript://example.com/%0aalert(1)":       "",
		"":                                           "",
		"https://":                                   "",
		"https:///":                                  "",
		"https://@:80/":                              "",
	} {
		if got := browser.DomainOf(url); got != want {
			t.Errorf("DomainOf(%q) = %q, want %q", url, got, want)
		}
	}
}

func TestSearchedTexts(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		title, url string
		queries    []string
		not        []string
	}{
		{"", "https://ru.wikipedia.org/wiki/%D0%9C%D0%B8%D1%80", []string{"мир", "МИР", "wiki/мир", "%d0%9c", "D0%9C"}, []string{"миру"}},
		{"", "https://xn--bcher-kva.example/a", []string{"bücher", "BÜCHER.example", "xn--bcher", "bu\u0308cher.example/a"}, []string{"bucher"}},
		{"", "https://bücher.example/", []string{"xn--bcher-kva.example", "Bücher"}, nil},
		{"", "https://XN--BCHER-KVA.example/", []string{"bücher"}, nil},
		{"", "https://a.example/c%2B%2B?q=it%27s", []string{"c++", "it's", "%2b"}, nil},
		{"", "https://a.example/%zz%E4%b8", []string{"%zz", "%e4%b8"}, nil},
		{"AC/DC – Back in Black", "https://a.example/", []string{"ac/dc", "– back", "black a.example", "k"}, []string{"dcback"}},
		{"İSTANBUL'DA IŞIK", "", []string{"istanbul", "ışık", "işık", "ISTANBUL"}, nil},
		{"Große STRASSE", "", []string{"straße", "GROSSE", "ß"}, nil},
		{"Ὀδυσσεύς", "", []string{"ὈΔΥΣΣΕΎΣ", "σεύσ"}, nil},
		{"東京タワーの歴史", "", []string{"タワー", "京", "東京", "ﾀﾜｰ"}, []string{"京東"}},
	} {
		for _, q := range append(row.queries, row.not...) {
			want := slices.Contains(row.queries, q)
			if got := search.Match(browser.Texts(row.title, row.url), search.Words(q)); got != want {
				t.Errorf("%q %q, query %q: %v", row.title, row.url, q, got)
			}
		}
	}
}

func FuzzAddress(f *testing.F) {
	for _, s := range []string{"https://www.youtube.com/", "https://xn--/%", "http://[::1%25eth0]:80/", "://", "https://ü\u0307:@.", "http://xn--a-0hc.xn--/%ff%C3%A9%"} {
		f.Add("Title", s, "x")
	}
	f.Fuzz(func(t *testing.T, title, url, query string) {
		domain := browser.DomainOf(url)
		if domain != strings.ToLower(domain) && utf8.ValidString(url) && isPlain(domain) {
			t.Errorf("DomainOf(%q) = %q is not in lower case", url, domain)
		}
		texts := browser.Texts(title, url)
		for _, word := range search.Words(query) {
			if got, want := browser.Has(title, url, word), search.Match(texts, []string{word}); got != want {
				t.Errorf("title %q, address %q, word %q: quickly %v, slowly %v", title, url, word, got, want)
			}
		}
	})
}

func isPlain(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r >= utf8.RuneSelf }) < 0
}

// FuzzFrames sends what any device may send, and searches for any query.
func FuzzFrames(f *testing.F) {
	f.Add("YouTube", "https://www.youtube.com/", "you tube", "lap_tb1-1", uint64(2), uint32(0), true)
	f.Add("\xff", "https://xn--\x00", "\n \x00", "lap_wb1-1", uint64(9), uint32(1), false)
	f.Fuzz(func(t *testing.T, title, url, query, id string, sequence uint64, chunk uint32, last bool) {
		fuzzFrames(t, title, url, query, id, sequence, chunk, last)
	})
}
