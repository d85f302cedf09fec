// Package auditlog is the chain of the audit record: how an entry is sealed, how a chain is checked, and the file that a
// record is exported to.
//
// The server seals entries and checks those in its database; a client checks a file without any server. So it knows no
// storage and no transport, and both sides of the wire may use it.
package auditlog

import (
	"bytes"
	"crypto/sha256"
	"fmt"

	"google.golang.org/protobuf/proto"

	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
)

// HashSize is the size of a hash in bytes.
const HashSize = sha256.Size

// Genesis is what the first entry of a record has for the hash before it.
func Genesis() []byte { return make([]byte, HashSize) }

// HashOf is the hash of an entry: SHA-256 over the hash of the entry before and the encoded record.
func HashOf(previous, record []byte) []byte {
	sum := sha256.New()
	sum.Write(previous)
	sum.Write(record)
	return sum.Sum(nil)
}

// Seal encodes a record as the entry after the one with a hash. The hash is over the bytes that are kept, so that nothing
// depends on whether another program would encode the record in the same way.
func Seal(previous []byte, record *controlv1.AuditRecord) (*controlv1.AuditEntry, error) {
	raw, err := proto.MarshalOptions{Deterministic: true}.Marshal(record)
	if err != nil {
		return nil, fmt.Errorf("encode audit record: %w", err)
	}
	return &controlv1.AuditEntry{Record: raw, Previous: previous, Hash: HashOf(previous, raw)}, nil
}

// Kind is what is wrong with an entry.
type Kind string

// The kinds of problems.
const (
	// Decode: the record cannot be read.
	Decode Kind = "decode"
	// Hash: the hash is not that of the record and the hash before it.
	Hash Kind = "hash"
	// Gap: one or more entries are missing.
	Gap Kind = "gap"
	// Order: an entry stands where another one belongs, or is there twice.
	Order Kind = "order"
	// Workspace: the entry is of another workspace.
	Workspace Kind = "workspace"
	// Head: the record ends elsewhere than it should.
	Head Kind = "head"
	// Anchor: no entry has the hash that was noted down.
	Anchor Kind = "anchor"
	// Place: the entry lies under another number or time than its record says.
	Place Kind = "place"
	// Fields: the readable fields are not those of the record.
	Fields Kind = "fields"
	// File: the file is not one that an export wrote.
	File Kind = "file"
)

// Problem is the first thing that is wrong with a record. It is an error.
type Problem struct {
	// Sequence is the number of the first entry that is wrong or missing; zero if it is about no entry.
	Sequence uint64
	Kind     Kind
	Text     string
}

// Error says what is wrong, in words.
func (p *Problem) Error() string { return string(p.Kind) + ": " + p.Text }

// Checker goes through a record from its beginning, or from an entry that is taken as given, and finds the first entry
// that is not what was written. It keeps nothing but the last entry.
type Checker struct {
	workspace string // any if empty, until the first entry
	anchor    []byte // nil if there is none, or once it was found
	last      uint64
	head      []byte // hash of the last entry
	checked   uint64
}

// NewChecker begins with the first entry of a workspace. An anchor that is not empty has to be the hash of an entry.
func NewChecker(workspace string, anchor []byte) *Checker {
	return &Checker{workspace: workspace, anchor: bytes.Clone(anchor), head: Genesis()}
}

// StartAfter takes as given that the record goes up to an entry, which is not looked at: for parts of a record.
func (c *Checker) StartAfter(sequence uint64, hash []byte) {
	c.last, c.head = sequence, bytes.Clone(hash)
}

// Checked is how many entries were found to be in order.
func (c *Checker) Checked() uint64 { return c.checked }

// Last is the number of the last entry that was in order.
func (c *Checker) Last() uint64 { return c.last }

// Head is the hash of the last entry that was in order.
func (c *Checker) Head() []byte { return bytes.Clone(c.head) }

// Add checks the next entry and gives its record.
func (c *Checker) Add(e *controlv1.AuditEntry) (*controlv1.AuditRecord, *Problem) {
	want := c.last + 1
	record := &controlv1.AuditRecord{}
	if err := proto.Unmarshal(e.GetRecord(), record); err != nil {
		return nil, &Problem{want, Decode, fmt.Sprintf("entry %d cannot be read", want)}
	}
	if !bytes.Equal(HashOf(e.GetPrevious(), e.GetRecord()), e.GetHash()) {
		return nil, &Problem{want, Hash, fmt.Sprintf("entry %d is not what was written: its hash is another one", want)}
	}
	if p := c.place(want, record); p != nil {
		return nil, p
	}
	if !bytes.Equal(e.GetPrevious(), c.head) {
		return nil, c.broken(want)
	}
	c.workspace, c.last, c.head = record.GetWorkspace(), want, e.GetHash()
	c.checked++
	if len(c.anchor) > 0 && bytes.Equal(c.anchor, c.head) {
		c.anchor = nil
	}
	return record, nil
}

// place checks that a record is the one that belongs here.
func (c *Checker) place(want uint64, record *controlv1.AuditRecord) *Problem {
	got := record.GetSequence()
	switch {
	case got == want+1:
		return &Problem{want, Gap, fmt.Sprintf("entry %d is missing: %d follows %d", want, got, c.last)}
	case got > want:
		return &Problem{want, Gap, fmt.Sprintf("entries %d to %d are missing", want, got-1)}
	case got == c.last && got > 0:
		return &Problem{got, Order, fmt.Sprintf("entry %d is there twice", got)}
	case got < want:
		return &Problem{want, Order, fmt.Sprintf("entry %d stands where %d belongs", got, want)}
	case c.workspace != "" && record.GetWorkspace() != c.workspace:
		return &Problem{want, Workspace, fmt.Sprintf("entry %d is of the workspace %q", want, record.GetWorkspace())}
	default:
		return nil
	}
}

// broken is an entry that is sound by itself but follows another one than the last: the last was put in its place.
func (c *Checker) broken(want uint64) *Problem {
	if c.checked == 0 {
		return &Problem{want, Hash, fmt.Sprintf("entry %d follows another beginning", want)}
	}
	return &Problem{c.last, Hash, fmt.Sprintf("entry %d is not the one that %d was written after", c.last, want)}
}

// End checks that the record ends where it should: with the entry of this number and hash.
func (c *Checker) End(last uint64, head []byte) *Problem {
	switch {
	case last > c.last:
		return &Problem{c.last + 1, Head, fmt.Sprintf("entries %d to %d are missing at the end", c.last+1, last)}
	case last < c.last:
		return &Problem{last + 1, Head, fmt.Sprintf("entry %d is beyond the end, which is %d", last+1, last)}
	case last > 0 && !bytes.Equal(head, c.head):
		return &Problem{last, Head, fmt.Sprintf("entry %d, the last, is not the one that was written last", last)}
	case len(c.anchor) > 0:
		return &Problem{0, Anchor, fmt.Sprintf("no entry has the hash %x: entries at the end are gone, or the record was written anew", c.anchor)}
	default:
		return nil
	}
}
