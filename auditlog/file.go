package auditlog

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
)

const (
	// format is the version of the file.
	format = 1
	// maxLine is how long a line may be.
	maxLine = 16 << 20
	what    = "audit"
)

// header is the first line of a file.
type header struct {
	Throwbar string `json:"throwbar"`
	Format   int    `json:"format"`
	First    uint64 `json:"first"`    // number of the first entry; the one after the last if there is none
	Previous string `json:"previous"` // hash before it
}

// line is an entry. Entry is the record in readable form; what counts is the record itself, and both are compared.
type line struct {
	Sequence uint64          `json:"sequence"`
	Time     string          `json:"time"`
	Entry    json.RawMessage `json:"entry"`
	Record   []byte          `json:"record"`
	Previous string          `json:"previous"`
	Hash     string          `json:"hash"`
}

// trailer is the last line: without it the file was cut off.
type trailer struct {
	Entries uint64 `json:"entries"`
	Last    uint64 `json:"last"`
	Head    string `json:"head"`
}

// Writer writes a record as lines of JSON: a header, a line for each entry, a trailer.
type Writer struct {
	out     *bufio.Writer
	begun   bool
	entries uint64
	last    uint64
	head    []byte
}

// NewWriter begins a file with the entries after a number.
func NewWriter(out io.Writer, after uint64) *Writer {
	return &Writer{out: bufio.NewWriter(out), last: after, head: Genesis()}
}

// Entries is how many entries were written.
func (w *Writer) Entries() uint64 { return w.entries }

// Head is the hash of the last entry.
func (w *Writer) Head() []byte { return w.head }

// Add writes an entry. It does not check the chain.
func (w *Writer) Add(e *controlv1.AuditEntry) error {
	record := &controlv1.AuditRecord{}
	if err := proto.Unmarshal(e.GetRecord(), record); err != nil {
		return fmt.Errorf("entry %d cannot be read", w.last+1)
	}
	if !w.begun {
		if err := w.begin(record.GetSequence(), e.GetPrevious()); err != nil {
			return err
		}
	}
	entry, err := readable(record)
	if err != nil {
		return err
	}
	w.entries++
	w.last, w.head = record.GetSequence(), e.GetHash()
	return w.put(line{
		Sequence: w.last, Time: timeOf(record), Entry: entry, Record: e.GetRecord(),
		Previous: hex.EncodeToString(e.GetPrevious()), Hash: hex.EncodeToString(e.GetHash()),
	})
}

func (w *Writer) begin(first uint64, previous []byte) error {
	w.begun = true
	return w.put(header{Throwbar: what, Format: format, First: first, Previous: hex.EncodeToString(previous)})
}

// Close ends the file, but not what it was written to.
func (w *Writer) Close() error {
	if !w.begun {
		if err := w.begin(w.last+1, w.head); err != nil {
			return err
		}
	}
	if err := w.put(trailer{Entries: w.entries, Last: w.last, Head: hex.EncodeToString(w.head)}); err != nil {
		return err
	}
	return w.out.Flush()
}

func (w *Writer) put(value any) error {
	raw, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("write line: %w", err)
	}
	_, err = w.out.Write(append(raw, '\n'))
	return err
}

func timeOf(record *controlv1.AuditRecord) string {
	return record.GetTime().AsTime().UTC().Format(time.RFC3339Nano)
}

// readable is a record as JSON, the same at every run.
func readable(record *controlv1.AuditRecord) (json.RawMessage, error) {
	raw, err := protojson.Marshal(record)
	if err != nil {
		return nil, fmt.Errorf("write record as JSON: %w", err)
	}
	return canonical(raw)
}

// canonical is JSON as encoding/json writes it: protojson puts spaces at random and escapes otherwise.
func canonical(raw []byte) (json.RawMessage, error) {
	var value any
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	if err := decoder.Decode(&value); err != nil {
		return nil, err
	}
	return json.Marshal(value)
}

// Report is what Verify found in a file.
type Report struct {
	Checked uint64 // entries that were found to be in order
	First   uint64 // number of the first entry of the file
	Last    uint64
	Head    []byte
	// Newer is how many entries have fields that this program does not know: of those the readable form was not compared.
	Newer uint64
}

