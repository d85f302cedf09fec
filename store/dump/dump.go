// Package dump is the format in which a database leaves one engine and comes into another: a gzip stream of lines of
// JSON. It knows no database.
//
//	{"throwbar":"export","format":1,"schema":3}
//	{"table":"srv_device","columns":[{"name":"id","type":"text"},…]}
//	["k3v9x2mqta",…]                                   a row: text as string, bytea as base64, null as null
//	{"end":"srv_device","rows":1,"sha256":"…"}         of the lines of the table's rows
//	{"tables":9,"rows":120,"sha256":"…"}               of all lines before
//
// Rows come in the order of the primary key and are written in one way only, so that equal tables have equal sums,
// whatever engine they are from. A reader trusts nothing: what is cut off, altered, added or larger than its limits is an
// error, at the latest before the end is told. So what is done with the rows must be undone if the end does not come.
package dump

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"
)

// Format is the version of the format that this package writes and reads.
const Format = 1

// MaxLine is how long a line may be: a row with its bytes as base64.
const MaxLine = 256 << 20

// Kind is the type of a column.
type Kind string

// The kinds. Both engines have these and no others.
const (
	Text    Kind = "text"
	Bigint  Kind = "bigint"
	Boolean Kind = "boolean"
	Bytea   Kind = "bytea"
)

// Known says whether it is one of the kinds.
func (k Kind) Known() bool { return k == Text || k == Bigint || k == Boolean || k == Bytea }

// Column is one column of a table.
type Column struct {
	Name string `json:"name"`
	Kind Kind   `json:"type"`
}

// Table is a table's name and columns.
type Table struct {
	Name    string   `json:"table"`
	Columns []Column `json:"columns"`
}

// Sum is what is known of the rows of a table.
type Sum struct {
	Table  string `json:"end"`
	Rows   int64  `json:"rows"`
	SHA256 string `json:"sha256"`
}

// The errors of files that are no good.
var (
	// ErrDamaged: the file is no export, or not as it was written.
	ErrDamaged = errors.New("the export is damaged")
	// ErrNewer: a newer throwbar has written it.
	ErrNewer = errors.New("the export is of a newer throwbar")
)

type header struct {
	Throwbar string `json:"throwbar"`
	Format   int    `json:"format"`
	Schema   int64  `json:"schema"`
}

const what = "export"

type trailer struct {
	Tables int    `json:"tables"`
	Rows   int64  `json:"rows"`
	SHA256 string `json:"sha256"`
}

// line is a value as it is written, with the end of the line.
func line(value any) ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// encode is a row as it is written. The values are nil, string, int64, bool or []byte, as the columns say.
func encode(columns []Column, values []any) ([]byte, error) {
	if len(values) != len(columns) {
		return nil, fmt.Errorf("%d values for %d columns", len(values), len(columns))
	}
	row := make([]any, len(values))
	for n, value := range values {
		ok := value == nil
		row[n] = value
		switch columns[n].Kind {
		case Text:
			if text, is := value.(string); is {
				ok = utf8.ValidString(text)
			}
		case Bigint:
			_, is := value.(int64)
			ok = ok || is
		case Boolean:
			_, is := value.(bool)
			ok = ok || is
		case Bytea:
			if raw, is := value.([]byte); is && raw != nil {
				row[n], ok = base64.StdEncoding.EncodeToString(raw), true
			}
		}
		if !ok {
			return nil, fmt.Errorf("column %s is %s, and the value is no such (%T)", columns[n].Name, columns[n].Kind, value)
		}
	}
	return line(row)
}

// decode is the row of a line. It has to be written just as encode writes it.
func decode(columns []Column, raw []byte) ([]any, error) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var row []any
	if err := decoder.Decode(&row); err != nil {
		return nil, err
	}
	if len(row) != len(columns) {
		return nil, fmt.Errorf("%d values for %d columns", len(row), len(columns))
	}
	for n, value := range row {
		var err error
		switch v := value.(type) {
		case json.Number:
			row[n], err = v.Int64()
		case string:
			if columns[n].Kind == Bytea {
				row[n], err = base64.StdEncoding.Strict().DecodeString(v)
			}
		}
		if err != nil {
			return nil, err
		}
	}
	again, err := encode(columns, row)
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(again, raw) {
		return nil, errors.New("it is written in another way than it should be")
	}
	return row, nil
}
