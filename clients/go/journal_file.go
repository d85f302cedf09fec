package throwbar

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	devicev1 "throwbar.dev/throwbar/gen/go/throwbar/device/v1"
)

// compactFrom is the size from which a journal's file is written anew when most of it is stale.
const compactFrom = 4 << 20

// FileJournal is a journal in a file of lines that only grows. Each line is written whole before the call returns, but
// not forced to the disk: it survives a killed process, not a power cut. A torn last line is dropped. One process at a
// time has it open.
type FileJournal struct {
	path string
	now  func() time.Time

	lock *os.File // held as long as the journal is open

	mu    sync.Mutex
	file  *os.File // guarded by mu
	size  int64    // guarded by mu; of the file
	fresh int64    // guarded by mu; of the file when it was last written anew
	index index    // guarded by mu
	dial  uint64   // guarded by mu; number of the last dial
}

var _ Journal = (*FileJournal)(nil)

// line is one line of the file.
type line struct {
	Op      string    `json:"op"` // start, finish, receipt, dial
	ID      string    `json:"id,omitempty"`
	Number  uint64    `json:"number,omitempty"` // of a dial
	At      time.Time `json:"at,omitzero"`
	Payload []byte    `json:"payload,omitempty"` // the Action of a start, the Outcome of a finish
}

const (
	opStart   = "start"
	opFinish  = "finish"
	opReceipt = "receipt"
	opDial    = "dial"
)

// ErrJournalInUse means that another process, or another device of this one, has the journal open: two that write the
// same journal would each run what the other one has run.
var ErrJournalInUse = errors.New("the journal is in use by another device")

// OpenJournal opens the journal in a file, or makes one. It is ErrJournalInUse while it is open elsewhere: a lock on a
// file beside it, which goes with the process that holds it.
func OpenJournal(path string) (*FileJournal, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("make folder for journal: %w", err)
	}
	lock, err := lockJournal(path + ".lock")
	if err != nil {
		return nil, err
	}
	j := &FileJournal{path: path, now: time.Now, index: newIndex(), lock: lock}
	if err = j.load(); err == nil {
		err = j.rewrite()
	}
	if err != nil {
		return nil, errors.Join(err, unlock(lock), lock.Close())
	}
	return j, nil
}

// lockJournal takes the lock of a journal. Its file stays: one that is removed could be locked by nobody and everybody.
func lockJournal(path string) (*os.File, error) {
	lock, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the journal's lock: %w", err)
	}
	held, err := tryLock(lock)
	switch {
	case err != nil:
		return nil, errors.Join(fmt.Errorf("lock the journal: %w", err), lock.Close())
	case held:
		return nil, errors.Join(fmt.Errorf("%s: %w", path, ErrJournalInUse), lock.Close())
	}
	return lock, nil
}

// Close closes the file. The journal cannot be used any more.
func (j *FileJournal) Close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := errors.Join(j.file.Close(), unlock(j.lock), j.lock.Close()); err != nil {
		return fmt.Errorf("close journal: %w", err)
	}
	return nil
}

// load reads the file up to the first line that is not whole.
func (j *FileJournal) load() error {
	f, err := os.Open(j.path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("open journal: %w", err)
	}
	defer f.Close()
	r := bufio.NewReader(f)
	for {
		raw, err := r.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil // what is left, if anything, is a torn line
		}
		if err != nil {
			return fmt.Errorf("read journal: %w", err)
		}
		var l line
		if json.Unmarshal(raw, &l) != nil || !j.apply(l) {
			continue // a line of a newer version, or damage; the others still count
		}
	}
}

// apply brings one line of the file into memory. It says false to what it cannot read. What is in the future was
// written by a clock that was set back since: it counts as written now, or it would stay for too long.
func (j *FileJournal) apply(l line) bool {
	now := j.now()
	if l.At.After(now) {
		l.At = now
	}
	switch l.Op {
	case opStart:
		action := &commandv1.Action{}
		if proto.Unmarshal(l.Payload, action) != nil {
			return false
		}
		j.index.start(l.ID, action, l.At)
		j.index.byID[l.ID].loaded = now
	case opFinish:
		outcome := &devicev1.Outcome{}
		if proto.Unmarshal(l.Payload, outcome) != nil || outcome.GetCommandId() != l.ID {
			return false
		}
		j.index.finish(outcome, l.At)
		j.index.byID[l.ID].loaded = now
	case opReceipt:
		j.index.receipt(l.ID)
	case opDial:
		j.dial = max(j.dial, l.Number)
	default:
		return false
	}
	return true
}

