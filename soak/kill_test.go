package soak_test

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"
)

const (
	shortKills = 10
	longKills  = 200
)

// TestKill kills processes at random moments under load, and holds what is left against what anybody was told:
// nothing acknowledged is lost, nothing runs twice, watchers miss and repeat nothing, every command ends.
func TestKill(t *testing.T) {
	t.Parallel()
	victims := map[string]func(*lane){
		"server":   (*lane).killServer,
		"device":   (*lane).killDevice,
		"database": func(l *lane) { l.engine.crash(l.t) },
	}
	for _, engine := range engines() {
		for victim, kill := range victims {
			if victim == "database" && !engine.process {
				continue
			}
			t.Run(engine.name+"-"+victim, func(t *testing.T) {
				t.Parallel()
				killLoop(t, engine, kill)
			})
		}
	}
}

// killLoop kills again and again.
func killLoop(t *testing.T, engine kind, kill func(*lane)) {
	t.Helper()
	seed := seed(t)
	t.Logf("seed %d", seed)
	l := newLane(t, seed, engine.make)
	l.load()
	kills := shortKills
	if long() {
		kills = longKills
	}
	start := time.Now()
	for n := range kills {
		l.working()
		delay := l.moment(400 * time.Millisecond)
		wait(t, delay)
		kill(l)
		t.Logf("seed %d: kill %d of %d, %s after work had begun; %d successes told, %s in all", seed, n+1, kills, delay,
			l.told.successes.Load(), time.Since(start).Round(time.Second))
	}
	l.working()
	l.quiet(t.Context())
	l.judge()
}

// seed is where the moments of the kills come from. A seed can be given to draw the same again; what meets what is
// up to the machine.
func seed(t *testing.T) uint64 {
	t.Helper()
	given := os.Getenv("THROWBAR_SOAK_SEED")
	if given == "" {
		return rand.Uint64N(1 << 32)
	}
	n, err := strconv.ParseUint(given, 10, 64)
	check(t, err)
	return n
}
