package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
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
	// Dir is the folder of SQLite's database. It is made if it is not there. It is not used if URL is set.
	Dir string
	// URL is PostgreSQL's database, postgres://user:password@host:port/name. What it leaves out is taken from PostgreSQL's
	// own variables and password file. If it is empty the engine is SQLite.
	URL string
	// Reconnect is how long the writer tries to get a lost connection back before it answers the writes in hand with
	// ErrUnavailable or ErrUnknown; 10 s by default. SQLite has none to lose.
	Reconnect time.Duration
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
	if c.Reconnect <= 0 {
		c.Reconnect = 10 * time.Second
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
	engine engine
	reader *sql.DB
	reads  *db.Queries
	queue  *queue
	writer *writer // of whom the queue has given a group to
	direct bool    // callers who are alone apply their own ops: the database is a file, and no answer is waited for long

	closing  sync.Once
	closeErr error // set by closing
}

// engine is one of the two databases: what they do differently, beside session.
type engine interface {
	// open takes the database for this process, migrates it, and gives the connection that writes and the pool that
	// cannot. What it has opened when it fails, close closes.
	open(ctx context.Context) (session, *sql.DB, error)
	// name is where the database is, for messages: it has no secret.
	name() string
	// snapshot are the options of a transaction that sees one state.
	snapshot() *sql.TxOptions
	// tables are those of the owners in an order in which rows can be inserted.
	tables(ctx context.Context, q db.DBTX) ([]table, error)
	// backup makes a copy of the database.
	backup(ctx context.Context, path string) error
	// close frees the database.
	close() error
}

// session is the connection that writes. It belongs to the writer's goroutine.
type session interface {
	// begin begins a transaction, and gives what its statements go to.
	begin(level Level) (db.DBTX, error)
	commit() error
	// rollback has nothing to roll back where the database has done so itself; that is no error.
	rollback()
	// lost says that the connection is gone, and with it the transaction, unless its commit was on the way.
	lost() bool
	// restore tries for this long to connect again, and says whether the transaction begun last was committed.
	restore(wait time.Duration) (committed bool, err error)
	close() error
}

// Open takes the database for this process, opens and migrates it. If another server uses it the error is ErrLocked. Close
// the store in the end.
func Open(ctx context.Context, config Config) (*Store, error) {
	config = config.withDefaults()
	s := &Store{queue: newQueue(config), direct: config.URL == ""}
	var err error
	if s.engine, err = newEngine(config); err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	if err := s.open(ctx, config); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

func newEngine(config Config) (engine, error) {
	if config.URL != "" {
		return newPostgres(config)
	}
	return newSQLite(config)
}

func (s *Store) open(ctx context.Context, config Config) error {
	writing, reader, err := s.engine.open(ctx)
	if errors.Is(err, ErrLocked) { // it is a whole sentence, for the person who started the second server
		return err
	}
	if err != nil {
		return fmt.Errorf("open %s: %w", s.engine.name(), typed(err))
	}
	s.writer = newWriter(writing, config)
	s.reader, s.reads = reader, db.New(reader)
	return nil
}

// Name is where the database is, without a secret.
func (s *Store) Name() string { return s.engine.name() }

// Read gives queries over the pool that cannot write. Each query sees what was committed when it began.
func (s *Store) Read() *db.Queries { return s.reads }

// ReadTx runs several queries over one unchanging state of the database.
func (s *Store) ReadTx(ctx context.Context, read func(*db.Queries) error) error {
	tx, err := s.reader.BeginTx(ctx, s.engine.snapshot())
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
		errs = append(errs, s.writer.session.close())
	}
	return errors.Join(append(errs, s.engine.close())...)
}
