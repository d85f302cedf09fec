package dump

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"
)

func sample(tb testing.TB, rows [][]any) []byte {
	tb.Helper()
	var out bytes.Buffer
	w := NewWriter(&out, 7)
	table := Table{Name: "t", Columns: []Column{{"a", Text}, {"b", Bigint}, {"c", Boolean}, {"d", Bytea}}}
	if err := w.Table(table); err != nil {
		tb.Fatal(err)
	}
	for _, row := range rows {
		if err := w.Row(row); err != nil {
			tb.Fatal(err)
		}
	}
	if err := w.Table(Table{Name: "empty", Columns: []Column{{"x", Text}}}); err != nil {
		tb.Fatal(err)
	}
	if sums, err := w.Close(); err != nil || len(sums) != 2 || sums[0].Rows != int64(len(rows)) || sums[1].Rows != 0 {
		tb.Fatal(sums, err)
	}
	return out.Bytes()
}

func rowsOfSample() [][]any {
	return [][]any{
		{"", int64(0), false, []byte{}},
		{"<&>\u2028\x00\x7f\ufffd", int64(-1 << 63), true, []byte{0, 255}},
		{nil, nil, nil, nil},
		{strings.Repeat("x", 1<<17), int64(1<<63 - 1), true, bytes.Repeat([]byte{7}, 1<<17)},
	}
}

// readAll reads an export to its end.
func readAll(in io.Reader, limits Limits) (rows [][]any, err error) {
	r, err := NewReader(in, limits)
	if err != nil {
		return nil, err
	}
	for {
		if _, err := r.Table(); errors.Is(err, io.EOF) {
			return rows, nil
		} else if err != nil {
			return nil, err
		}
		for {
			row, err := r.Row()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return nil, err
			}
			rows = append(rows, row)
		}
	}
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	t.Parallel()
	rows, err := readAll(bytes.NewReader(sample(t, rowsOfSample())), Limits{})
	if err != nil || !reflect.DeepEqual(rows, rowsOfSample()) {
		t.Errorf("%v, %v", rows, err)
	}
	if !bytes.Equal(sample(t, rowsOfSample()), sample(t, rowsOfSample())) {
		t.Error("the same rows are written in two ways")
	}
}

func TestWhatCannotBeWritten(t *testing.T) {
	t.Parallel()
	for _, row := range [][]any{
		{"\xff", int64(1), true, []byte{}},
		{"x", 1, true, []byte{}},
		{"x", int64(1), int64(1), []byte{}},
		{"x", int64(1), true, "x"},
		{"x", int64(1), true, []byte(nil)},
		{"x", int64(1), true},
	} {
		w := NewWriter(io.Discard, 1)
		if err := w.Row(row); err == nil {
			t.Error("a row before a table")
		}
		if err := w.Table(Table{Name: "t", Columns: []Column{{"a", Text}, {"b", Bigint}, {"c", Boolean}, {"d", Bytea}}}); err != nil {
			t.Fatal(err)
		}
		if err := w.Row(row); err == nil {
			t.Errorf("%v was written", row)
		}
	}
}

// TestCutAndFlipped cuts the file at each place and flips a bit of each byte: none of it is read to its end. The bytes
// of gzip's own header that say when and where a file was packed are no part of the export.
func TestCutAndFlipped(t *testing.T) {
	t.Parallel()
	whole := sample(t, rowsOfSample()[:3])
	for n := range whole {
		if _, err := readAll(bytes.NewReader(whole[:n]), Limits{}); !errors.Is(err, ErrDamaged) {
			t.Fatalf("cut at %d: %v", n, err)
		}
	}
	for n := 10; n < len(whole); n++ {
		bad := bytes.Clone(whole)
		bad[n] ^= 1 << (n % 8)
		if _, err := readAll(bytes.NewReader(bad), Limits{}); err == nil {
			t.Fatalf("bit %d of byte %d is not missed", n%8, n)
		}
	}
}

