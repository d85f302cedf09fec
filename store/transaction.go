package store

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"throwbar.dev/throwbar/store/db"
)

// Ending is what the ops of one transaction share and write together after the last of them.
type Ending interface {
	// End runs in the transaction, before it is committed. Its error is that of each op, and rolls all of them back.
	End(ctx context.Context, q *db.Queries) error
}

// Share gives an op what the ops of its transaction share under a key; the first that asks makes it. It is gone with the
// transaction: a rollback, or another run of the ops, begins with nothing. The context has to be the op's.
func Share(ctx context.Context, key any, begin func() Ending) (Ending, error) {
	tx, ok := ctx.Value(insideOp{}).(*transaction)
	if !ok {
		return nil, errors.New("share in a transaction: this is no op")
	}
	for _, s := range tx.shared {
		if s.key == key {
			return s.ending, nil
		}
	}
	ending := begin()
	tx.shared = append(tx.shared, shared{key, ending})
	return ending, nil
}

// transaction is one that ops run in. It belongs to the writer.
type transaction struct{ shared []shared }

type shared struct {
	key    any
	ending Ending
}

// end runs what the ops have left for the end. A panic is an error, as in an op.
func (t *transaction) end(q *db.Queries) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("write panicked: %v\n%s", cause, debug.Stack())
		}
	}()
	for _, s := range t.shared {
		if err := s.ending.End(opContext{context.Background(), t}, q); err != nil {
			return err
		}
	}
	return nil
}
