package dump

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
)

// Limits bound what a reader takes, whatever a small file says that it unpacks to. Zero values are the defaults.
type Limits struct {
	Line  int   // bytes of a line; MaxLine by default
	Total int64 // bytes of all lines; no limit by default, for a reader holds one line at a time
}

// Reader reads an export: Table, then Row until io.EOF, and again, until Table gives io.EOF.
type Reader struct {
	// Schema is the version of the database that was exported.
	Schema int64

	file   *bufio.Reader
	zip    *gzip.Reader
	lines  *bufio.Reader
	limits Limits
	read   int64
	all    hash.Hash
	table  *Table
	seen   map[string]bool
	rows   hash.Hash
	sum    Sum
	sums   []Sum
	total  int64
}

// NewReader reads the beginning of an export.
func NewReader(in io.Reader, limits Limits) (*Reader, error) {
	if limits.Line <= 0 {
		limits.Line = MaxLine
	}
	r := &Reader{file: bufio.NewReader(in), limits: limits, all: sha256.New(), seen: map[string]bool{}}
	var err error
	if r.zip, err = gzip.NewReader(r.file); err != nil {
		return nil, damaged(err)
	}
	r.zip.Multistream(false)
	r.lines = bufio.NewReaderSize(r.zip, 1<<16)
	raw, err := r.line()
	if err != nil {
		return nil, err
	}
	var h header
	if err := json.Unmarshal(raw, &h); err != nil || h.Throwbar != what {
		return nil, damaged(errors.New("it does not begin as an export of throwbar"))
	}
	if h.Format > Format {
		return nil, fmt.Errorf("%w: its format is %d, the newest known is %d", ErrNewer, h.Format, Format)
	}
	if h.Format < 1 || h.Schema < 1 {
		return nil, damaged(errors.New("it has no version"))
	}
	r.Schema = h.Schema
	return r, r.note(raw, h)
}

func damaged(err error) error { return fmt.Errorf("%w: %w", ErrDamaged, err) }

// line reads a line with its end.
func (r *Reader) line() ([]byte, error) {
	var raw []byte
	for {
		part, err := r.lines.ReadSlice('\n')
		raw = append(raw, part...)
		r.read += int64(len(part))
		switch {
		case len(raw) > r.limits.Line:
			return nil, damaged(fmt.Errorf("a line is longer than %d bytes", r.limits.Line))
		case r.limits.Total > 0 && r.read > r.limits.Total:
			return nil, damaged(fmt.Errorf("it is longer than %d bytes", r.limits.Total))
		case err == nil:
			return raw, nil
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return nil, damaged(errors.New("it ends too early"))
		default:
			return nil, damaged(err)
		}
	}
}

// note takes a line for the sum of all, if it is the value as a writer writes it.
func (r *Reader) note(raw []byte, value any) error {
	again, err := line(value)
	if err != nil {
		return err
	}
	if !bytes.Equal(again, raw) {
		return damaged(fmt.Errorf("a line is not as it should be: %.80q", raw))
	}
	r.all.Write(raw)
	return nil
}

// Table is the next table; io.EOF when all are read, and the whole is as it was written.
func (r *Reader) Table() (Table, error) {
	if r.table != nil {
		return Table{}, errors.New("the table before is not read to its end")
	}
	raw, err := r.line()
	if err != nil {
		return Table{}, err
	}
	if bytes.HasPrefix(raw, []byte(`{"tables":`)) {
		return Table{}, r.end(raw)
	}
	var t Table
	if err := json.Unmarshal(raw, &t); err != nil {
		return Table{}, damaged(err)
	}
	if t.Name == "" || len(t.Columns) == 0 || r.seen[t.Name] {
		return Table{}, damaged(fmt.Errorf("table %q has no columns, or is there twice", t.Name))
	}
	for _, c := range t.Columns {
		if c.Name == "" || !c.Kind.Known() {
			return Table{}, damaged(fmt.Errorf("column %q of %s has the type %q", c.Name, t.Name, c.Kind))
		}
	}
	r.seen[t.Name] = true
	r.table, r.rows, r.sum = &t, sha256.New(), Sum{Table: t.Name}
	return t, r.note(raw, t)
}

// Row is the next row of the table; io.EOF when all of them are read, and they are as they were written.
func (r *Reader) Row() ([]any, error) {
	if r.table == nil {
		return nil, errors.New("no table is begun")
	}
	raw, err := r.line()
	if err != nil {
		return nil, err
	}
	if raw[0] != '[' {
		return nil, r.endTable(raw)
	}
	values, err := decode(r.table.Columns, raw)
	if err != nil {
		return nil, damaged(fmt.Errorf("row %d of %s: %w", r.sum.Rows+1, r.table.Name, err))
	}
	r.sum.Rows++
	r.rows.Write(raw)
	r.all.Write(raw)
	return values, nil
}

func (r *Reader) endTable(raw []byte) error {
	var told Sum
	if err := json.Unmarshal(raw, &told); err != nil {
		return damaged(err)
	}
	r.sum.SHA256 = hex.EncodeToString(r.rows.Sum(nil))
	if told != r.sum {
		return damaged(fmt.Errorf("table %s has %d rows, and its sums are not those written at its end", r.sum.Table, r.sum.Rows))
	}
	if err := r.note(raw, told); err != nil {
		return err
	}
	r.sums = append(r.sums, r.sum)
	r.total += r.sum.Rows
	r.table = nil
	return io.EOF
}

func (r *Reader) end(raw []byte) error {
	var told trailer
	if err := json.Unmarshal(raw, &told); err != nil {
		return damaged(err)
	}
	if told != (trailer{Tables: len(r.sums), Rows: r.total, SHA256: hex.EncodeToString(r.all.Sum(nil))}) {
		return damaged(errors.New("the sum of the whole is another"))
	}
	if err := r.note(raw, told); err != nil {
		return err
	}
	if _, err := r.lines.ReadByte(); !errors.Is(err, io.EOF) { // the stream's own checksum is looked at here too
		return damaged(errors.Join(errors.New("something follows its end"), err))
	}
	if _, err := r.file.ReadByte(); !errors.Is(err, io.EOF) {
		return damaged(errors.Join(errors.New("something follows its end"), err))
	}
	return io.EOF
}

// Sums are those of the tables that are read.
func (r *Reader) Sums() []Sum { return r.sums }
