package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"throwbar.dev/throwbar/store/db"
	"throwbar.dev/throwbar/store/storetest"
)

// item is what a page is compared by: an id, and what the list is ordered by before it.
type item struct {
	id   string
	name string
	time int64
}

// lister is a list query: how to get the page after an item, and what all pages have to give together.
type lister struct {
	page func(ctx context.Context, q *db.Queries, last item, size int32) ([]item, error)
	want []item
}

// TestPages reads each list with pages of several sizes: nothing may be missing, repeated, foreign or in disorder, though
// many rows have the same time.
func TestPages(t *testing.T) {
	t.Parallel()
	onEach(t, testPages)
}

func testPages(t *testing.T, engine storetest.Engine) {
	s := running(t, engine, Config{})
	seeded := seed(t, s)
	lists := listers(seeded)
	for _, name := range pagedQueries() {
		if _, ok := lists[name]; !ok {
			t.Errorf("%s has pages and is not tested here", name)
		}
	}
	for name, list := range lists {
		if len(list.want) < 3 {
			t.Errorf("%s: only %d rows to find", name, len(list.want))
		}
		for _, size := range []int32{1, 2, 3, 7, 1000} {
			got := all(t, s.Read(), list, size)
			if !slices.Equal(got, list.want) {
				t.Errorf("%s by %d: got %v, want %v", name, size, got, list.want)
			}
		}
	}
}

// pagedQueries names the methods that take a page size and give rows.
func pagedQueries() []string {
	var names []string
	queries := reflect.TypeFor[*db.Queries]()
	for n := range queries.NumMethod() {
		method := queries.Method(n)
		if method.Type.NumIn() < 3 || method.Type.In(2).Kind() != reflect.Struct {
			continue
		}
		if _, ok := method.Type.In(2).FieldByName("PageSize"); ok && method.Type.Out(0).Kind() == reflect.Slice {
			names = append(names, method.Name)
		}
	}
	return names
}

// all reads a list page by page, until a page is not full.
func all(t *testing.T, q *db.Queries, list lister, size int32) []item {
	t.Helper()
	last := item{time: math.MaxInt64}
	var got []item
	for len(got) <= len(list.want) {
		page, err := list.page(t.Context(), q, last, size)
		check(t, err)
		if len(page) > int(size) {
			t.Fatalf("page of %d has %d rows", size, len(page))
		}
		got = append(got, page...)
		if len(page) < int(size) {
			break
		}
		last = page[len(page)-1]
	}
	return got
}

// rows is what seed wrote.
type rows struct {
	devices       []db.InsertDeviceParams
	tokens        []db.InsertTokenParams
	commands      []db.InsertCommandParams
	ended         map[string]bool
	events        []db.Event
	saved         []db.InsertSavedParams
	approvals     []db.InsertApprovalParams
	browsers      []string // ids, which are names of workspaces too
	audit         []db.InsertAuditParams
	conversations []db.InsertConversationParams
	queued        []db.InsertQueuedParams
	numbers       []int64 // of events and messages in a conversation
}

// seed writes rows of two workspaces and three devices, in random order and with few different times.
func seed(t *testing.T, s *Store) rows {
	t.Helper()
	random := rand.New(rand.NewPCG(1, 2))
	places := []string{"default", "default", "other"}
	r := rows{ended: map[string]bool{}}
	for n := range 60 {
		id := fmt.Sprintf("%08x", random.Uint32())
		place, device := places[n%3], fmt.Sprint("device", random.IntN(3))
		when := at + random.Int64N(5)
		r.devices = append(r.devices, db.InsertDeviceParams{
			ID: id, Workspace: place, Name: fmt.Sprint("name ", random.IntN(5)), Kind: 1, PairedAt: at, Actions: "[]",
		})
		r.tokens = append(r.tokens, db.InsertTokenParams{
			ID: id, Workspace: place, Scope: 2, Hash: []byte(strings.Repeat(id, 4)), CreatedAt: when,
		})
		c := command(id, when-at)
		c.Workspace, c.DeviceID, c.GroupID = place, device, fmt.Sprint("group", random.IntN(3))
		c.RequestID = fmt.Sprint("request", random.IntN(3))
		r.commands = append(r.commands, c)
		r.ended[id] = random.IntN(2) == 0
		r.events = append(r.events, db.Event{Seq: int64(n + 1), Workspace: place, Time: when, DeviceID: device, Body: []byte{}})
		r.saved = append(r.saved, db.InsertSavedParams{
			ID: id, Workspace: place, DeviceID: device, CommandID: id, TabID: id, Kind: []string{"saved", "closed"}[random.IntN(2)],
			State: []string{"kept", "kept", "pending"}[random.IntN(3)], SavedAt: when, Body: []byte{},
		})
		r.browsers = append(r.browsers, id)
		r.approvals = append(r.approvals, db.InsertApprovalParams{
			ID: id, Workspace: place, Principal: "t", Origin: 1, GroupID: "g", Hash: "h", CreatedAt: when, ExpiresAt: when + 10,
		})
		r.audit = append(r.audit, db.InsertAuditParams{
			Workspace: place, Sequence: int64(n + 1), Time: when, Record: []byte(id), Previous: make([]byte, 32), Hash: make([]byte, 32),
		})
		r.conversations = append(r.conversations, db.InsertConversationParams{
			ID: id, Workspace: place, Open: random.IntN(2) == 0, CreatedAt: at, UpdatedAt: when, Settings: []byte{},
		})
		if n%3 == 1 { // some have a parent, which is in another place or in the same
			r.conversations[n].ParentID, r.conversations[n].RootID = "parent", "parent"
		}
		r.queued = append(r.queued, db.InsertQueuedParams{
			Workspace: place, ID: id, ConversationID: r.conversations[min(n, random.IntN(4))].ID, N: int64(n + 1),
			State: []string{"waiting", "removed"}[n%2], Mode: 1, Sender: []byte{}, ChainID: "c", Choice: []byte{},
			Body: [][]byte{[]byte("hello"), {}}[n%2], Delivery: 2, CreatedAt: when,
		})
		r.numbers = append(r.numbers, int64(n+1))
	}
	do(t, s, func(ctx context.Context, q *db.Queries) error { return r.insert(ctx, q) })
	return r
}

