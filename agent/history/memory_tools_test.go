package history_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"throwbar.dev/throwbar/agent/history"
	"throwbar.dev/throwbar/agent/model"
)

// TestToolsWeighWhatTheyWeigh offers tools that change now and then, also in the memory that they were in, to an estimator that learns: with
// a memory they are estimated at what they are without.
func TestToolsWeighWhatTheyWeigh(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	tools := []model.Tool{{Name: "a", Description: "what a does"}, {Name: "b", Parameters: []byte(`{"type":"object"}`)}}
	var memory history.Memory
	estimator := &history.Estimator{}
	for step := range 500 {
		switch i := r.IntN(len(tools)); r.IntN(12) {
		case 0:
			tools[i].Description += " more"
		case 1:
			tools[1].Parameters[2] ^= 0x20 // a capital is a small letter, in place
		case 2:
			tools = append(tools, model.Tool{Name: fmt.Sprint("t", step)})
		case 3:
			tools = tools[:2]
		case 4:
			tools[0], tools[1].Name = model.Tool{Name: tools[1].Name}, tools[0].Name
		case 5:
			estimator.Observe(1000, int64(500+r.IntN(2000)))
		case 6:
			if got := memory.Tools(estimator, nil); got != 0 {
				t.Fatalf("no tools are estimated at %d", got)
			}
		}
		if got, want := memory.Tools(estimator, tools), estimator.Tools(tools); got != want {
			t.Fatalf("step %d: %d, want %d", step, got, want)
		}
	}
}
