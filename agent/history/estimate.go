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
		sum += weigh(&messages[i])
	}
	return e.tokens(sum)
}

// weigh is the estimated tokens of a message, times unit.
func weigh(m *message) int {
	sum := messageTokens*unit + weight(m.Text) + weight(m.CallID) + len(m.Images)*imageTokens*unit
	for _, call := range m.Calls {
		sum += callTokens*unit + weight(call.ID) + weight(call.Name) + weight(call.Arguments) + weight(string(call.Extra))
	}
	return sum
}

// Tools estimates the tokens of the tools that go with a request.
func (e *Estimator) Tools(tools []model.Tool) int { return e.tokens(weighTools(tools)) }

// weighTools is the estimated tokens of tools, times unit.
func weighTools(tools []model.Tool) int {
	sum := 0
	for _, t := range tools {
		sum += toolTokens*unit + weight(t.Name) + weight(t.Description) + weight(string(t.Parameters))
	}
	return sum
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
//
// Of ASCII characters a space has 15, a small letter 30, a capital 45, a digit 60, any other 55, and 80 more where a letter
// follows a digit, a digit a letter, or a capital a small letter ([pairs]).
const (
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
	last := byte(space)
	for i := 0; i < len(s); {
		if b := s[i]; b < utf8.RuneSelf {
			k := kinds[b] & 7
			sum += int(pairs[last<<3|k])
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

// The kinds of ASCII characters.
const (
	space = iota
	small
	capital
	digit
	mark
)

// kinds has the kind of each ASCII character, as a digit.
const kinds = "4444444440444444" + "4444444444444444" + // control characters; the tab is a space
	"0444444444444444" + "3333333333444444" + // punctuation, digits
	"4222222222222222" + "2222222222244444" +
	"4111111111111111" + "1111111111144444"

// pairs has the weight of a character by the kind of the one before it, eight of each, and its own.
const pairs = "" +
	"\x0f\x1e\x2d\x3c\x37\x00\x00\x00" + // after a space
	"\x0f\x1e\x7d\x8c\x37\x00\x00\x00" + // after a small letter: a capital and a digit turn
	"\x0f\x1e\x2d\x8c\x37\x00\x00\x00" + // after a capital: a digit turns
	"\x0f\x6e\x7d\x3c\x37\x00\x00\x00" + // after a digit: letters turn
	"\x0f\x1e\x2d\x3c\x37\x00\x00\x00" // after a mark
