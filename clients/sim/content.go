package sim

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"

	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
)

// page is what a tab shows.
type page struct{ url, title string }

// library has the pages that simulated people look at.
type library struct {
	videos, channels, topics, docs, headlines, goods, repos, questions, places, groups []string
}

func newLibrary() *library {
	return &library{
		videos: []string{
			"How Railway Switches Work", "Night Train Across the Alps, Full Cab Ride", "Sourdough for Beginners",
			"The Physics of Pinball", "Restoring a 1950s Typewriter", "Lo-fi Beats for Deep Work", "One Pot Lentil Curry",
			"Why Bridges Hum in the Wind", "Learn Go in One Hour", "Beginner Yoga, 20 Minutes", "A Walk Through Old Lisbon",
			"Building a Tiny Cabin Alone", "Chess Openings Explained", "The History of Zero", "Bach: Cello Suite No. 1",
		},
		channels: []string{"Slow Rail", "Kitchen Table", "Workshop Diary", "Number Lines", "City Walks", "Quiet Hours"},
		topics: []string{
			"Context", "Channels", "Array.prototype.map()", "Window functions", "Flexbox", "Deployments", "Volumes",
			"Generic types", "Transactions", "Service workers", "Error handling", "Time zones", "Indexes",
		},
		docs: []string{
			"https://pkg.go.dev/%s|%s - Go Packages", "https://developer.mozilla.org/en-US/docs/Web/%s|%s | MDN Web Docs",
			"https://www.postgresql.org/docs/current/%s.html|PostgreSQL: Documentation: %s",
			"https://kubernetes.io/docs/concepts/%s/|%s | Kubernetes", "https://docs.python.org/3/library/%s.html|%s — Python documentation",
			"https://protobuf.dev/programming-guides/%s/|%s | Protocol Buffers Documentation",
		},
		headlines: []string{
			"City council votes on new tram line", "Storm warning for the north coast", "Markets steady after rate decision",
			"Museum returns painting after 80 years", "Rail strike ends with late deal", "Scientists map an undersea ridge",
			"Local bakery wins national prize", "Heat wave breaks October record", "Parliament debates data law",
		},
		goods: []string{
			"Mechanical keyboard, brown switches", "Cast iron skillet, 26 cm", "Hiking boots, waterproof", "Desk lamp, dimmable",
			"USB-C dock, 8 in 1", "Espresso grinder", "Wool blanket", "Folding bicycle, 20 inch", "Noise cancelling headphones",
		},
		repos: []string{
			"bufbuild/buf", "connectrpc/connect-go", "golang/go", "protocolbuffers/protobuf", "sqlc-dev/sqlc", "vitejs/vite",
			"sveltejs/svelte", "pressly/goose", "spf13/cobra", "riverqueue/river",
		},
		questions: []string{
			"best trains through the alps", "how to prune tomatoes", "go context cancel cause", "weather weekend",
			"hotel near central station", "sqlite wal vs rollback", "dinner ideas quick", "convert miles to km",
		},
		places: []string{"Lisbon", "Kyoto", "Trieste", "Bergen", "Oaxaca", "Ljubljana", "Tbilisi", "Valparaíso", "Gdańsk"},
		groups: []string{"Trip", "Work", "Reading", "Recipes", "Shopping", "Release", "Music", "Research"},
	}
}

func pick(r *rand.Rand, list []string) string { return list[r.IntN(len(list))] }

