package store

import (
	"context"
	"crypto/rand"
	"database/sql"
	"database/sql/driver"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
)

const (
	// oldestPostgres is the first version that is still supported by its makers.
	oldestPostgres = 140000
	connectWithin  = 5 * time.Second
	// maxApplicationName is how much of a name PostgreSQL keeps.
	maxApplicationName = 63
)

// postgresEngine is one database of a PostgreSQL server.
type postgresEngine struct {
	config  *pgx.ConnConfig
	readers int
	token   string // of this store: tells its own old sessions from another server's
	pool    *sql.DB
}

func newPostgres(config Config) (*postgresEngine, error) {
	parsed, err := parseURL(config.URL)
	if err != nil {
		return nil, err
	}
	token := make([]byte, 4)
	_, _ = rand.Read(token) // it never fails
	e := &postgresEngine{config: parsed, readers: config.Readers, token: hex.EncodeToString(token)}
	parsed.RuntimeParams["application_name"] = applicationName(e.token, os.Getpid(), hostname())
	return e, nil
}

// parseURL reads where the database is. Its error never has the text, which may have the password.
func parseURL(text string) (*pgx.ConnConfig, error) {
	if !IsPostgres(text) {
		return nil, errors.New("the database is no URL such as postgres://user@host:5432/name")
	}
	config, err := pgx.ParseConfig(text)
	if err != nil {
		return nil, errors.New("the URL of the database cannot be read: it has the form postgres://user:password@host:5432/name, " +
			"with the special characters of the password as %xx")
	}
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = connectWithin
	}
	dialer := &net.Dialer{
		Timeout:         config.ConnectTimeout,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 10 * time.Second, Interval: 5 * time.Second, Count: 3},
		Control:         giveUpUnanswered,
	}
	config.DialFunc = dialer.DialContext
	return config, nil
}

// IsPostgres says whether the text is a URL of PostgreSQL's.
func IsPostgres(text string) bool {
	return strings.HasPrefix(text, "postgres://") || strings.HasPrefix(text, "postgresql://")
}

// name has the user and the place, and no password.
func (e *postgresEngine) name() string { return nameOf(e.config) }

// Redacted is where the database of a URL is, without a password.
func Redacted(text string) string {
	config, err := parseURL(text)
	if err != nil {
		return "a PostgreSQL database"
	}
	return nameOf(config)
}

func nameOf(config *pgx.ConnConfig) string {
	u := url.URL{Scheme: "postgres", User: url.User(config.User), Path: "/" + config.Database}
	if strings.HasPrefix(config.Host, "/") { // the folder of a socket
		u.RawQuery = "host=" + config.Host
	} else {
		u.Host = net.JoinHostPort(config.Host, strconv.Itoa(int(config.Port)))
	}
	return u.String()
}

func (e *postgresEngine) open(ctx context.Context) (session, *sql.DB, error) {
	e.pool = openPool(e.config)
	e.pool.SetMaxOpenConns(1)
	writing := &postgresSession{engine: e}
	if err := writing.connect(ctx); err != nil {
		return nil, nil, errors.Join(err, writing.close())
	}
	if err := e.migrate(ctx); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("migrate: %w", err), writing.close())
	}
	reader := e.openReaders()
	if err := reader.PingContext(ctx); err != nil {
		return nil, nil, errors.Join(err, reader.Close(), writing.close())
	}
	return writing, reader, nil
}

// migrate has connections of its own: the writer's holds the lock.
func (e *postgresEngine) migrate(ctx context.Context) error {
	pool := openPool(e.config)
	return errors.Join(migrate(ctx, goose.DialectPostgres, pool), pool.Close())
}

// checkedConnector makes connections that refuse text which no row can have.
type checkedConnector struct{ driver.Connector }

func openPool(config *pgx.ConnConfig) *sql.DB {
	return sql.OpenDB(checkedConnector{stdlib.GetConnector(*config)})
}

// Connect opens one connection.
func (c checkedConnector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	raw, ok := conn.(*stdlib.Conn)
	if !ok {
		return nil, errors.Join(fmt.Errorf("connection is a %T", conn), conn.Close())
	}
	return checkedPostgres{raw}, nil
}

type checkedPostgres struct{ *stdlib.Conn }

// CheckNamedValue looks at a parameter before it is bound; pgx takes any type.
func (checkedPostgres) CheckNamedValue(value *driver.NamedValue) error { return checkText(value) }

// openReaders opens a pool whose transactions cannot write.
func (e *postgresEngine) openReaders() *sql.DB {
	config := e.config.Copy()
	config.RuntimeParams["default_transaction_read_only"] = "on"
	pool := openPool(config)
	pool.SetMaxOpenConns(e.readers)
	pool.SetMaxIdleConns(e.readers)
	return pool
}

func (e *postgresEngine) snapshot() *sql.TxOptions {
	return &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true}
}

func (e *postgresEngine) backup(context.Context, string) error {
	return fmt.Errorf("%w: back up a PostgreSQL database with pg_dump", errors.ErrUnsupported)
}

func (e *postgresEngine) close() error {
	if e.pool == nil {
		return nil
	}
	return e.pool.Close()
}

// applicationName is what others see of the session.
func applicationName(token string, pid int, host string) string {
	name := fmt.Sprintf("throwbar %s pid %d on %s", token, pid, host)
	return name[:min(len(name), maxApplicationName)]
}

func hostname() string {
	name, err := os.Hostname()
	if err != nil {
		return "unknown"
	}
	return name
}

// connecting is an error of connecting in one line: of what was tried, by TLS and without, the last.
type connecting struct{ cause error }

// Error is the last line.
func (e *connecting) Error() string {
	text := e.cause.Error()
	return strings.TrimSpace(text[strings.LastIndex(text, "\n")+1:])
}

// Unwrap gives the whole.
func (e *connecting) Unwrap() error { return e.cause }

// locked says who has the database, and whether that is an old session of this very store.
func (e *postgresEngine) locked(application string) (err *LockedError, own bool) {
	err = &LockedError{Name: e.name()}
	var token, host string
	if _, scan := fmt.Sscanf(application, "throwbar %s pid %d on %s", &token, &err.PID, &host); scan != nil {
		return err, false
	}
	if host != hostname() {
		err.Host = host
	}
	return err, token == e.token
}

// permanent says that another try to connect will not go otherwise.
func permanent(err error) bool {
	if cause, ok := errors.AsType[*LockedError](err); ok {
		return cause != nil
	}
	if cause, ok := errors.AsType[*pgconn.PgError](err); ok {
		return strings.HasPrefix(cause.Code, "28") || cause.Code == "3D000" || kindOfState(cause.Code) != nil
	}
	return errors.Is(err, ErrNewer)
}
