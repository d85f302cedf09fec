package history_test

import (
	"strings"
	"testing"

	"throwbar.dev/throwbar/agent/history"
	"throwbar.dev/throwbar/agent/model"
)

// TestEstimatesAreOnTheHighSide compares with what two vocabularies make of some texts: never less than the newer one, not
// much less than the older one, and not so much more that half of a context would be wasted on common texts.
func TestEstimatesAreOnTheHighSide(t *testing.T) {
	t.Parallel()
	for _, s := range samples() {
		got := new(history.Estimator).Text(strings.Repeat(s.text, 10))
		t.Logf("%5d estimated, %5d and %5d counted: %.30q", got, s.o200k, s.cl100k, s.text)
		if got < s.o200k || got < s.cl100k*85/100 || got > s.o200k*9/2 {
			t.Errorf("%d tokens estimated where %d and %d are counted: %q", got, s.o200k, s.cl100k, s.text)
		}
	}
}

func TestAnEstimatorLearns(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("some words of a text ", 100)
	e := &history.Estimator{}
	first := e.Text(text)
	e.Observe(first, int64(first*2))
	if got := e.Text(text); got < first*19/10 {
		t.Errorf("%d after twice %d was counted: it has to rise at once", got, first)
	}
	for range 60 {
		e.Observe(e.Text(text), int64(first))
	}
	if got := e.Text(text); got < first || got > first*11/10 {
		t.Errorf("%d, but %d is counted again and again", got, first)
	}
	for range 100 {
		e.Observe(e.Text(text), 1) // only what was not in the cache
	}
	if got := e.Text(text); got < first*65/100 {
		t.Errorf("%d: a provider may not talk an estimate of %d down to nothing", got, first)
	}
	before := e.Text(text)
	for range 10 {
		e.Observe(before, 1<<60)
	}
	if got := e.Text(text); got > first*5 {
		t.Errorf("%d: nor up without bound", got)
	}
	before = e.Text(text)
	e.Observe(0, 5)
	e.Observe(5, 0)
	e.Observe(-1, -1)
	if e.Text(text) != before {
		t.Error("what is no count changed the estimate")
	}
	var none *history.Estimator
	none.Observe(1, 2)
	if none.Text(text) != first {
		t.Error("one that is nil counts differently")
	}
}

func TestEverythingThatIsSentCounts(t *testing.T) {
	t.Parallel()
	var e history.Estimator
	empty := e.Messages([]model.Message{{Role: model.RoleUser}})
	long := strings.Repeat("word ", 200)
	for name, m := range map[string]model.Message{
		"text":      {Text: long},
		"name":      {Calls: []model.Call{{Name: long}}},
		"arguments": {Calls: []model.Call{{Arguments: long}}},
		"extra":     {Calls: []model.Call{{Extra: []byte(long)}}},
		"image":     {Images: []string{"data:image/png;base64,aGk="}},
	} {
		if got := e.Messages([]model.Message{m}); got < empty+200 {
			t.Errorf("%s: %d tokens", name, got)
		}
	}
	tools := []model.Tool{{Name: long, Description: long, Parameters: []byte(long)}}
	if got := e.Tools(tools); got < 3*e.Text(long) {
		t.Errorf("tools: %d tokens", got)
	}
}
