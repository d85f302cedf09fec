package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"throwbar.dev/throwbar/store/db"
	"throwbar.dev/throwbar/store/dump"
)

// ErrNotEmpty: an import is into an empty database only.
var ErrNotEmpty = errors.New("the database is not empty")

// Export writes all rows of all tables, as they are at one moment, in the format of package dump.
func (s *Store) Export(ctx context.Context, out io.Writer) ([]dump.Sum, error) {
	tx, err := s.reader.BeginTx(ctx, s.engine.snapshot())
	if err != nil {
		return nil, fmt.Errorf("export: %w", typed(err))
	}
	sums, err := s.export(ctx, tx, out)
	if err := errors.Join(err, tx.Rollback()); err != nil {
		return nil, fmt.Errorf("export: %w", err)
	}
	return sums, nil
}

func (s *Store) export(ctx context.Context, tx *sql.Tx, out io.Writer) ([]dump.Sum, error) {
	tables, schema, err := s.layout(ctx, tx)
	if err != nil {
		return nil, err
	}
	w := dump.NewWriter(out, schema)
	if err := exportRows(ctx, tx, tables, w); err != nil {
		return nil, err
	}
	return w.Close()
}

func exportRows(ctx context.Context, q db.DBTX, tables []table, w *dump.Writer) error {
	for _, t := range tables {
		if err := w.Table(t.dumped()); err != nil {
			return err
		}
		if err := t.each(ctx, q, w.Row); err != nil {
			return fmt.Errorf("table %s: %w", t.name, err)
		}
	}
	return nil
}

// layout gives the tables and the version of their migrations.
func (s *Store) layout(ctx context.Context, q db.DBTX) ([]table, int64, error) {
	tables, err := s.engine.tables(ctx, q)
	if err != nil {
		return nil, 0, err
	}
	var schema int64
	err = q.QueryRowContext(ctx, "select max(version_id) from goose_db_version").Scan(&schema)
	return tables, schema, typed(err)
}

func (t table) dumped() dump.Table {
	out := dump.Table{Name: t.name}
	for _, c := range t.columns {
		out.Columns = append(out.Columns, c.Column)
	}
	return out
}

func (t table) names() string {
	names := make([]string, len(t.columns))
	for n, c := range t.columns {
		names[n] = c.Name
	}
	return strings.Join(names, ", ")
}

// each gives the rows in the order of the key.
func (t table) each(ctx context.Context, q db.DBTX, give func([]any) error) error {
	statement := fmt.Sprintf("select %s from %s order by %s", t.names(), t.name, strings.Join(t.key, ", "))
	return each(ctx, q, statement, func(rows *sql.Rows) error {
		values, places := make([]any, len(t.columns)), make([]any, len(t.columns))
		for n, c := range t.columns {
			switch c.Kind {
			case dump.Text:
				places[n] = new(sql.NullString)
			case dump.Bigint:
				places[n] = new(sql.NullInt64)
			case dump.Boolean:
				places[n] = new(sql.NullBool)
			case dump.Bytea:
				places[n] = new([]byte)
			}
		}
		if err := rows.Scan(places...); err != nil {
			return err
		}
		for n, place := range places {
			switch v := place.(type) {
			case *sql.NullString:
				values[n] = orNil(v.String, v.Valid)
			case *sql.NullInt64:
				values[n] = orNil(v.Int64, v.Valid)
			case *sql.NullBool:
				values[n] = orNil(v.Bool, v.Valid)
			case *[]byte:
				values[n] = orNil(*v, *v != nil)
			}
		}
		return give(values)
	})
}

func orNil(value any, valid bool) any {
	if !valid {
		return nil
	}
	return value
}

// Import fills an empty database with what Export wrote, from either engine, all or nothing: in one transaction, in which
// the rows are counted and summed as they come in and once more as the database gives them back. It is called instead of
// Run: the store can only be closed after it. After an error nothing was written, unless it is ErrUnknown.
func (s *Store) Import(ctx context.Context, in io.Reader) ([]dump.Sum, error) {
	if !s.queue.begin() {
		return nil, errors.New("import: the store's writer runs or ran already")
	}
	defer s.queue.end()
	sums, err := s.transfer(ctx, in)
	if err != nil {
		return nil, fmt.Errorf("import: %w", err)
	}
	return sums, nil
}

