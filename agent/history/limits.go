package history

// Defaults of Limits.
const (
	// DefaultContext is assumed of a model of which nothing is known.
	DefaultContext = 128_000
	// DefaultShare is the part of the context, in percent, that a request may take before the conversation is compacted.
	DefaultShare = 80
	// maxReserved bounds what is kept free for an answer of unknown length.
	maxReserved = 8_000
)

// Limits are how much a model can be shown.
type Limits struct {
	// Context is how many tokens the model reads and writes at most; DefaultContext if zero.
	Context int
	// Output is how many of them are kept free for the answer; a tenth, but not more than 8,000, if zero.
	Output int
	// Share is the part of the context, in percent, that a request may take; DefaultShare if zero.
	Share int
	// Fixed is what every request has beside the messages: the tools ([Estimator.Tools]).
	Fixed int
	// Refused is the estimate of a request that the provider refused as too long; zero if it refused none. Its word
	// counts for more than Context, which a person wrote down.
	Refused int
	// Images says whether the model can see.
	Images bool
	// Estimator counts tokens; one that has learned nothing if nil.
	Estimator *Estimator
}

func (l Limits) context() int {
	if l.Context <= 0 {
		return DefaultContext
	}
	return l.Context
}

// most is how many tokens a request may have, all of it.
func (l Limits) most() int {
	context, share, output := l.context(), l.Share, l.Output
	if share <= 0 || share > 100 {
		share = DefaultShare
	}
	if output <= 0 {
		output = min(context/10, maxReserved)
	}
	most := min(context*share/100, context-output)
	if l.Refused > 0 {
		most = min(most, l.Refused*3/4)
	}
	return most
}

// room is how many tokens the messages of a request may have. It is negative if the tools alone are too long.
func (l Limits) room() int { return l.most() - l.Fixed }

func (l Limits) messages(messages ...message) int { return l.Estimator.Messages(messages) }
