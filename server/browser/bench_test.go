package browser_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	devicev1 "throwbar.dev/throwbar/gen/go/throwbar/device/v1"
	"throwbar.dev/throwbar/server/browser"
)

// A million tabs on 10,000 devices; a tenth of both with -short.
const tabsPerDevice = 100

func benchDevices() int {
	if testing.Short() {
		return 1000
	}
	return 10_000
}

// web makes tabs as people have them: few hosts and words are everywhere, most are rare, and every other address has
// something in it that is nowhere else.
type web struct {
	r     *rand.Rand
	words []string
	hosts []string
	word  *rand.Zipf
	host  *rand.Zipf
}

func newWeb(seed uint64) *web {
	r := rand.New(rand.NewPCG(seed, 1))
	w := &web{r: r}
	syllables := strings.Fields("an ba co de er fi ga hu in ja ko la me no on pe qui ra si ta un ve wi ex yo ze th sh ch st tr pl br com pro con ing tion ment ly")
	make1 := func(n int) string {
		var b strings.Builder
		for range n {
			b.WriteString(syllables[r.IntN(len(syllables))])
		}
		return b.String()
	}
	for range 40_000 {
		w.words = append(w.words, make1(1+r.IntN(4)))
	}
	ends := strings.Fields("com com com com com org net io dev de co.uk fr jp")
	w.hosts = []string{"www.google.com", "mail.google.com", "github.com", "docs.google.com", "en.wikipedia.org", "www.amazon.com", "stackoverflow.com"}
	for range 50_000 {
		host := make1(2+r.IntN(2)) + "." + ends[r.IntN(len(ends))]
		if r.IntN(2) == 0 {
			host = "www." + host
		}
		w.hosts = append(w.hosts, host)
	}
	w.word = rand.NewZipf(r, 1.1, 8, uint64(len(w.words)-1))
	w.host = rand.NewZipf(r, 1.1, 8, uint64(len(w.hosts)-1))
	return w
}

func (w *web) id(n int) string {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"
	b := make([]byte, n)
	for i := range b {
		b[i] = letters[w.r.IntN(len(letters))]
	}
	return string(b)
}

func (w *web) some(n int, between string) string {
	words := make([]string, n)
	for i := range words {
		words[i] = w.words[w.word.Uint64()]
	}
	return strings.Join(words, between)
}

func (w *web) letters(from rune, of, n int) string {
	letters := make([]rune, n)
	for i := range letters {
		letters[i] = from + rune(w.r.IntN(of))
	}
	return string(letters)
}

func (w *web) page() (title, url string) {
	title = w.some(3+w.r.IntN(6), " ")
	host := w.hosts[w.host.Uint64()]
	switch n := w.r.IntN(100); {
	case n < 3:
		return title + " - YouTube", "https://www.youtube.com/watch?v=" + w.id(11)
	case n < 6:
		return w.letters('一', 3000, 12) + "東京", "https://" + host + "/" + w.id(8)
	case n < 9:
		return w.letters('а', 32, 8) + " " + w.letters('а', 32, 6), "https://" + host + "/%D0%BC%D0%B8%D1%80/" + w.some(2, "-")
	case n < 40:
		return title + " | " + host, "https://" + host + "/" + w.some(1, "") + "/" + w.some(5, "-")
	case n < 60:
		return title, "https://" + host + "/" + w.some(2, "/") + "?id=" + fmt.Sprint(w.r.IntN(10_000_000)) + "&utm_source=" + w.some(1, "")
	case n < 80:
		return title, "https://" + host + "/search?q=" + w.some(3, "+") + "&ei=" + w.id(16)
	default:
		return title, "https://" + host + "/" + w.some(1, "") + "/" + w.id(10) + "/edit#gid=0"
	}
}

func (w *web) tab(device string, n int) *commandv1.Tab {
	title, url := w.page()
	return &commandv1.Tab{
		TabId: fmt.Sprintf("%s_tb-%d", device, n), WindowId: fmt.Sprintf("%s_wb-%d", device, n/50), Index: uint32(n % 50), Url: url, Title: title,
	}
}

