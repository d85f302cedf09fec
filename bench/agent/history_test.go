package agent_test

import (
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"testing"
	"time"

	"throwbar.dev/throwbar/agent/history"
	"throwbar.dev/throwbar/agent/history/historytest"
	"throwbar.dev/throwbar/agent/model"
)

// historyRounds is how often a step and its floor take turns.
const historyRounds = 11

// BenchmarkHistory prints what it takes to make a history of a thousand messages ready for a model and to send it, each step
// beside what the standard library takes to encode it. What is done again is done with the memory of the last time.
func BenchmarkHistory(b *testing.B) {
	talk := historytest.Talk{Random: rand.New(rand.NewPCG(1, 2)), Plain: true, Long: 800}
	messages := append(talk.Conversation(1000), model.Message{Role: model.RoleUser, Text: "Go on."})
	client, err := model.New(model.Config{BaseURL: "http://model.test/v1", Model: "instant", HTTPClient: &http.Client{Transport: &instant{}}})
	check(b, err)
	send := func(known *model.Repairer) {
		_, err := client.Complete(b.Context(), model.Request{Messages: messages, Known: known}, model.Sink{})
		check(b, err)
	}
	var memory history.Memory
	for name, step := range map[string]func(){
		"fit":        func() { history.Fit(messages, history.Limits{Context: 10_000_000}) },
		"fit-again":  func() { memory.Fit(messages, history.Limits{Context: 10_000_000}) },
		"cut":        func() { history.Fit(messages, history.Limits{Context: 20_000}) },
		"repair":     func() { model.Repair(messages) },
		"lint":       func() { _ = model.Lint(messages) },
		"send":       func() { send(nil) },
		"send-again": func() { send(&memory.Sent) },
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
