package apptest_test

import (
	"net/http"
	"testing"

	"throwbar.dev/throwbar/app/apptest"
)

// An answer without a body is one also where the exchange is over before the client looks.
func TestMemoryAnswersWithoutABody(t *testing.T) {
	t.Parallel()
	var network apptest.Memory
	network.Up(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
	for range 2000 {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://memory.test/", nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := network.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if _ = res.Body.Close(); res.StatusCode != http.StatusNoContent {
			t.Fatal(res.Status)
		}
	}
}
