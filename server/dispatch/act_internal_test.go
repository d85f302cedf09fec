package dispatch

import (
	"fmt"
	"testing"
	"time"

	"throwbar.dev/throwbar/catalog"
	"throwbar.dev/throwbar/gen"
)

func TestAnActCountsWhatCanDestroy(t *testing.T) {
	t.Parallel()
	c, err := catalog.New(gen.Descriptors)
	if err != nil {
		t.Fatal(err)
	}
	closing, _ := c.Lookup("closeTabs")
	opening, _ := c.Lookup("openTab")
	var a acts
	now := time.UnixMilli(1_700_000_000_000)
	a.note("turn", closing, 7, now)
	a.note("turn", closing, 0, now) // one whose targets nobody could count
	a.note("turn", opening, 5, now)
	a.note("", closing, 9, now)
	for _, row := range []struct {
		act   string
		entry *catalog.Entry
		want  int
	}{{"turn", closing, 8}, {"turn", opening, 0}, {"other", closing, 0}, {"", closing, 0}} {
		if got := a.before(row.act, row.entry); got != row.want {
			t.Errorf("%q, %s: %d, want %d", row.act, row.entry.Name, got, row.want)
		}
	}
	// Old ones are forgotten when there are many, and no sooner.
	for i := range maxActs {
		a.note(fmt.Sprint(i), closing, 1, now.Add(actLasts))
	}
	if got := a.before("turn", closing); got != 8 {
		t.Errorf("forgotten too soon: %d", got)
	}
	a.note("late", closing, 1, now.Add(actLasts+time.Second))
	if got := a.before("turn", closing); got != 0 || a.before("5", closing) != 1 {
		t.Errorf("not forgotten: %d of %d", got, len(a.done))
	}
}