// Entries are all entries, oldest first.
func (j *FileJournal) Entries() []Entry {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.index.entries(j.now())
}

// Lookup finds the entry of a command.
func (j *FileJournal) Lookup(commandID string) (Entry, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.index.lookup(commandID, j.now())
}

// Start writes down that a command is about to run.
func (j *FileJournal) Start(commandID string, action *commandv1.Action) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	raw, err := proto.Marshal(action)
	if err != nil {
		return fmt.Errorf("encode action: %w", err)
	}
	now := j.now()
	if err := j.append(line{Op: opStart, ID: commandID, At: now, Payload: raw}); err != nil {
		return err
	}
	j.index.start(commandID, proto.CloneOf(action), now)
	return nil
}

// Finish writes down how a command ended.
func (j *FileJournal) Finish(outcome *devicev1.Outcome) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	raw, err := proto.Marshal(outcome)
	if err != nil {
		return fmt.Errorf("encode outcome: %w", err)
	}
	now := j.now()
	j.index.finish(proto.CloneOf(outcome), now)
	return j.append(line{Op: opFinish, ID: outcome.GetCommandId(), At: now, Payload: raw})
}

// Receipt writes down that the server has the outcomes.
func (j *FileJournal) Receipt(commandIDs []string) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	lines := make([]line, 0, len(commandIDs))
	for _, id := range commandIDs {
		if _, ok := j.index.byID[id]; !ok {
			continue
		}
		j.index.receipt(id)
		lines = append(lines, line{Op: opReceipt, ID: id})
	}
	if err := j.append(lines...); err != nil {
		return err
	}
	return j.compact()
}

// Dial writes down that a link is dialled. The number is at least the time in milliseconds, so that a journal that was
// lost, or did not reach the disk, does not begin below what the server has seen.
func (j *FileJournal) Dial() (uint64, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	next := max(j.dial+1, uint64(max(j.now().UnixMilli(), 0)))
	if err := j.append(line{Op: opDial, Number: next}); err != nil {
		return 0, err
	}
	j.dial = next
	return next, j.compact()
}

// compact writes the file anew when most of it is stale. The caller holds mu.
func (j *FileJournal) compact() error {
	if j.size > compactFrom && j.size > 2*j.fresh {
		return j.rewrite()
	}
	return nil
}

// append writes lines with one write. The caller holds mu.
func (j *FileJournal) append(lines ...line) error {
	raw, err := encode(lines)
	if err != nil || len(raw) == 0 {
		return err
	}
	n, err := j.file.Write(raw)
	j.size += int64(n)
	if err != nil {
		if n > 0 { // what was torn must not spoil the next line
			_, _ = j.file.WriteString("\n")
		}
		return fmt.Errorf("write journal: %w", err)
	}
	return nil
}

// rewrite replaces the file by one that holds only what is kept. The caller holds mu, or is the only one.
func (j *FileJournal) rewrite() error {
	var lines []line
	for _, e := range j.index.entries(j.now()) {
		if e.Action != nil {
			raw, err := proto.Marshal(e.Action)
			if err != nil {
				return fmt.Errorf("encode action: %w", err)
			}
			lines = append(lines, line{Op: opStart, ID: e.CommandID, At: e.At, Payload: raw})
		}
		if e.Outcome != nil {
			raw, err := proto.Marshal(e.Outcome)
			if err != nil {
				return fmt.Errorf("encode outcome: %w", err)
			}
			lines = append(lines, line{Op: opFinish, ID: e.CommandID, At: e.At, Payload: raw})
		}
		if e.Receipted {
			lines = append(lines, line{Op: opReceipt, ID: e.CommandID})
		}
	}
	if j.dial > 0 {
		lines = append(lines, line{Op: opDial, Number: j.dial})
	}
	raw, err := encode(lines)
	if err != nil {
		return err
	}
	if err := replaceFile(j.path, raw); err != nil {
		return err
	}
	f, err := os.OpenFile(j.path, os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("open journal: %w", err)
	}
	if j.file != nil {
		_ = j.file.Close() // it was replaced: nothing in it counts any more
	}
	j.file, j.size, j.fresh = f, int64(len(raw)), int64(len(raw))
	return nil
}

func encode(lines []line) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b) // ends each line with a newline
	for _, l := range lines {
		if err := enc.Encode(l); err != nil {
			return nil, fmt.Errorf("encode journal: %w", err)
		}
	}
	return b.Bytes(), nil
}
