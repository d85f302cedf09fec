package rpc

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"
)

// recorder notes the write deadlines that are set on a response.
type recorder struct {
	http.ResponseWriter
	set []time.Time
}

func (r *recorder) SetWriteDeadline(t time.Time) error {
	r.set = append(r.set, t)
	return nil
}

func TestTheWriteDeadlineMovesNowAndThenAndIsTakenAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &recorder{ResponseWriter: httptest.NewRecorder()}
		start := time.Now()
		handler := withDeadlines(sendWithin, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			for range 41 { // a frame each second
				if err := extendWrite(r.Context()); err != nil {
					t.Error(err)
				}
				<-time.After(time.Second)
			}
		}))
		handler.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", nil))
		want := []time.Time{start.Add(60 * time.Second), start.Add(75 * time.Second), start.Add(90 * time.Second), {}}
		if len(w.set) != len(want) {
			t.Fatalf("deadlines %v", w.set)
		}
		for i := range want {
			if !w.set[i].Equal(want[i]) {
				t.Errorf("deadline %d is %v, want %v", i, w.set[i], want[i])
			}
		}
	})
}

func TestARequestWithoutAStreamSetsNoDeadline(t *testing.T) {
	t.Parallel()
	w := &recorder{ResponseWriter: httptest.NewRecorder()}
	withDeadlines(sendWithin, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", nil))
	if len(w.set) != 0 {
		t.Errorf("deadlines %v", w.set)
	}
}
