package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"throwbar.dev/throwbar/store/dump"
)

// ExportFile opens a database that no server uses, and writes an export to a new file, which has its name only when it
// is complete, on disk, and was read back.
func ExportFile(ctx context.Context, config Config, path string) (sums []dump.Sum, err error) {
	if config.URL == "" {
		if _, err := os.Stat(filepath.Join(config.Dir, databaseName)); err != nil {
			return nil, fmt.Errorf("there is no database: %w", err)
		}
	}
	s, err := Open(ctx, config)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	err = newFile(path, func(part *os.File) error {
		if sums, err = s.Export(ctx, part); err != nil {
			return err
		}
		if _, err := part.Seek(0, io.SeekStart); err != nil {
			return err
		}
		return readBack(part)
	})
	if err != nil {
		return nil, fmt.Errorf("export to %s: %w", path, err)
	}
	return sums, nil
}

// readBack reads an export to its end, which says itself whether it is whole.
func readBack(in io.Reader) error {
	r, err := dump.NewReader(in, dump.Limits{})
	for err == nil {
		if _, err = r.Table(); err != nil {
			break
		}
		for err == nil {
			_, err = r.Row()
		}
		if errors.Is(err, io.EOF) {
			err = nil
		}
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// ImportFile opens a database that no server uses, and fills it with an export.
func ImportFile(ctx context.Context, config Config, path string) (sums []dump.Sum, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	s, err := Open(ctx, config)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return s.Import(ctx, file)
}

// newFile makes a file that only this user can read, under another name until it is written.
func newFile(path string, write func(*os.File) error) (err error) {
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(fs.ErrExist, err)
	}
	part, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.part")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(part.Name()))
		}
	}()
	if err := errors.Join(write(part), part.Sync(), part.Close()); err != nil {
		return err
	}
	if err := moveNew(part.Name(), path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// moveNew renames a file, and replaces none that came meanwhile where the file system has links.
func moveNew(from, to string) error {
	err := os.Link(from, to)
	if errors.Is(err, fs.ErrExist) {
		return err
	}
	if err != nil {
		return os.Rename(from, to)
	}
	return os.Remove(from)
}

// Look says in one line which engine a database has and that it answers, whether or not a server uses it. It changes
// nothing. The error is fs.ErrNotExist if SQLite has no file there yet. It must not be called in the process of the
// server; see BackupDir.
func Look(ctx context.Context, config Config) (string, error) {
	if config.URL != "" {
		return lookPostgres(ctx, config)
	}
	path := filepath.Join(config.Dir, databaseName)
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	// Without a log there is no server, and to make one is to write.
	settings := url.Values{"mode": {"ro"}, "_busy_timeout": {"5000"}}
	if _, err := os.Stat(path + "-wal"); errors.Is(err, fs.ErrNotExist) {
		settings.Set("immutable", "1")
	}
	pool := sql.OpenDB(newConnector(path, settings, ""))
	version, schema, took, err := ask(ctx, pool, "select sqlite_version()")
	if err := errors.Join(err, pool.Close()); err != nil {
		return "", fmt.Errorf("SQLite at %s: %w", path, err)
	}
	return fmt.Sprintf("SQLite %s at %s, %d KiB, schema %d, answers in %s", version, path, info.Size()>>10, schema, took), nil
}

func lookPostgres(ctx context.Context, config Config) (string, error) {
	e, err := newPostgres(config)
	if err != nil {
		return "", err
	}
	pool := openPool(e.config)
	version, schema, took, err := ask(ctx, pool, "select current_setting('server_version')")
	if err != nil {
		err = &connecting{err}
	}
	if err := errors.Join(err, pool.Close()); err != nil {
		return "", fmt.Errorf("PostgreSQL at %s: %w", e.name(), err)
	}
	return fmt.Sprintf("PostgreSQL %s at %s, schema %d, answers in %s", version, e.name(), schema, took), nil
}

// ask gives the version of the engine and of the migrations, 0 if there are none yet.
func ask(ctx context.Context, pool *sql.DB, query string) (version string, schema int64, took time.Duration, err error) {
	if err := pool.PingContext(ctx); err != nil {
		return "", 0, 0, typed(err)
	}
	start := time.Now()
	if err := pool.QueryRowContext(ctx, query).Scan(&version); err != nil {
		return "", 0, 0, typed(err)
	}
	took = time.Since(start).Round(100 * time.Microsecond)
	if err := pool.QueryRowContext(ctx, "select coalesce(max(version_id), 0) from goose_db_version").Scan(&schema); err != nil {
		schema = 0 // nothing was ever migrated here
	}
	return version, schema, took, nil
}
