package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"throwbar.dev/throwbar/store/db"
)

// Level is how much an answered write survives.
type Level int

// The levels.
const (
	// Fast survives a kill of the process, not a power cut (synchronous=NORMAL).
	Fast Level = iota
	// Synced is on disk before Write returns (synchronous=FULL).
	Synced
)

// Config says where the store is and how it works. Zero values stand for the defaults.
type Config struct {
	// Dir is the folder of the database. It is made if it is not there.
	Dir string
	// Readers is how many connections read at once; by default the number of CPUs, at least 4.
	Readers int
	// Delay is how long a WriteLater may wait for company; 5 ms by default.
	Delay time.Duration
	// Queue is how many writes may wait; 65,536 by default. Further ones are refused with ErrOverloaded.
	Queue int
	// Batch is how many writes share a transaction at most; 256 by default.
	Batch int
	// MaxPages is how many pages (of 4 KiB) the file of SQLite may have; no limit if it is 0. Writes that need more are
	// answered with ErrDiskFull. A limit below what is used already is taken for that.
	MaxPages int
	// Fault is for tests of disks that fail; nil by default. The writer calls it before a transaction begins ("begin")
	// and before it is committed ("commit"), and takes an error for the database's: it rolls back, and if the transaction
	// was a group's, it runs the ops one by one, calling Fault again for each. It is called by one goroutine at a time.
	Fault func(stage string) error
}

func (c Config) withDefaults() Config {
	if c.Readers <= 0 {
		c.Readers = max(4, runtime.NumCPU())
	}
	if c.Delay <= 0 {
		c.Delay = 5 * time.Millisecond
	}
	if c.Queue <= 0 {
		c.Queue = 1 << 16
	}
	if c.Batch <= 0 {
		c.Batch = 256
	}
	return c
}

// Store is an open database. Its methods may be called by any goroutine.
type Store struct {
	path   string
	lock   *os.File
	pool   *sql.DB
	reader *sql.DB
	reads  *db.Queries
	queue  *queue
	writer *writer // used by Run's goroutine only

	closing  sync.Once
	closeErr error // set by closing
}

// Open locks the folder, opens the database in it and migrates it. If another server uses the folder the error is
// ErrLocked. Close the store in the end.
func Open(ctx context.Context, config Config) (*Store, error) {
	config = config.withDefaults()
	if config.Dir == "" {
		return nil, errors.New("open store: no folder is given")
	}
	dir, err := filepath.Abs(config.Dir)
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make folder of the store: %w", err)
	}
	lock, err := lockDir(dir)
	if err != nil {
		return nil, err
	}
	s := &Store{path: filepath.Join(dir, databaseName), lock: lock, queue: newQueue(config)}
	if err := s.open(ctx, config); err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", s.path, typed(err)), s.close())
	}
	return s, nil
}

func (s *Store) open(ctx context.Context, config Config) error {
	if err := makeFile(s.path); err != nil {
		return err
	}
	s.pool = openWriter(s.path)
	if err := migrate(ctx, s.pool); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	conn, err := s.pool.Conn(ctx)
	if err != nil {
		return err
	}
	s.writer = newWriter(conn, config.Fault)
	if config.MaxPages > 0 {
		if err := s.writer.exec(fmt.Sprintf("pragma max_page_count = %d", config.MaxPages)); err != nil {
			return fmt.Errorf("limit pages: %w", err)
		}
	}
	s.reader = openReaders(s.path, config.Readers)
	s.reads = db.New(s.reader)
	return s.reader.PingContext(ctx)
}

// Read gives queries over the pool that cannot write. Each query sees what was committed when it began.
func (s *Store) Read() *db.Queries { return s.reads }

// ReadTx runs several queries over one unchanging state of the database.
func (s *Store) ReadTx(ctx context.Context, read func(*db.Queries) error) error {
	tx, err := s.reader.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("begin reading: %w", typed(err))
	}
	err = read(s.reads.WithTx(tx))
	if end := tx.Rollback(); err == nil && end != nil {
		return fmt.Errorf("end reading: %w", end)
	}
	return err
}

// Close closes the database and frees the folder. Call it when Run has returned and nobody reads; while Run is running
// it does nothing but say so. Writes that still wait because Run never ran are answered with ErrClosed. A second call
// does nothing.
func (s *Store) Close() error {
	if !s.queue.close() {
		return errors.New("close store: its writer is still running")
	}
	s.closing.Do(func() { s.closeErr = s.close() })
	return s.closeErr
}

func (s *Store) close() error {
	var errs []error
	if s.reader != nil {
		errs = append(errs, s.reader.Close())
	}
	if s.writer != nil {
		errs = append(errs, s.writer.conn.Close())
	}
	if s.pool != nil {
		errs = append(errs, s.pool.Close())
	}
	if s.lock != nil {
		errs = append(errs, unlockDir(s.lock))
	}
	return errors.Join(errs...)
}
