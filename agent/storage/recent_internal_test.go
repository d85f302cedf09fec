package storage

import (
	"fmt"
	"testing"

	"throwbar.dev/throwbar/agent/model"
)

func TestOnlySoMuchIsKept(t *testing.T) {
	t.Parallel()
	r := newRecent(10_000)
	put := func(id string, bytes int) {
		r.keep(id, r.take(id, 0).grown(1).add(1, model.Message{Text: id}, bytes))
	}
	for i := range 100 {
		put(fmt.Sprint(i), 800)
		r.take("0", 0) // is used all the time
	}
	if len(r.kept) != 10 || r.bytes != 10_000 || len(r.take("0", 0).messages) != 1 || len(r.take("99", 0).messages) != 1 || len(r.take("50", 0).messages) != 0 {
		t.Errorf("%d histories with %d bytes are kept", len(r.kept), r.bytes)
	}
	if s := r.take("0", 5); len(s.messages) != 0 || s.last != 4 {
		t.Errorf("a history that begins elsewhere: %+v", s)
	}
	put("large", 20_000)
	if len(r.kept) != 0 || r.bytes != 0 {
		t.Errorf("%d histories with %d bytes are kept", len(r.kept), r.bytes)
	}
}

// Two that read at once and find different ends do not write into each other's history.
func TestWhoAddsHasRoomOfTheirOwn(t *testing.T) {
	t.Parallel()
	r := newRecent(1 << 20)
	r.keep("c", r.take("c", 0).grown(100).add(1, model.Message{Text: "first"}, 1)) // with room behind it
	one, other := r.take("c", 0), r.take("c", 0)
	one = one.grown(1).add(2, model.Message{Text: "one"}, 1)
	other = other.grown(1).add(2, model.Message{Text: "other"}, 1)
	r.keep("c", one)
	third := r.take("c", 0).grown(1).add(3, model.Message{Text: "third"}, 1)
	if one.messages[1].Text != "one" || other.messages[1].Text != "other" || len(one.messages) != 2 || third.messages[2].Text != "third" {
		t.Errorf("%v, %v, %v", one.messages, other.messages, third.messages)
	}
}
