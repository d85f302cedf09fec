package dump

import (
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
)

// Writer writes an export.
type Writer struct {
	out    *gzip.Writer
	all    hash.Hash
	table  *Table
	sum    Sum
	rows   hash.Hash // of the table
	sums   []Sum
	total  int64
	failed error
}

// NewWriter begins an export of a database with this schema.
func NewWriter(out io.Writer, schema int64) *Writer {
	w := &Writer{out: gzip.NewWriter(out), all: sha256.New()}
	w.put(header{Throwbar: what, Format: Format, Schema: schema})
	return w
}

func (w *Writer) put(value any) {
	raw, err := line(value)
	if err != nil {
		w.failed = errors.Join(w.failed, err)
		return
	}
	w.write(raw)
}

func (w *Writer) write(raw []byte) {
	if w.failed != nil {
		return
	}
	w.all.Write(raw)
	_, w.failed = w.out.Write(raw)
}

// Table ends the table before and begins the next.
func (w *Writer) Table(table Table) error {
	w.endTable()
	w.table, w.sum, w.rows = &table, Sum{Table: table.Name}, sha256.New()
	w.put(table)
	return w.failed
}

// Row adds a row to the table.
func (w *Writer) Row(values []any) error {
	if w.table == nil {
		return errors.New("a row before the first table")
	}
	raw, err := encode(w.table.Columns, values)
	if err == nil && len(raw) > MaxLine {
		err = fmt.Errorf("it takes %d bytes, more than %d", len(raw), MaxLine)
	}
	if err != nil {
		return fmt.Errorf("row %d of %s: %w", w.sum.Rows+1, w.table.Name, err)
	}
	w.rows.Write(raw)
	w.sum.Rows++
	w.write(raw)
	return w.failed
}

func (w *Writer) endTable() {
	if w.table == nil {
		return
	}
	w.sum.SHA256 = hex.EncodeToString(w.rows.Sum(nil))
	w.put(w.sum)
	w.sums = append(w.sums, w.sum)
	w.total += w.sum.Rows
	w.table = nil
}

// Close ends the export, but not what it was written to, and gives the sums of the tables.
func (w *Writer) Close() ([]Sum, error) {
	w.endTable()
	w.put(trailer{Tables: len(w.sums), Rows: w.total, SHA256: hex.EncodeToString(w.all.Sum(nil))})
	return w.sums, errors.Join(w.failed, w.out.Close())
}
