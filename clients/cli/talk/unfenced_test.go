package talk_test

import (
	"testing"

	"throwbar.dev/throwbar/clients/cli/talk"
)

func TestUnfencedShowsWhatAToolAnswered(t *testing.T) {
	t.Parallel()
	for content, want := range map[string]string{
		`{"ok":true,"mark":"a1","data":{"closedCount":4},"end":"a1"}`:    `{"closedCount":4}`,
		`{"ok":false,"mark":"a1","error":{"code":"OFFLINE"},"end":"a1"}`: `{"code":"OFFLINE"}`,
		`{"mark":"a1","data":{"x":1},"end":"b2"}`:                        `{"mark":"a1","data":{"x":1},"end":"b2"}`,
		`{"closedCount":4}`: `{"closedCount":4}`,
		`not JSON`:          `not JSON`,
	} {
		if got := talk.Unfenced(content); got != want {
			t.Errorf("unfenced(%s) = %s", content, got)
		}
	}
}
