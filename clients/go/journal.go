package throwbar

import (
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	devicev1 "throwbar.dev/throwbar/gen/go/throwbar/device/v1"
)

const (
	// JournalKeeps is how long a journal keeps an entry, at the least, whatever happens to the wall clock.
	JournalKeeps = 24 * time.Hour
	// wallSlack is how much longer an entry of an earlier process is kept. Its age is known by the wall clock alone,
	// which may have been wrong or set meanwhile.
	wallSlack = 24 * time.Hour
	// journalMost is the number of entries above which those that the server has written down go early.
	journalMost = 10_000
)

// Entry is what a journal knows of one command.
type Entry struct {
	CommandID string
	Action    *commandv1.Action // nil if it never started
	Outcome   *devicev1.Outcome // nil while it has not ended
	At        time.Time         // when it started, or ended without having started
	Receipted bool              // whether the server has written the outcome down

	loaded time.Time // when it was read from what an earlier process had written; zero if it is this process's own
}

// Journal is where a device writes down which commands it has started and how they ended, so that a command that is
// sent again is answered and not run again. Entries stay for JournalKeeps, longer than any command may live. A command
// that the journal knows as started and not ended was interrupted by a restart: it is run again if it is idempotent,
// else the handler is asked how it ended if it is a Reconciler, else it is answered INTERRUPTED.
// A journal is safe for concurrent use.
type Journal interface {
	// Entries are all entries, oldest first.
	Entries() []Entry
	// Lookup finds the entry of a command.
	Lookup(commandID string) (Entry, bool)
	// Start writes down that a command is about to run.
	Start(commandID string, action *commandv1.Action) error
	// Finish writes down how a command ended, whether it was started or not.
	Finish(outcome *devicev1.Outcome) error
	// Receipt writes down that the server has the outcomes.
	Receipt(commandIDs []string) error
	// Dial numbers a dial of the device: higher than every dial before it that the journal knows of, also of earlier
	// processes. A server does not let a Hello that was held up on its way take the place of a later one. Zero does not
	// count: the last Hello to arrive wins.
	Dial() (uint64, error)
}

// MemoryJournal is a journal that lasts as long as the process: a command that is sent again after a restart may run
// twice. Use a FileJournal where that matters.
type MemoryJournal struct {
	now func() time.Time

	mu    sync.Mutex
	index index // guarded by mu
}

var _ Journal = (*MemoryJournal)(nil)

// NewMemoryJournal makes an empty journal.
func NewMemoryJournal() *MemoryJournal {
	return &MemoryJournal{now: time.Now, index: newIndex()}
}

// Entries are all entries, oldest first.
func (j *MemoryJournal) Entries() []Entry {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.index.entries(j.now())
}

// Lookup finds the entry of a command.
func (j *MemoryJournal) Lookup(commandID string) (Entry, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.index.lookup(commandID, j.now())
}

// Start writes down that a command is about to run.
func (j *MemoryJournal) Start(commandID string, action *commandv1.Action) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.index.start(commandID, proto.CloneOf(action), j.now())
	return nil
}

// Finish writes down how a command ended.
func (j *MemoryJournal) Finish(outcome *devicev1.Outcome) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.index.finish(proto.CloneOf(outcome), j.now())
	return nil
}

// Receipt writes down that the server has the outcomes.
func (j *MemoryJournal) Receipt(commandIDs []string) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, id := range commandIDs {
		j.index.receipt(id)
	}
	return nil
}

// Dial is zero: a journal that lasts as long as the process knows of no dial of an earlier one.
func (j *MemoryJournal) Dial() (uint64, error) { return 0, nil }

// index is the part of a journal that is in memory. It is not safe for concurrent use.
type index struct {
	byID  map[string]*Entry
	order []*Entry // oldest first
}

func newIndex() index { return index{byID: map[string]*Entry{}} }

func (x *index) entries(now time.Time) []Entry {
	x.prune(now)
	all := make([]Entry, 0, len(x.order))
	for _, e := range x.order {
		all = append(all, *e)
	}
	return all
}

func (x *index) lookup(id string, now time.Time) (Entry, bool) {
	x.prune(now)
	e, ok := x.byID[id]
	if !ok {
		return Entry{}, false
	}
	return *e, true
}

func (x *index) start(id string, action *commandv1.Action, at time.Time) {
	e := x.entry(id, at)
	if e.Action == nil {
		e.Action = action
	}
}

func (x *index) finish(outcome *devicev1.Outcome, at time.Time) {
	x.entry(outcome.GetCommandId(), at).Outcome = outcome
}

func (x *index) receipt(id string) {
	if e, ok := x.byID[id]; ok {
		e.Receipted = true
	}
}

func (x *index) entry(id string, at time.Time) *Entry {
	if e, ok := x.byID[id]; ok {
		return e
	}
	x.prune(at)
	e := &Entry{CommandID: id, At: at}
	x.byID[id] = e
	x.order = append(x.order, e)
	return e
}

// prune forgets what is too old, and what the server has written down if there is too much of it.
func (x *index) prune(now time.Time) {
	n := 0
	for n < len(x.order) {
		e := x.order[n]
		tooMany := len(x.order)-n > journalMost && e.Receipted
		if !e.old(now) && !tooMany {
			break
		}
		delete(x.byID, e.CommandID)
		x.order[n] = nil
		n++
	}
	x.order = x.order[n:]
}

// old says whether an entry has been kept for long enough. The time that this process has run is exact. By the wall
// clock an entry may seem older than it is: one of which the server may not know yet stays on all the same.
func (e *Entry) old(now time.Time) bool {
	if e.loaded.IsZero() {
		return now.Sub(e.At) > JournalKeeps
	}
	return now.Sub(e.At) > JournalKeeps+wallSlack && (e.Receipted || now.Sub(e.loaded) > JournalKeeps)
}
