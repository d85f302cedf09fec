package history

import (
	"unicode/utf8"

	"throwbar.dev/throwbar/agent/model"
)

type message = model.Message

// What things cost beside their text, in tokens.
const (
	messageTokens = 4
	callTokens    = 8
	toolTokens    = 8
	imageTokens   = 1_500 // of a picture that fills the screen, at the dearest provider
)

// The least and the most that an estimate is multiplied by, whatever a provider reports. Some count only what they had not
// read before, others count what they add to the request.
const (
	minFactor = 0.7
	maxFactor = 4
)

// Estimator counts tokens by the bytes and scripts of a text, without the model's own vocabulary, and learns from what the
// provider counts. Before it has learned it is on the high side. The zero value is ready; a nil one never learns. It is not
// safe for concurrent use.
type Estimator struct {
	factor float64 // zero: one
}

// Observe tells what a request was estimated at, all of it, and what the provider counted. Counts that cannot be true are
// bounded, and zero is no count. An estimate rises at once and falls slowly: to be too low costs a request.
func (e *Estimator) Observe(estimate int, reported int64) {
	if e == nil || estimate <= 0 || reported <= 0 {
		return
	}
	was := e.scale()
	now := min(max(was*float64(reported)/float64(estimate), minFactor), maxFactor)
	if now < was {
		now = was - (was-now)/4
	}
	e.factor = now
}

func (e *Estimator) scale() float64 {
	if e == nil || e.factor == 0 {
		return 1
	}
	return e.factor
}

// Messages estimates the tokens of messages. What the model thought is not counted: it is seldom sent back.
func (e *Estimator) Messages(messages []model.Message) int {
	sum := 0
	for i := range messages {
		m := &messages[i]
		sum += messageTokens*unit + weight(m.Text) + weight(m.CallID) + len(m.Images)*imageTokens*unit
		for _, call := range m.Calls {
			sum += callTokens*unit + weight(call.ID) + weight(call.Name) + weight(call.Arguments) + weight(string(call.Extra))
		}
	}
	return e.tokens(sum)
}

// Tools estimates the tokens of the tools that go with a request.
func (e *Estimator) Tools(tools []model.Tool) int {
	sum := 0
	for _, t := range tools {
		sum += toolTokens*unit + weight(t.Name) + weight(t.Description) + weight(string(t.Parameters))
	}
	return e.tokens(sum)
}

// Text estimates the tokens of a text.
func (e *Estimator) Text(text string) int { return e.tokens(weight(text)) }

func (e *Estimator) tokens(weight int) int {
	return int(float64(weight)*e.scale()/unit + 0.999)
}

// unit is a token in the weights of characters.
const unit = 100

// The weights of characters by their kind, from counts of texts of each kind with two common vocabularies. A run of
// spaces is mostly one token. In ids and codes letters and digits take turns, and no vocabulary knows those.
const (
	weightLetter = 30
	weightLarge  = 45 // of capitals
	weightDigit  = 60
	weightTurn   = 80 // more, where a letter follows a digit, a digit a letter, a capital a small letter
	weightSpace  = 15
	weightMark   = 55  // of punctuation
	weightNear   = 55  // Latin with accents, Cyrillic
	weightMiddle = 90  // Greek, Hebrew, Arabic
	weightSouth  = 110 // from India to Georgia
	weightFar    = 130 // Chinese, Japanese, Korean
	weightOdd    = 145
	weightRest   = 300 // pictures, rare signs: mostly a token a byte
)

// weight is the estimated tokens of a text, times unit.
func weight(s string) int {
	sum := 0
	last := space
	for i := 0; i < len(s); {
		b := s[i]
		if b < utf8.RuneSelf {
			k := kindOf(b)
			sum += k.weight()
			if k != last && k.turns(last) {
				sum += weightTurn
			}
			last = k
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		sum += runeWeight(r)
		last = space
		i += size
	}
	return sum
}

func runeWeight(r rune) int {
	switch {
	case r >= 0x370 && r < 0x400, r >= 0x530 && r < 0x900:
		return weightMiddle
	case r < 0x530:
		return weightNear
	case r < 0x1200:
		return weightSouth
	case r >= 0x2e80 && r < 0xfb00:
		return weightFar
	case r < 0x10000:
		return weightOdd
	default:
		return weightRest
	}
}

// kind is the kind of an ASCII character.
type kind uint8

const (
	space kind = iota
	small
	capital
	digit
	mark
)

func kindOf(b byte) kind {
	switch {
	case b >= 'a' && b <= 'z':
		return small
	case b >= 'A' && b <= 'Z':
		return capital
	case b >= '0' && b <= '9':
		return digit
	case b == ' ' || b == '\t':
		return space
	default:
		return mark
	}
}

func (k kind) weight() int {
	switch k {
	case small:
		return weightLetter
	case capital:
		return weightLarge
	case digit:
		return weightDigit
	case space:
		return weightSpace
	default:
		return weightMark
	}
}

// turns reports whether a character of another kind after one of kind last is as in a code.
func (k kind) turns(last kind) bool {
	letter := last == small || last == capital
	return k == digit && letter || last == digit && (k == small || k == capital) || last == small && k == capital
}
