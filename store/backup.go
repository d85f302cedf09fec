package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
)

// Backup writes a whole, compact copy of the database as it is now to a new file, while writes go on. The file is there
// only when it is complete and on disk.
func (s *Store) Backup(ctx context.Context, path string) error {
	if err := s.backup(ctx, path); err != nil {
		return fmt.Errorf("back up to %s: %w", path, err)
	}
	return nil
}

func (s *Store) backup(ctx context.Context, path string) (err error) {
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(fs.ErrExist, err)
	}
	part, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.part") // only this user can read it
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(part.Name()))
		}
	}()
	if err := part.Close(); err != nil {
		return err
	}
	if err := s.vacuumInto(ctx, part.Name()); err != nil {
		return typed(err)
	}
	if err := syncFile(part.Name()); err != nil {
		return err
	}
	if err := os.Rename(part.Name(), path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// vacuumInto has a connection of its own, so that a long backup takes none from the readers.
func (s *Store) vacuumInto(ctx context.Context, path string) error {
	pool := sql.OpenDB(newConnector(s.path, url.Values{"mode": {"ro"}, "_busy_timeout": {"5000"}}, ""))
	_, err := pool.ExecContext(ctx, "vacuum into ?", path)
	return errors.Join(err, pool.Close())
}

func syncFile(path string) error {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(file.Sync(), file.Close())
}