// world is a state with a million tabs, and the same texts one after the other.
type world struct {
	state    *browser.State
	devices  []string
	haystack []string
	perTab   float64 // bytes
	text     float64 // bytes, of titles and addresses
	took     time.Duration
}

var bigWorld = sync.OnceValue(func() *world {
	w := &world{}
	pages := newWeb(1)
	before := heap()
	var err error
	if w.state, err = browser.New(context.Background(), &shelf{}, time.Now, slog.New(slog.DiscardHandler)); err != nil {
		panic(err)
	}
	chars := 0
	for d := range benchDevices() {
		id := fmt.Sprintf("d%06d", d)
		w.devices = append(w.devices, id)
		snapshot := &devicev1.Snapshot{Sequence: 1, Last: true}
		for n := range tabsPerDevice {
			tab := pages.tab(id, n)
			snapshot.Tabs = append(snapshot.Tabs, tab)
			chars += len(tab.GetTitle()) + len(tab.GetUrl())
		}
		start := time.Now()
		w.state.Attach(id, "b", 1)
		if _, err := w.state.Snapshot(id, 1, snapshot); err != nil {
			panic(err)
		}
		w.took += time.Since(start)
	}
	tabs := float64(len(w.devices) * tabsPerDevice)
	w.perTab, w.text = float64(heap()-before)/tabs, float64(chars)/tabs
	for from := 0; ; from += 1000 {
		page, _ := w.state.Tabs(w.devices, "", browser.Page{Offset: from, Limit: 1000})
		for _, tab := range page {
			w.haystack = append(w.haystack, strings.ToLower(tab.GetTitle()+"\n"+tab.GetUrl()))
		}
		if len(page) == 0 {
			return w
		}
	}
})

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

var queries = []struct{ name, query string }{
	{"rare", "zexywement"},
	{"none", "nowhereatall"},
	{"youtube", "youtube"},
	{"com", "com"},
	{"https", "https"},
	{"scheme", "https://"},
	{"one", "o"},
	{"two", "in"},
	{"three", "ing"},
	{"mark", ".com"},
	{"host", "youtube.com"},
	{"spanning", "youtube.com/watch?v="},
	{"words", "youtube an com"},
	{"cjk", "東京"},
	{"cyrillic", "МИР"},
	{"digits", "2024"},
}

// timed runs f for each iteration and reports the median and the 99th percentile.
func timed(b *testing.B, f func()) {
	b.Helper()
	b.ReportAllocs()
	var took []time.Duration
	for b.Loop() {
		start := time.Now()
		f()
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
}

func BenchmarkSearch(b *testing.B) {
	w := bigWorld()
	page := browser.Page{Limit: 100}
	for _, q := range queries {
		b.Run(q.name, func(b *testing.B) {
			var total int
			timed(b, func() { _, total = w.state.Search(w.devices, q.query, page) })
			b.ReportMetric(float64(total), "hits")
		})
	}
	for _, q := range []string{"youtube", "com", "in"} {
		b.Run("device/"+q, func(b *testing.B) {
			timed(b, func() { w.state.Search(w.devices[500:501], q, page) })
		})
		b.Run("deep/"+q, func(b *testing.B) {
			timed(b, func() { w.state.Search(w.devices, q, browser.Page{Offset: 20_000, Limit: 100}) })
		})
	}
}

// BenchmarkScan is the floor: every text is looked through.
func BenchmarkScan(b *testing.B) {
	w := bigWorld()
	for _, q := range queries {
		b.Run(q.name, func(b *testing.B) {
			words := strings.Fields(strings.ToLower(q.query))
			timed(b, func() {
				total := 0
				for _, h := range w.haystack {
					if !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(h, w) }) {
						total++
					}
				}
			})
		})
	}
}