// insertApproval writes an approval of one call; it is resolved where its command has ended.
func (r rows) insertApproval(ctx context.Context, q *db.Queries, n int) error {
	a := r.approvals[n]
	if err := q.InsertApproval(ctx, a); err != nil {
		return err
	}
	if err := q.InsertApprovalCall(ctx, db.InsertApprovalCallParams{
		ApprovalID: a.ID, CommandID: a.ID, Proposed: []byte("action"), Targets: []byte{},
	}); err != nil || !r.ended[a.ID] {
		return err
	}
	_, err := q.ResolveApproval(ctx, db.ResolveApprovalParams{ToState: "expired", DecidedAt: at, ID: a.ID, FromState: "pending"})
	return err
}

// insertAgenda writes what a conversation is about to do.
func (r rows) insertAgenda(ctx context.Context, q *db.Queries, n int) error {
	id := r.conversations[n].ID
	_, err := q.InsertQueued(ctx, r.queued[n])
	return errors.Join(
		err,
		q.InsertChain(ctx, db.InsertChainParams{ID: id, Workspace: r.conversations[n].Workspace, RootID: id, WakesLeft: 12, CreatedAt: at}),
		q.InsertTurn(ctx, db.InsertTurnParams{
			ID: id, ConversationID: id, State: "running", Durable: true, Speaker: 1, ChainID: id, Choice: []byte{}, StartedAt: at,
		}),
		q.PutOutput(ctx, db.PutOutputParams{ConversationID: id, CallID: "c", Body: []byte("whole")}),
	)
}

func (r rows) insert(ctx context.Context, q *db.Queries) error {
	steps := []func(n int) error{
		func(n int) error { return q.InsertDevice(ctx, r.devices[n]) },
		func(n int) error { return q.InsertToken(ctx, r.tokens[n]) },
		func(n int) error { return q.InsertCommand(ctx, r.commands[n]) },
		func(n int) error {
			if !r.ended[r.commands[n].ID] {
				return nil
			}
			_, err := q.FinishCommand(ctx, finish(r.commands[n].ID, 10))
			return err
		},
		func(n int) error {
			e := r.events[n]
			_, err := q.InsertEvent(ctx, db.InsertEventParams{
				Workspace: e.Workspace, Time: e.Time, DeviceID: e.DeviceID, Body: e.Body,
			})
			return err
		},
		func(n int) error { return q.InsertSaved(ctx, r.saved[n]) },
		func(n int) error {
			return q.UpsertBrowser(ctx, db.UpsertBrowserParams{DeviceID: r.browsers[n], AsOf: at, Body: []byte{}})
		},
		func(n int) error {
			_, err := q.RaisePolicy(ctx, db.RaisePolicyParams{Workspace: r.browsers[n], Settings: []byte{}})
			return err
		},
		func(n int) error {
			return q.InsertRule(ctx, db.InsertRuleParams{ID: r.browsers[n], Workspace: "default", Version: r.numbers[n], Body: []byte("rule")})
		},
		func(n int) error {
			return q.InsertWorkspace(ctx, db.InsertWorkspaceParams{Name: r.browsers[n], CreatedAt: at})
		},
		func(n int) error { return q.InsertAudit(ctx, r.audit[n]) },
		func(n int) error { return r.insertApproval(ctx, q, n) },
		func(n int) error {
			return q.SetAuditHead(ctx, db.SetAuditHeadParams{
				Workspace: r.audit[n].Workspace, Sequence: r.audit[n].Sequence, Hash: r.audit[n].Hash,
			})
		},
		func(n int) error { return q.InsertConversation(ctx, r.conversations[n]) },
		func(n int) error { return r.insertAgenda(ctx, q, n) },
		func(n int) error {
			return q.InsertConversationEvent(ctx, db.InsertConversationEventParams{
				ConversationID: r.conversations[0].ID, Seq: r.numbers[n], Time: at, Body: []byte{},
			})
		},
		func(n int) error {
			return q.InsertMessage(ctx, db.InsertMessageParams{
				ConversationID: r.conversations[0].ID, N: r.numbers[n], Body: []byte{},
			})
		},
	}
	for n := range r.devices {
		for _, step := range steps {
			if err := step(n); err != nil {
				return err
			}
		}
	}
	return nil
}

func newestFirst(a, b item) int {
	return -cmp.Or(cmp.Compare(a.time, b.time), cmp.Compare(a.id, b.id))
}

func byName(a, b item) int { return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.id, b.id)) }

// pick gives the items of the rows that are wanted, in order.
func pick[T any](from []T, order func(a, b item) int, to func(T) (item, bool)) []item {
	var items []item
	for _, row := range from {
		if it, ok := to(row); ok {
			items = append(items, it)
		}
	}
	slices.SortFunc(items, order)
	return items
}

// items makes a page of rows.
func items[T any](rows []T, err error, to func(T) item) ([]item, error) {
	page := make([]item, 0, len(rows))
	for _, row := range rows {
		page = append(page, to(row))
	}
	return page, err
}
