package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"

	"github.com/mattn/go-sqlite3"
	"github.com/pressly/goose/v3"
)

//go:embed migrations/sqlite/*.sql
var migrations embed.FS

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
func (c *connector) Connect(context.Context) (driver.Conn, error) { return c.driver.Open(c.dsn) }

// Driver is SQLite's.
func (c *connector) Driver() driver.Driver { return &c.driver }

// dsn is the file as a URI, so that any path works, with the settings of a connection.
func dsn(path string, settings url.Values) string {
	file := url.URL{Scheme: "file", Path: filepath.ToSlash(path), RawQuery: settings.Encode()}
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

// migrate brings the database to the newest version, and refuses one that is newer still.
func migrate(ctx context.Context, pool *sql.DB) error {
	folder, err := fs.Sub(migrations, "migrations/sqlite")
	if err != nil {
		return err
	}
	provider, err := goose.NewProvider(goose.DialectSQLite3, pool, folder, goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return err
	}
	current, target, err := provider.GetVersions(ctx)
	if err != nil {
		return err
	}
	if current > target {
		return fmt.Errorf("%w: its version is %d, the newest known is %d", ErrNewer, current, target)
	}
	_, err = provider.Up(ctx)
	return err
}