// Verify checks a file. Step, which may be nil, is told how many entries were checked.
func Verify(in io.Reader, anchor []byte, step func(checked uint64)) (Report, *Problem, error) {
	scan := bufio.NewScanner(in)
	scan.Buffer(make([]byte, 0, 64<<10), maxLine)
	v := verifier{check: NewChecker("", anchor)}
	for scan.Scan() {
		if problem := v.line(scan.Bytes()); problem != nil {
			return v.report(), problem, nil
		}
		if step != nil {
			step(v.check.Checked())
		}
	}
	switch err := scan.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return v.report(), v.bad("the line after it is longer than any that an export writes"), nil
	case err != nil:
		return v.report(), nil, fmt.Errorf("read: %w", err)
	case !v.begun:
		return v.report(), v.bad("the file has no header: it is no audit export"), nil
	case v.end == nil:
		next := v.check.Last() + 1
		return v.report(), &Problem{next, Head, fmt.Sprintf("the file is cut off before entry %d", next)}, nil
	}
	head, err := unhex(v.end.Head)
	if err != nil {
		return v.report(), v.bad("its last line has no hash"), nil
	}
	if problem := v.check.End(v.end.Last, head); problem != nil {
		return v.report(), problem, nil
	}
	if v.end.Entries != v.check.Checked() {
		return v.report(), v.bad("its last line counts other entries than there are"), nil
	}
	return v.report(), nil, nil
}

type verifier struct {
	check *Checker
	begun bool
	first uint64
	newer uint64
	end   *trailer
}

func (v *verifier) report() Report {
	return Report{Checked: v.check.Checked(), First: v.first, Last: v.check.Last(), Head: v.check.Head(), Newer: v.newer}
}

// bad is a problem of the file, after the last entry that was in order.
func (v *verifier) bad(text string) *Problem { return &Problem{v.check.Last() + 1, File, text} }

func (v *verifier) line(raw []byte) *Problem {
	switch {
	case !v.begun:
		return v.header(raw)
	case v.end != nil:
		return v.bad("there are lines after the last one")
	case bytes.HasPrefix(raw, []byte(`{"entries":`)):
		v.end = &trailer{}
		if !exactly(raw, v.end) {
			return v.bad("its last line is not as an export writes it")
		}
		return nil
	default:
		return v.entry(raw)
	}
}

func (v *verifier) header(raw []byte) *Problem {
	var h header
	switch {
	case !exactly(raw, &h) || h.Throwbar != what || h.First == 0:
		return v.bad("the file has no header: it is no audit export")
	case h.Format != format:
		return v.bad(fmt.Sprintf("the file has the format %d: a newer throwbar has written it", h.Format))
	}
	previous, err := unhex(h.Previous)
	if err != nil || len(previous) != HashSize || h.First == 1 && !bytes.Equal(previous, Genesis()) {
		return v.bad("its header has no hash of the entry before the first")
	}
	v.begun, v.first = true, h.First
	v.check.StartAfter(h.First-1, previous)
	return nil
}

func (v *verifier) entry(raw []byte) *Problem {
	var l line
	want := v.check.Last() + 1
	if !exactly(raw, &l) {
		return &Problem{want, Decode, fmt.Sprintf("entry %d is not a line as an export writes it", want)}
	}
	previous, err1 := unhex(l.Previous)
	hash, err2 := unhex(l.Hash)
	if errors.Join(err1, err2) != nil {
		return &Problem{want, Decode, fmt.Sprintf("entry %d has hashes that are none", want)}
	}
	record, problem := v.check.Add(&controlv1.AuditEntry{Record: l.Record, Previous: previous, Hash: hash})
	if problem != nil {
		return problem
	}
	if hasUnknown(record.ProtoReflect()) {
		v.newer++
		l.Entry = nil
	}
	shown, err := readable(record)
	if err != nil || l.Sequence != record.GetSequence() || l.Time != timeOf(record) || l.Entry != nil && !bytes.Equal(l.Entry, shown) {
		return &Problem{want, Fields, fmt.Sprintf("what can be read of entry %d is not what its record says", want)}
	}
	return nil
}

// unhex reads a hash as it is written, in lower case.
func unhex(text string) ([]byte, error) {
	raw, err := hex.DecodeString(text)
	if err == nil && hex.EncodeToString(raw) != text {
		err = errors.New("it is not in lower case")
	}
	return raw, err
}

// exactly reads a line that has to be written just as encoding/json writes the value: no field more, none twice.
func exactly(raw []byte, into any) bool {
	if err := json.Unmarshal(raw, into); err != nil {
		return false
	}
	again, err := json.Marshal(into)
	return err == nil && bytes.Equal(again, raw)
}

// hasUnknown says whether a message has fields that this program was not built with.
func hasUnknown(m protoreflect.Message) bool {
	if len(m.GetUnknown()) > 0 {
		return true
	}
	found := false
	m.Range(func(fd protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		switch {
		case fd.IsMap() || fd.Message() == nil:
		case fd.IsList():
			for n := range value.List().Len() {
				found = found || hasUnknown(value.List().Get(n).Message())
			}
		default:
			found = hasUnknown(value.Message())
		}
		return !found
	})
	return found
}
