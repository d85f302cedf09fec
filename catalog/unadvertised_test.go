package catalog_test

import (
	"strings"
	"testing"

	"throwbar.dev/throwbar/catalog"
)

const untold = `(throwbar.option.v1.unadvertised) = true`

// TestWhatHasToBeSetIsAdvertised: nobody could call a tool that hides what it needs, however deep that is.
func TestWhatHasToBeSetIsAdvertised(t *testing.T) {
	t.Parallel()
	for fields, refused := range map[string]bool{
		`string name = 1 [` + untold + `, (buf.validate.field).string.min_len = 1];`:                                           true,
		`optional bool on = 1 [` + untold + `, (buf.validate.field).required = true];`:                                         true,
		`message Part { string name = 1 [` + untold + `, (buf.validate.field).string.min_len = 1]; } repeated Part parts = 1;`: true,
		`message Part { uint32 n = 1 [` + untold + `, (buf.validate.field).uint32.gt = 0]; } map<string, Part> parts = 1;`:     true,
		`message Tree { Tree left = 1; string name = 2 [` + untold + `]; } Tree root = 1;`:                                     false,
		`optional string name = 1 [` + untold + `, (buf.validate.field).string.min_len = 1];`:                                  false,
		`message Part { string name = 1 [(buf.validate.field).string.min_len = 1]; } Part part = 1 [` + untold + `];`:          false,
	} {
		_, err := asking(t, fields)
		if got := err != nil && strings.Contains(err.Error(), "what has to be set cannot be unadvertised"); got != refused || err != nil && !refused {
			t.Errorf("%s: %v", fields, err)
		}
	}
}

// TestNoQueryTellsOfItsPageSize: answers are cut for the model as they have to be, so no tool spends words on it.
func TestNoQueryTellsOfItsPageSize(t *testing.T) {
	t.Parallel()
	found := 0
	for _, e := range load(t).Queries() {
		if fd := e.In.Fields().ByName("page_size"); fd != nil {
			found++
			if !catalog.Unadvertised(fd) {
				t.Errorf("%s is advertised", fd.FullName())
			}
		}
	}
	if found < 7 {
		t.Errorf("only %d queries have pages", found)
	}
}
