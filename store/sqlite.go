package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/mattn/go-sqlite3"
	"github.com/pressly/goose/v3"

	"throwbar.dev/throwbar/store/db"
)

const (
	databaseName = "throwbar.db"
	// statementCache is how many prepared statements a connection keeps: more than there are in queries/.
	statementCache = "128"
)

// writerSetup lets the write-ahead log grow to 64 MiB before it is moved into the database: at the usual 4 MiB a command
// in a hundred took ten times as long. On Apple's systems it makes a sync reach the disk; elsewhere it does nothing.
const writerSetup = `pragma wal_autocheckpoint = 16000; pragma fullfsync = 1; pragma checkpoint_fullfsync = 1`

// connector opens connections without a name in the global list of drivers.
type connector struct {
	driver sqlite3.SQLiteDriver
	dsn    string
}

func newConnector(path string, settings url.Values, setup string) *connector {
	c := &connector{dsn: dsn(path, settings)}
	if setup != "" {
		c.driver.ConnectHook = func(conn *sqlite3.SQLiteConn) error {
			_, err := conn.Exec(setup, nil)
			return err
		}
	}
	return c
}

// Connect opens one connection.
func (c *connector) Connect(context.Context) (driver.Conn, error) {
	conn, err := c.driver.Open(c.dsn)
	if err != nil {
		return nil, err
	}
	raw, ok := conn.(*sqlite3.SQLiteConn)
	if !ok {
		return nil, errors.Join(fmt.Errorf("connection is a %T", conn), conn.Close())
	}
	return checkedConn{raw}, nil
}

// checkedConn refuses text that PostgreSQL cannot hold, so that what one engine takes the other does too.
type checkedConn struct{ *sqlite3.SQLiteConn }

// CheckNamedValue looks at a parameter before it is bound.
func (checkedConn) CheckNamedValue(value *driver.NamedValue) error {
	if err := checkText(value); err != nil {
		return err
	}
	return driver.ErrSkip // to what is done with any parameter
}

// checkText is for both engines: PostgreSQL would say the same in other words, and when the transaction has failed.
func checkText(value *driver.NamedValue) error {
	if text, ok := value.Value.(string); ok && (!utf8.ValidString(text) || strings.ContainsRune(text, 0)) {
		return &Error{Kind: ErrRefused, Cause: errors.New("text with a zero byte, or that is no UTF-8")}
	}
	return nil
}

// Driver is SQLite's.
func (c *connector) Driver() driver.Driver { return &c.driver }

// dsn is the file as a URI, so that any path works, with the settings of a connection. The URI has no authority: the first
// folder of a path that is not absolute would be taken for one.
func dsn(path string, settings url.Values) string {
	file := url.URL{Scheme: "file", OmitHost: true, Path: filepath.ToSlash(path), RawQuery: settings.Encode()}
	return file.String()
}

// openWriter opens the pool of one connection. A second writer would wait unfairly, or be told "database is locked".
func openWriter(path string) *sql.DB {
	pool := sql.OpenDB(newConnector(path, url.Values{
		"_txlock":          {"immediate"},
		"_journal_mode":    {"wal"},
		"_synchronous":     {"full"},
		"_busy_timeout":    {"5000"},
		"_foreign_keys":    {"1"},
		"_cache_size":      {"-32000"},
		"_stmt_cache_size": {statementCache},
	}, writerSetup))
	pool.SetMaxOpenConns(1)
	return pool
}

// openReaders opens a pool that cannot write: neither the file nor the connection would let it.
func openReaders(path string, n int) *sql.DB {
	pool := sql.OpenDB(newConnector(path, url.Values{
		"mode":             {"ro"},
		"_query_only":      {"1"},
		"_busy_timeout":    {"5000"},
		"_cache_size":      {"-8000"},
		"_stmt_cache_size": {statementCache},
	}, ""))
	pool.SetMaxOpenConns(n)
	pool.SetMaxIdleConns(n)
	return pool
}

// makeFile sees to it that only this user can read the file. SQLite gives its other files the same rights.
func makeFile(path string) error {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return os.Chmod(path, 0o600)
	}
	if err != nil {
		return err
	}
	return file.Close()
}

// sqliteEngine is one file in a folder that it has locked.
type sqliteEngine struct {
	dir, path string
	readers   int
	maxPages  int
	lock      *os.File
	pool      *sql.DB
}

func newSQLite(config Config) (*sqliteEngine, error) {
	if config.Dir == "" {
		return nil, errors.New("no folder is given")
	}
	dir, err := filepath.Abs(config.Dir)
	if err != nil {
		return nil, err
	}
	return &sqliteEngine{
		dir: dir, path: filepath.Join(dir, databaseName), readers: config.Readers, maxPages: config.MaxPages,
	}, nil
}

func (e *sqliteEngine) name() string { return e.path }

func (e *sqliteEngine) open(ctx context.Context) (session, *sql.DB, error) {
	if err := os.MkdirAll(e.dir, 0o700); err != nil {
		return nil, nil, fmt.Errorf("make folder of the store: %w", err)
	}
	var err error
	if e.lock, err = lockDir(e.dir); err != nil {
		return nil, nil, err
	}
	if err := makeFile(e.path); err != nil {
		return nil, nil, err
	}
	e.pool = openWriter(e.path)
	if err := migrate(ctx, goose.DialectSQLite3, e.pool); err != nil {
		return nil, nil, fmt.Errorf("migrate: %w", err)
	}
	conn, err := e.pool.Conn(ctx)
	if err != nil {
		return nil, nil, err
	}
	writing := &sqliteSession{conn: conn, level: Synced} // as openWriter has set it
	if e.maxPages > 0 {
		if err := writing.exec(fmt.Sprintf("pragma max_page_count = %d", e.maxPages)); err != nil {
			return nil, nil, errors.Join(fmt.Errorf("limit pages: %w", err), conn.Close())
		}
	}
	reader := openReaders(e.path, e.readers)
	if err := reader.PingContext(ctx); err != nil {
		return nil, nil, errors.Join(err, reader.Close(), conn.Close())
	}
	return writing, reader, nil
}

// snapshot needs no options: every transaction of SQLite sees one state.
func (e *sqliteEngine) snapshot() *sql.TxOptions { return nil }

func (e *sqliteEngine) close() error {
	var errs []error
	if e.pool != nil {
		errs = append(errs, e.pool.Close())
	}
	if e.lock != nil {
		errs = append(errs, unlockDir(e.lock))
	}
	return errors.Join(errs...)
}

// sqliteSession is a connection that no network can cut.
type sqliteSession struct {
	conn  *sql.Conn
	level Level
}

func (s *sqliteSession) begin(level Level) (db.DBTX, error) {
	if level != s.level {
		statement := "pragma synchronous = normal"
		if level == Synced {
			statement = "pragma synchronous = full"
		}
		if err := s.exec(statement); err != nil {
			return nil, err
		}
		s.level = level
	}
	return s.conn, s.exec("begin immediate")
}

func (s *sqliteSession) commit() error { return s.exec("commit") }

// rollback has nothing to roll back if the disk was full.
func (s *sqliteSession) rollback() { _ = s.exec("rollback") }

func (s *sqliteSession) lost() bool { return false }

func (s *sqliteSession) restore(time.Duration) (bool, error) { return false, nil }

func (s *sqliteSession) close() error { return s.conn.Close() }

func (s *sqliteSession) exec(statement string) error {
	_, err := s.conn.ExecContext(context.Background(), statement)
	return err
}
