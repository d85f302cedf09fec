package agent_test

import (
	"encoding/json"
	"testing"
	"time"

	"throwbar.dev/throwbar/agent/tool"
	"throwbar.dev/throwbar/agent/tool/schema"
	"throwbar.dev/throwbar/agent/tool/tooltest"
	"throwbar.dev/throwbar/catalog"
)

// manyTools is how many tools the schemas are printed of.
const manyTools = 1000

// schemaRounds is how often print and floor take turns.
const schemaRounds = 7

// BenchmarkSchemas prints what it takes to print the schemas of a thousand tools for each profile, beside the standard
// library's encoding of documents of the same content; and to offer them again, when all of them are printed.
func BenchmarkSchemas(b *testing.B) {
	c, err := catalog.New(tooltest.Varied(b, manyTools))
	check(b, err)
	for _, profile := range []schema.Profile{schema.ProfilePortable, schema.ProfileStrict, schema.ProfileGemini, schema.ProfileLocal} {
		b.Run(string(profile), func(b *testing.B) {
			var printing, floor, offering sample
			var size, tools int
			for range b.N {
				for range schemaRounds {
					set, err := tool.NewSet(c)
					check(b, err)
					printed := make([][]byte, 0, len(set.Tools()))
					began := time.Now()
					for _, t := range set.Tools() {
						printed = append(printed, schema.Print(profile, t.Schema))
					}
					printing = append(printing, time.Since(began))
					tools, size = len(printed), 0
					floor = append(floor, encode(b, printed, &size))
					view := set.View(tool.Access{})
					offer(b, view, profile)
					began = time.Now()
					offer(b, view, profile)
					offering = append(offering, time.Since(began))
				}
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(printing.at(50)*1000/float64(tools), "ns/tool")
			b.ReportMetric(printing.at(50)/1000, "ms-all")
			b.ReportMetric(float64(size)/float64(tools), "bytes/tool")
			b.ReportMetric(printing.at(50)/floor.at(50), "json-ratio")
			b.ReportMetric(offering.at(50)*1000/float64(tools), "ns/tool-again")
		})
	}
}

func offer(b *testing.B, view *tool.View, profile schema.Profile) {
	b.Helper()
	if tools, _ := view.Offered(profile, nil, 0); len(tools) == 0 {
		b.Fatal("no tools are offered")
	}
}

// encode returns what the standard library takes to write the same documents.
func encode(b *testing.B, printed [][]byte, size *int) time.Duration {
	b.Helper()
	documents := make([]any, len(printed))
	for i, raw := range printed {
		check(b, json.Unmarshal(raw, &documents[i]))
		*size += len(raw)
	}
	began := time.Now()
	for _, document := range documents {
		if _, err := json.Marshal(document); err != nil {
			b.Fatal(err)
		}
	}
	return time.Since(began)
}