func (s *Store) transfer(ctx context.Context, in io.Reader) ([]dump.Sum, error) {
	session := s.writer.session
	tx, err := session.begin(Synced)
	if err != nil {
		return nil, typed(err)
	}
	sums, err := s.fill(ctx, tx, in)
	if err != nil {
		session.rollback()
		return nil, typed(err)
	}
	err = session.commit()
	if err == nil {
		return sums, nil
	}
	if !session.lost() {
		session.rollback()
		return nil, typed(err)
	}
	committed, failed := session.restore(s.writer.reconnect)
	switch {
	case failed != nil:
		return nil, &Error{Kind: ErrUnknown, Cause: errors.Join(err, failed)}
	case !committed:
		return nil, &Error{Kind: ErrUnavailable, Cause: err}
	}
	return sums, nil
}

func (s *Store) fill(ctx context.Context, tx db.DBTX, in io.Reader) ([]dump.Sum, error) {
	tables, schema, err := s.layout(ctx, tx)
	if err != nil {
		return nil, err
	}
	counts, err := countRows(ctx, tx, tables)
	if err != nil {
		return nil, err
	}
	for _, t := range counts {
		if t.Rows > 0 {
			return nil, fmt.Errorf("%w: %s has %d rows; import into a new one", ErrNotEmpty, t.Name, t.Rows)
		}
	}
	r, err := dump.NewReader(in, dump.Limits{})
	if err != nil {
		return nil, err
	}
	switch {
	case r.Schema > schema:
		return nil, fmt.Errorf("%w: its database has version %d, this one %d", dump.ErrNewer, r.Schema, schema)
	case r.Schema < schema:
		return nil, fmt.Errorf("the export is of an older throwbar (database version %d, here %d): import it with that, and "+
			"start this one on the result, which brings it up to date", r.Schema, schema)
	}
	if err := importRows(ctx, tx, tables, r); err != nil {
		return nil, err
	}
	// What the database has now, and not only what it was given.
	w := dump.NewWriter(io.Discard, schema)
	if err := exportRows(ctx, tx, tables, w); err != nil {
		return nil, fmt.Errorf("read again: %w", err)
	}
	sums, err := w.Close()
	if err != nil {
		return nil, fmt.Errorf("read again: %w", err)
	}
	if !slices.Equal(sums, r.Sums()) {
		return nil, fmt.Errorf("the database gives back other rows than it was given: %v, not %v", sums, r.Sums())
	}
	return sums, nil
}

func importRows(ctx context.Context, tx db.DBTX, tables []table, r *dump.Reader) error {
	for {
		t, err := r.Table()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		n := slices.IndexFunc(tables, func(own table) bool { return own.name == t.Name })
		if n < 0 || !slices.Equal(tables[n].dumped().Columns, t.Columns) {
			return fmt.Errorf("%w: it has a table %s that is not as here", dump.ErrDamaged, t.Name)
		}
		if err := importTable(ctx, tx, tables[n], r); err != nil {
			return fmt.Errorf("table %s: %w", t.Name, err)
		}
	}
	if len(r.Sums()) != len(tables) {
		return fmt.Errorf("%w: it has %d tables, not %d", dump.ErrDamaged, len(r.Sums()), len(tables))
	}
	return nil
}

func importTable(ctx context.Context, tx db.DBTX, t table, r *dump.Reader) (err error) {
	places := make([]string, len(t.columns))
	for n := range places {
		places[n] = fmt.Sprint("$", n+1)
	}
	insert, err := tx.PrepareContext(ctx, fmt.Sprintf("insert into %s (%s) values (%s)", t.name, t.names(), strings.Join(places, ", ")))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, insert.Close()) }()
	for n := 1; ; n++ {
		values, err := r.Row()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if _, err := insert.ExecContext(ctx, values...); err != nil {
			return fmt.Errorf("row %d: %w", n, err)
		}
	}
}