// page makes a page up.
func (l *library) page(r *rand.Rand) page {
	switch n := r.IntN(100); {
	case n < 25:
		return l.video(r)
	case n < 45:
		form, topic := pick(r, l.docs), pick(r, l.topics)
		address, title, _ := strings.Cut(form, "|")
		return page{fmt.Sprintf(address, slug(topic)), fmt.Sprintf(title, topic)}
	case n < 60:
		h := pick(r, l.headlines)
		return page{fmt.Sprintf("https://www.dailyherald.example/2026/%02d/%s", 1+r.IntN(11), slug(h)), h + " | The Daily Herald"}
	case n < 72:
		g := pick(r, l.goods)
		return page{fmt.Sprintf("https://shop.example/p/%s-%d", slug(g), 1000+r.IntN(9000)), g + " | Shop"}
	case n < 82:
		repo := pick(r, l.repos)
		if r.IntN(2) == 0 {
			return page{"https://github.com/" + repo, "GitHub - " + repo}
		}
		issue := 1 + r.IntN(4000)
		return page{fmt.Sprintf("https://github.com/%s/issues/%d", repo, issue), fmt.Sprintf("Issue #%d · %s", issue, repo)}
	case n < 89:
		q := pick(r, l.questions)
		return page{"https://www.google.com/search?q=" + url.QueryEscape(q), q + " - Google Search"}
	case n < 96:
		p := pick(r, l.places)
		return page{"https://en.wikipedia.org/wiki/" + url.PathEscape(p), p + " - Wikipedia"}
	default:
		return page{"https://mail.example/inbox", fmt.Sprintf("Inbox (%d)", r.IntN(200))}
	}
}

func (l *library) video(r *rand.Rand) page {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	id := make([]byte, 11)
	for i := range id {
		id[i] = letters[r.IntN(len(letters))]
	}
	title := pick(r, l.videos)
	if r.IntN(3) == 0 {
		title += " · " + pick(r, l.channels)
	}
	return page{"https://www.youtube.com/watch?v=" + string(id), title + " - YouTube"}
}

// title is the title of an address that a command opened: always the same one.
func (l *library) title(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address
	}
	if strings.HasSuffix(u.Hostname(), "youtube.com") && u.Path == "/watch" {
		h := fnv.New64a()
		_, _ = h.Write([]byte(address)) // it never fails
		return l.videos[h.Sum64()%uint64(len(l.videos))] + " - YouTube"
	}
	words := strings.FieldsFunc(u.Path, func(r rune) bool { return strings.ContainsRune("/-_.", r) })
	if len(words) == 0 {
		return u.Hostname()
	}
	first, size := utf8.DecodeRuneInString(words[0])
	words[0] = string(unicode.ToUpper(first)) + words[0][size:]
	return strings.Join(words, " ") + " - " + u.Hostname()
}

func slug(text string) string {
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') })
	return strings.Join(words, "-")
}

// fill opens what the browser shows at first.
func (b *Browser) fill(c Contents) {
	windows := c.Windows
	if windows <= 0 {
		windows = 2
	}
	tabs := c.Tabs
	if tabs <= 0 {
		tabs = 40
	}
	for range c.Popups {
		p := b.pages.page(b.random)
		b.put(b.newTab(p.url, p.title), b.newWindow(kindPopup), 0)
	}
	for i := range min(windows, tabs) {
		w := b.newWindow(kindNormal)
		share := tabs / windows
		if i < tabs%windows {
			share++
		}
		for range max(share, 1) {
			b.put(b.firstTab(), w, len(w.tabs))
		}
		b.show(w.tabs[b.random.IntN(len(w.tabs))])
		b.firstGroups(w)
	}
	b.changes = newChanges()
}

func (b *Browser) firstTab() *tab {
	p := b.pages.page(b.random)
	t := b.newTab(p.url, p.title)
	t.pinned = b.random.IntN(16) == 0
	t.muted = b.random.IntN(20) == 0
	t.discarded = b.random.IntN(4) == 0
	return t
}

// firstGroups groups some runs of tabs.
func (b *Browser) firstGroups(w *window) {
	for at := w.pinnedCount(); at+2 < len(w.tabs); {
		n := 2 + b.random.IntN(5)
		if b.random.IntN(3) == 0 {
			run := append([]*tab(nil), w.tabs[at:min(at+n, len(w.tabs))]...)
			colour := commandv1.Colour(1 + b.random.IntN(9))
			b.join(b.newGroup(w, pick(b.random, b.pages.groups), colour), run)
		}
		at += n
	}
}