// TestLimits: a small file may say that it is a large one.
func TestLimits(t *testing.T) {
	t.Parallel()
	var bomb bytes.Buffer
	w := gzip.NewWriter(&bomb)
	if _, err := io.WriteString(w, `{"throwbar":"export","format":1,"schema":1}`+"\n"); err != nil {
		t.Fatal(err)
	}
	for range 64 {
		if _, err := w.Write(make([]byte, 1<<20)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := readAll(bytes.NewReader(bomb.Bytes()), Limits{Line: 1 << 20}); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "longer than") {
		t.Errorf("a line: %v", err)
	}
	if _, err := readAll(bytes.NewReader(sample(t, rowsOfSample())), Limits{Total: 1 << 17}); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "longer than") {
		t.Errorf("the whole: %v", err)
	}
}

// FuzzReader gives the reader what may have been packed by anyone: the text as it is, and as the rows of a table whose
// sums are right. What it reads to the end comes out as it went in when it is written again.
func FuzzReader(f *testing.F) {
	f.Add([]byte("[\"a\",1,true,\"AAE=\"]\n[null,null,null,null]\n"))
	f.Add([]byte("[\"\\ud800\",1.0,true,\"AAF=\"]\n"))
	f.Add([]byte("[\"a\", 1, true, \"\"]\n{\"end\":\"t\",\"rows\":0,\"sha256\":\"\"}\n"))
	f.Add([]byte(head + "{\"table\":\"t\",\"columns\":[{\"name\":\"a\",\"type\":\"text\"}]}\n[\"x\"]\n"))
	f.Add([]byte("[[[[[["))
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, plain := range [][]byte{text, enclosed(text)} {
			r, err := NewReader(bytes.NewReader(packed(t, plain)), Limits{Line: 1 << 16, Total: 1 << 18})
			if err != nil {
				continue
			}
			var again bytes.Buffer
			out := NewWriter(&again, r.Schema)
			if err := copyAll(r, out); err != nil {
				continue
			}
			if _, err := out.Close(); err != nil {
				t.Fatal(err)
			}
			zip, err := gzip.NewReader(&again)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := io.ReadAll(zip); err != nil || !bytes.Equal(got, plain) {
				t.Fatalf("%q was read, %q is written, %v", plain, got, err)
			}
		}
		_, _ = NewReader(bytes.NewReader(text), Limits{Line: 1 << 16, Total: 1 << 18}) // what is no gzip at all
	})
}

// TestTheFuzzerGetsThrough: its enclosed rows are read to the end if they are as they should be.
func TestTheFuzzerGetsThrough(t *testing.T) {
	t.Parallel()
	good := packed(t, enclosed([]byte("[\"a\",1,true,\"AAE=\"]\n")))
	if rows, err := readAll(bytes.NewReader(good), Limits{}); err != nil || len(rows) != 1 {
		t.Errorf("%v, %v", rows, err)
	}
	for _, row := range []string{"[\"\\ud800\",1,true,\"\"]\n", "[\"a\",1.0,true,\"\"]\n", "[\"a\",1,true,\"AAF=\"]\n", "[\"a\", 1,true,\"\"]\n"} {
		if _, err := readAll(bytes.NewReader(packed(t, enclosed([]byte(row)))), Limits{}); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v", row, err)
		}
	}
}

const head = `{"throwbar":"export","format":1,"schema":1}` + "\n"

// enclosed makes an export of rows.
func enclosed(rows []byte) []byte {
	text := head + `{"table":"t","columns":[{"name":"a","type":"text"},{"name":"b","type":"bigint"},{"name":"c","type":"boolean"},` +
		`{"name":"d","type":"bytea"}]}` + "\n" + string(rows)
	count := bytes.Count(rows, []byte("\n"))
	text += fmt.Sprintf(`{"end":"t","rows":%d,"sha256":"%x"}`+"\n", count, sha256.Sum256(rows))
	return fmt.Appendf([]byte(text), `{"tables":1,"rows":%d,"sha256":"%x"}`+"\n", count, sha256.Sum256([]byte(text)))
}

func packed(t *testing.T, text []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.NoCompression)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func copyAll(r *Reader, w *Writer) error {
	for {
		table, err := r.Table()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := w.Table(table); err != nil {
			return err
		}
		for {
			row, err := r.Row()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return err
			}
			if err := w.Row(row); err != nil {
				return err
			}
		}
	}
}
