package agent_test

import (
	"encoding/json"
	"math/rand/v2"
	"testing"
	"time"

	"throwbar.dev/throwbar/agent/history"
	"throwbar.dev/throwbar/agent/history/historytest"
	"throwbar.dev/throwbar/agent/model"
)

// historyRounds is how often a step and its floor take turns.
const historyRounds = 11

// BenchmarkHistory prints what it takes to make a history of a thousand messages ready for a model, each step beside what the
// standard library takes to encode it, which a request needs in any case.
func BenchmarkHistory(b *testing.B) {
	talk := historytest.Talk{Random: rand.New(rand.NewPCG(1, 2)), Plain: true, Long: 800}
	messages := talk.Conversation(1000)
	for name, step := range map[string]func(){
		"fit":    func() { history.Fit(messages, history.Limits{Context: 10_000_000}) },
		"cut":    func() { history.Fit(messages, history.Limits{Context: 20_000}) },
		"repair": func() { model.Repair(messages) },
		"lint":   func() { _ = model.Lint(messages) },
	} {
		b.Run(name, func(b *testing.B) {
			var ours, floor sample
			size := 0
			for range b.N {
				for range historyRounds {
					began := time.Now()
					step()
					ours = append(ours, time.Since(began))
					began = time.Now()
					raw, err := json.Marshal(messages)
					floor = append(floor, time.Since(began))
					check(b, err)
					size = len(raw)
				}
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(ours.at(50), "µs")
			b.ReportMetric(ours.at(50)/floor.at(50), "json-ratio")
			b.ReportMetric(float64(size)/1000, "KB")
		})
	}
}