// BenchmarkSearchWhileChanging searches while 1,000 deltas a second come in, each with a new page in one tab.
func BenchmarkSearchWhileChanging(b *testing.B) {
	w := bigWorld()
	stop, done := make(chan struct{}), make(chan []time.Duration)
	go func() { done <- deltas(w, stop) }()
	for _, q := range []string{"zexywement", "youtube", "com", "o", "in", "youtube.com/watch?v="} {
		b.Run(q, func(b *testing.B) {
			timed(b, func() { w.state.Search(w.devices, q, browser.Page{Limit: 100}) })
		})
	}
	close(stop)
	took := <-done
	slices.Sort(took)
	b.Logf("%d deltas, p50 %v, p99 %v, most %v", len(took), took[len(took)/2], took[len(took)*99/100], took[len(took)-1])
}

func deltas(w *world, stop chan struct{}) []time.Duration {
	pages := newWeb(2)
	sequence := map[string]uint64{}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	var took []time.Duration
	for {
		select {
		case <-stop:
			for _, id := range w.devices { // the next run begins anew
				w.state.Attach(id, "b", 1)
			}
			return took
		case <-tick.C:
		}
		id := w.devices[pages.r.IntN(len(w.devices))]
		if sequence[id] == 0 {
			sequence[id] = 1
		}
		sequence[id]++
		start := time.Now()
		if resync, err := w.state.Delta(id, 1, &devicev1.Delta{
			Sequence: sequence[id], Tabs: []*commandv1.Tab{pages.tab(id, pages.r.IntN(tabsPerDevice))},
		}); err != nil || resync != "" {
			panic(fmt.Sprint(resync, err))
		}
		took = append(took, time.Since(start))
	}
}

// BenchmarkQueries are the other queries over all devices.
func BenchmarkQueries(b *testing.B) {
	w := bigWorld()
	page := browser.Page{Limit: 100}
	b.Run("tabs", func(b *testing.B) { timed(b, func() { w.state.Tabs(w.devices, "", page) }) })
	b.Run("windows", func(b *testing.B) { timed(b, func() { w.state.Windows(w.devices, page) }) })
	b.Run("domains", func(b *testing.B) {
		var total int
		timed(b, func() { _, total = w.state.Domains(w.devices, page) })
		b.ReportMetric(float64(total), "domains")
	})
	b.Run("match", func(b *testing.B) { timed(b, func() { w.state.Match(w.devices[7], "https://www.youtube.com/*") }) })
}

// BenchmarkMemory reports what a tab takes; its time means nothing.
func BenchmarkMemory(b *testing.B) {
	w := bigWorld()
	for b.Loop() {
		runtime.KeepAlive(w)
	}
	b.ReportMetric(w.perTab, "B/tab")
	b.ReportMetric(w.text, "text-B/tab")
	b.ReportMetric(float64(w.took.Microseconds())/float64(len(w.haystack)), "us/tab-taken-in")
	b.ReportMetric(float64(len(w.haystack)), "tabs")
}

// BenchmarkDelta takes in one changed tab of a device of 2,000.
func BenchmarkDelta(b *testing.B) {
	s, err := browser.New(b.Context(), &shelf{}, time.Now, slog.New(slog.DiscardHandler))
	if err != nil {
		b.Fatal(err)
	}
	pages := newWeb(3)
	snapshot := &devicev1.Snapshot{Sequence: 1, Last: true}
	for n := range 2000 {
		snapshot.Tabs = append(snapshot.Tabs, pages.tab("lap", n))
	}
	s.Attach("lap", "b", 1)
	if _, err := s.Snapshot("lap", 1, snapshot); err != nil {
		b.Fatal(err)
	}
	sequence := uint64(1)
	for _, kind := range []string{"page", "flag"} {
		b.Run(kind, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				tab := snapshot.GetTabs()[int(sequence)%2000]
				if kind == "page" {
					tab.Title, tab.Url = pages.page()
				}
				tab.Active = !tab.GetActive()
				sequence++
				if _, err := s.Delta("lap", 1, &devicev1.Delta{Sequence: sequence, Tabs: []*commandv1.Tab{tab}}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
