package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"

	"throwbar.dev/throwbar/store/db"
)

// Copy says what a backup holds.
type Copy struct {
	// Bytes is the size of the file.
	Bytes int64
	// Tables are the tables and how many rows they have.
	Tables []TableRows
}

// TableRows is a table and how many rows it has.
type TableRows struct {
	Name string
	Rows int64
}

// Backup writes a whole, compact copy of the database as it is now to a new file, while writes go on. The file is there
// only when it is complete and on disk. PostgreSQL has a program of its own for that: the error says so.
func (s *Store) Backup(ctx context.Context, path string) error {
	if err := s.engine.backup(ctx, path); err != nil {
		return fmt.Errorf("back up to %s: %w", path, err)
	}
	return nil
}

func (e *sqliteEngine) backup(ctx context.Context, path string) error {
	return copyFile(ctx, e.path, "ro", path, func(string) error { return nil })
}

// BackupDir is Backup for a program that has not opened the store, beside a server that runs or without one. It reads
// the copy before it gives it its name. It must not be called in the process of the server: to close the file there
// would free the server's locks on it.
func BackupDir(ctx context.Context, dir, path string) (Copy, error) {
	copied, err := backupDir(ctx, dir, path)
	if err != nil {
		return Copy{}, fmt.Errorf("back up to %s: %w", path, err)
	}
	return copied, nil
}

func backupDir(ctx context.Context, dir, path string) (copied Copy, err error) {
	source := filepath.Join(dir, databaseName)
	if _, err := os.Stat(source); err != nil {
		return Copy{}, fmt.Errorf("there is no database: %w", err)
	}
	// A server that runs shares the log of its changes. Where none runs the log may have to be made, or what a killed
	// server has left in it be taken up, which only one that writes can do; the lock keeps a server from starting then.
	mode := "rw"
	lock, err := lockDir(dir)
	switch {
	case errors.Is(err, ErrLocked):
		mode = "ro"
	case err != nil:
		return Copy{}, err
	default:
		defer func() { err = errors.Join(err, unlockDir(lock)) }()
	}
	err = copyFile(ctx, source, mode, path, func(part string) error {
		copied, err = verify(ctx, part)
		return err
	})
	return copied, err
}

func copyFile(ctx context.Context, source, mode, path string, check func(part string) error) error {
	return newFile(path, func(part *os.File) error {
		if err := vacuumInto(ctx, source, mode, part.Name()); err != nil {
			return typed(err)
		}
		if err := check(part.Name()); err != nil {
			return fmt.Errorf("verify: %w", err)
		}
		return nil
	})
}

// vacuumInto has a connection of its own, so that a long backup takes none from the readers.
func vacuumInto(ctx context.Context, source, mode, path string) error {
	pool := sql.OpenDB(newConnector(source, url.Values{"mode": {mode}, "_busy_timeout": {"5000"}}, ""))
	_, err := pool.ExecContext(ctx, "vacuum into ?", path)
	return errors.Join(err, pool.Close())
}

// verify reads a copy that nothing else has opened.
func verify(ctx context.Context, path string) (copied Copy, err error) {
	pool := sql.OpenDB(newConnector(path, url.Values{"mode": {"ro"}, "immutable": {"1"}}, ""))
	defer func() { err = errors.Join(err, pool.Close()) }()
	var verdict string
	if err := pool.QueryRowContext(ctx, "pragma integrity_check").Scan(&verdict); err != nil {
		return Copy{}, typed(err)
	}
	if verdict != "ok" {
		return Copy{}, &Error{Kind: ErrDamaged, Cause: errors.New(verdict)}
	}
	tables, err := (&sqliteEngine{}).tables(ctx, pool)
	if err != nil {
		return Copy{}, err
	}
	if copied.Tables, err = countRows(ctx, pool, tables); err != nil {
		return Copy{}, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return Copy{}, err
	}
	copied.Bytes = info.Size()
	return copied, nil
}

func countRows(ctx context.Context, q db.DBTX, tables []table) ([]TableRows, error) {
	counts := make([]TableRows, len(tables))
	for n, t := range tables {
		counts[n].Name = t.name
		if err := q.QueryRowContext(ctx, "select count(*) from "+t.name).Scan(&counts[n].Rows); err != nil {
			return nil, fmt.Errorf("count rows of %s: %w", t.name, typed(err))
		}
	}
	return counts, nil
}
