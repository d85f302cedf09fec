package simulation

import (
	"bufio"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

var (
	oneSeed   = flag.Int64("seed", -1, "run this seed only")
	seedCount = flag.Int("seeds", 200, "how many seeds to run")
	firstSeed = flag.Int64("first", 1, "the first of them")
	traces    = flag.String("traces", "", "folder for the traces of failing seeds; the test's own if empty")
	times     = flag.Int("times", 1, "how often to run -seed")
)

func TestMain(m *testing.M) {
	code := m.Run()
	if fixtures.made != nil {
		fixtures.made.remove()
	}
	os.Exit(code)
}

// once runs one seed and says what it broke.
func once(t *testing.T, seed uint64, b *bug) (broken, trace []string) {
	t.Helper()
	return carryOut(t, newPlan(seed), b)
}

func carryOut(t *testing.T, p *plan, b *bug) (broken, trace []string) {
	t.Helper()
	f := loadFixture(t)
	folder, err := os.MkdirTemp(filepath.Dir(f.dir), "seed-*") //nolint:usetesting // beside the fixture, in memory
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(folder)
	return simulate(t, f, folder, p, b)
}

// report fails the test with what a seed broke, and keeps its trace.
func report(t *testing.T, seed uint64, broken, trace []string) {
	t.Helper()
	if len(broken) == 0 {
		return
	}
	folder := *traces
	if folder == "" {
		folder = t.ArtifactDir()
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Error(err)
	}
	path := filepath.Join(folder, fmt.Sprintf("seed-%d.txt", seed))
	rerun := fmt.Sprintf("go test -tags sqlite_fts5 ./simulation -run TestSeeds -seed=%d -times=50", seed)
	text := rerun + "\n\n" + strings.Join(broken, "\n") + "\n\n" + strings.Join(trace, "\n") + "\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Error(err)
	}
	t.Errorf("seed %d: %s\nagain: %s\ntrace: %s", seed, strings.Join(broken, "\n"), rerun, path)
}

// many runs seeds on all cores until one of them says stop.
func many(t *testing.T, seeds []uint64, b *bug, each func(seed uint64, broken, trace []string) bool) {
	t.Helper()
	loadFixture(t)
	var next atomic.Int64
	var stop atomic.Bool
	var mu sync.Mutex
	t.Run("group", func(t *testing.T) {
		for range runtime.GOMAXPROCS(0) {
			t.Run("worker", func(t *testing.T) {
				t.Parallel()
				for !stop.Load() {
					i := int(next.Add(1)) - 1
					if i >= len(seeds) {
						return
					}
					broken, trace := once(t, seeds[i], b)
					mu.Lock()
					if !each(seeds[i], broken, trace) {
						stop.Store(true)
					}
					mu.Unlock()
				}
			})
		}
	})
}

// TestSeeds runs seeds and checks that each keeps all promises.
func TestSeeds(t *testing.T) {
	t.Parallel()
	if *oneSeed >= 0 {
		for range *times {
			broken, trace := once(t, uint64(*oneSeed), nil)
			report(t, uint64(*oneSeed), broken, trace)
			if t.Failed() {
				return
			}
			if testing.Verbose() && *times == 1 {
				t.Log(strings.Join(trace, "\n"))
			}
		}
		return
	}
	var seeds []uint64
	for i := range *seedCount {
		seeds = append(seeds, uint64(*firstSeed)+uint64(i))
	}
	began, done, failed := time.Now(), 0, 0
	many(t, seeds, nil, func(seed uint64, broken, trace []string) bool {
		done++
		report(t, seed, broken, trace)
		if len(broken) > 0 {
			failed++
		}
		if done%500 == 0 {
			fmt.Fprintf(os.Stderr, "%d of %d seeds, %d failed, %.1f a second\n",
				done, len(seeds), failed, float64(done)/time.Since(began).Seconds())
		}
		return failed < 20
	})
	t.Logf("%d seeds, %d lives, %.1f seeds a second", done, done*requests, float64(done)/time.Since(began).Seconds())
}

// TestKeptSeeds runs the seeds that once failed, each several times: a seed fixes what goes wrong, not which goroutine
// is first.
func TestKeptSeeds(t *testing.T) {
	t.Parallel()
	if *oneSeed >= 0 {
		t.Skip("one seed was asked for")
	}
	var seeds []uint64
	for _, seed := range keptSeeds(t) {
		for range *keptTimes {
			seeds = append(seeds, seed)
		}
	}
	many(t, seeds, nil, func(seed uint64, broken, trace []string) bool {
		report(t, seed, broken, trace)
		return len(broken) == 0
	})
}

var keptTimes = flag.Int("kept", 50, "how often to run each seed that once failed")

// keptSeeds reads the list: a number a line, with what it found.
func keptSeeds(t *testing.T) []uint64 {
	t.Helper()
	file, err := os.Open("testdata/seeds")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var seeds []uint64
	for lines := bufio.NewScanner(file); lines.Scan(); {
		text, _, _ := strings.Cut(lines.Text(), "#")
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		seeds = append(seeds, seed)
	}
	return seeds
}
