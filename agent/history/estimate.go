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

// The weights of characters by their kind, from counts of texts of each kind with two common vocabularies; a run of
// spaces is mostly one token, and names and identifiers are dearer than words.
const (
	weightLetter = 30
	weightDigit  = 60
	weightSpace  = 15
	weightMark   = 55  // of punctuation
	weightNear   = 55  // Latin with accents, Greek, Cyrillic
	weightMiddle = 90  // Hebrew to Georgian: most alphabets of the south and east
	weightFar    = 130 // Chinese, Japanese, Korean
	weightRest   = 300 // pictures, rare signs: mostly a token a byte
)

// weight is the estimated tokens of a text, times unit.
func weight(s string) int {
	sum := 0
	for i := 0; i < len(s); {
		b := s[i]
		if b < utf8.RuneSelf {
			sum += asciiWeight(b)
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		i += size
		switch {
		case r < 0x530:
			sum += weightNear
		case r < 0x1200:
			sum += weightMiddle
		case r >= 0x2e80 && r < 0xfb00:
			sum += weightFar
		case r < 0x10000:
			sum += weightMiddle + weightNear
		default:
			sum += weightRest
		}
	}
	return sum
}

func asciiWeight(b byte) int {
	switch {
	case b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z':
		return weightLetter
	case b >= '0' && b <= '9':
		return weightDigit
	case b == ' ' || b == '\t':
		return weightSpace
	default:
		return weightMark
	}
}
