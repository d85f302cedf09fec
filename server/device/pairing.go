package device

import (
	"crypto/subtle"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"throwbar.dev/throwbar/ident"
	"throwbar.dev/throwbar/server/fault"
)

const (
	// CodeLife is how long a pairing code works.
	CodeLife = 5 * time.Minute

	codeLength = 10 // base32 characters of five bits: 50 random bits
	maxMisses  = 5
	maxCodes   = 16
	guessEvery = 100 * time.Millisecond
	guessBurst = 20
)

// Code is a pairing code as its maker sees it.
type Code struct {
	Code      string
	CheckWord string
	ExpiresAt time.Time
	workspace string
	maker     string // id of the token that it was made with
	misses    int
}

// Pairing has the codes that wait for a device. They live in memory only: a restart burns them.
type Pairing struct {
	random io.Reader
	now    func() time.Time

	mu      sync.Mutex
	codes   []Code    // guarded by mu
	tokens  float64   // guarded by mu; guesses that may be made at once
	guessed time.Time // guarded by mu
}

// NewPairing makes an empty one.
func NewPairing(random io.Reader, now func() time.Time) *Pairing {
	return &Pairing{random: random, now: now, tokens: guessBurst}
}

// Make makes a code for one device of a workspace. The maker is the id of a token.
func (p *Pairing) Make(workspace, maker string) (Code, error) {
	code, err := ident.Token(p.random, codeLength)
	if err != nil {
		return Code{}, err
	}
	word, err := checkWord(p.random)
	if err != nil {
		return Code{}, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drop()
	if len(p.codes) >= maxCodes {
		return Code{}, fault.New(fault.Busy, "%d pairing codes are waiting: use one or wait until they expire", maxCodes).Retry()
	}
	c := Code{Code: code, CheckWord: word, ExpiresAt: p.now().Add(CodeLife), workspace: workspace, maker: maker}
	p.codes = append(p.codes, c)
	c.Code = strings.ToUpper(code[:5] + "-" + code[5:])
	return c, nil
}

// Redeem uses a code up and says what it was made for. Each wrong guess counts against every code that waits; five burn
// it. Guesses are throttled over all callers, wherever they come from.
func (p *Pairing) Redeem(guess string) (Code, error) {
	guess = normalize(guess)
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	p.tokens = min(guessBurst, p.tokens+float64(now.Sub(p.guessed))/float64(guessEvery))
	p.guessed = now
	if p.tokens < 1 {
		return Code{}, fault.New(fault.Busy, "too many pairing attempts: wait a moment").Retry()
	}
	p.tokens--
	p.drop()
	found := -1
	for i := range p.codes {
		if subtle.ConstantTimeCompare([]byte(p.codes[i].Code), []byte(guess)) == 1 {
			found = i
		}
	}
	if found >= 0 {
		c := p.codes[found]
		p.codes = append(p.codes[:found], p.codes[found+1:]...)
		return c, nil
	}
	for i := range p.codes {
		p.codes[i].misses++
	}
	p.drop()
	return Code{}, fault.New(fault.Forbidden,
		"this pairing code is wrong, used, or older than five minutes: make a new one with `throwbar pair`")
}

// drop removes codes that are too old or were missed too often.
func (p *Pairing) drop() {
	now := p.now()
	kept := p.codes[:0]
	for _, c := range p.codes {
		if now.Before(c.ExpiresAt) && c.misses < maxMisses {
			kept = append(kept, c)
		}
	}
	p.codes = kept
}

// normalize makes a typed code comparable: case, spaces and dashes do not matter.
func normalize(guess string) string {
	return strings.Map(func(r rune) rune {
		if r == '-' || r == ' ' {
			return -1
		}
		return r
	}, strings.ToLower(strings.TrimSpace(guess)))
}

// checkWord is a short word that both sides show, so that a person sees that the right device has paired.
func checkWord(random io.Reader) (string, error) {
	words := strings.Fields(`amber anchor apple arrow barley basket beacon birch bottle bridge candle canyon cedar
		cherry cliff clover comet copper coral cotton crane dahlia delta ember falcon fern flint forest garnet ginger
		glacier granite harbor hazel heron indigo ivory jasper juniper kettle lantern lemon lilac linen maple marble
		meadow mint mosaic nectar nutmeg oak olive onyx opal orchid otter pebble pepper pine plum poppy quartz quill
		raven reed ribbon river robin saddle saffron sage silver sparrow spruce summit thistle timber topaz tulip
		umber valley velvet violet walnut willow wren yarrow zephyr`)
	raw := make([]byte, 2)
	if _, err := io.ReadFull(random, raw); err != nil {
		return "", fmt.Errorf("read randomness: %w", err)
	}
	return words[(int(raw[0])<<8|int(raw[1]))%len(words)], nil
}
