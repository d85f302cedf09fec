package store

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"throwbar.dev/throwbar/store/db"
	"throwbar.dev/throwbar/store/storetest"
)

// tally is what ops share: the ids that they hand in, which it writes at the end.
type tally struct {
	ids []string
	bad string // whose presence fails the end
}

func (c *tally) End(ctx context.Context, q *db.Queries) error {
	for _, id := range c.ids {
		if id == c.bad {
			panic("it is bad")
		}
		if err := q.InsertCommand(ctx, command(id, 1)); err != nil {
			return err
		}
	}
	return nil
}

// TestWhatOpsShareIsWrittenOnce: ops of a group share it; when one of them fails, or the end does, the others begin anew
// without what it had handed in.
func TestWhatOpsShareIsWrittenOnce(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, engine storetest.Engine) {
		s := opened(t, engine, Config{Delay: time.Hour})
		failed := errors.New("op")
		var ends []*tally // by the writer only
		answers := make(chan error, 5)
		for n := range 5 {
			s.WriteLater(func(ctx context.Context, _ *db.Queries) error {
				shared, err := Share(ctx, "key", func() Ending {
					ends = append(ends, &tally{bad: "c3"})
					return ends[len(ends)-1]
				})
				if err != nil {
					return err
				}
				c, ok := shared.(*tally)
				if !ok {
					return fmt.Errorf("shared is %T", shared)
				}
				c.ids = append(c.ids, fmt.Sprint("c", n))
				if n == 1 {
					return failed
				}
				return nil
			}, func(err error) { answers <- err })
		}
		run(t, s)()
		for n := range 5 {
			if err := <-answers; (err != nil) != (n == 1 || n == 3) {
				t.Errorf("op %d: %v", n, err)
			}
		}
		if len(ends) != 6 || len(ends[0].ids) != 2 || len(ends[1].ids) != 1 {
			t.Errorf("%d were made, want one for the group and one for each op alone", len(ends))
		}
		rows, err := s.Read().ListUnfinishedCommands(t.Context(), db.ListUnfinishedCommandsParams{PageSize: 10})
		if err != nil || len(rows) != 3 {
			t.Errorf("%d rows, %v", len(rows), err)
		}
	})
	if _, err := Share(t.Context(), "key", func() Ending { return nil }); err == nil {
		t.Error("shared outside of an op")
	}
}
