package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"throwbar.dev/throwbar/store/db"
)

const (
	// lockKey is the advisory lock that a server holds in its database: the letters "throwbar" as a number.
	lockKey = 0x7468726f77626172
	// lockWithin is how long the lock is waited for: a session whose process was killed may need a moment to end.
	lockWithin = 5 * time.Second
	// retryPause is the longest time between two tries to connect.
	retryPause = time.Second
)

// sessionSetup overrules what the database or the role may have set. A write waits until it is on the server's disk,
// whatever its level: PostgreSQL has nothing weaker that survives a kill of its own processes.
const sessionSetup = `set synchronous_commit = on; set statement_timeout = 0; set idle_in_transaction_session_timeout = 0;
set default_transaction_isolation = 'read committed'; set default_transaction_read_only = off;
set tcp_keepalives_idle = 10; set tcp_keepalives_interval = 5; set tcp_keepalives_count = 3`

// fenceSetup makes the one row that every transaction changes. It belongs to the engine, so no migration has it.
const fenceSetup = `create table if not exists store_writer (
  id bigint not null primary key, epoch bigint not null, seq bigint not null) with (fillfactor = 10);
insert into store_writer values (1, 0, 0) on conflict do nothing`

// postgresSession is a connection that may be lost. It holds an advisory lock for as long as it lives, so that only one
// session writes. Each transaction writes its number into the row of store_writer: a session that has the lock knows
// that the one before it has ended, and sees in the row whether its last transaction was committed. The epoch of the row
// is each session's own, so that one of another server which was in between is noticed.
type postgresSession struct {
	engine    *postgresEngine
	conn      *sql.Conn // nil while there is none
	epoch     int64
	seq       int64     // of the transaction begun last
	claim     int64     // the next epoch, while it is not known to be written; 0 if there is none
	committed bool      // what was found of the transaction begun last, before the claim
	failed    error     // of the last try to connect, if the database is down
	tried     time.Time // when that was
}

// connect opens the session and takes the lock. It is an error of connecting, or a LockedError.
func (s *postgresSession) connect(ctx context.Context) error {
	_, err := s.reconnect(ctx)
	return err
}

// reconnect also says whether the transaction begun last was committed.
func (s *postgresSession) reconnect(ctx context.Context) (committed bool, err error) {
	s.drop()
	ctx, cancel := context.WithTimeout(ctx, 2*connectWithin)
	defer cancel()
	conn, err := s.engine.pool.Conn(ctx)
	if err != nil {
		return false, &connecting{err}
	}
	s.conn = conn
	defer func() {
		if err != nil {
			s.drop()
		}
	}()
	if err := s.fits(ctx); err != nil {
		return false, err
	}
	if _, err := conn.ExecContext(ctx, sessionSetup); err != nil {
		return false, err
	}
	if err := s.lock(ctx); err != nil {
		return false, err
	}
	return s.fence(ctx)
}

// fits looks whether the server is one that this engine knows.
func (s *postgresSession) fits(ctx context.Context) error {
	var version int
	var encoding string
	err := s.conn.QueryRowContext(ctx, "select current_setting('server_version_num')::int, current_setting('server_encoding')").
		Scan(&version, &encoding)
	switch {
	case err != nil:
		return err
	case version < oldestPostgres:
		return fmt.Errorf("PostgreSQL %d is too old: use %d or newer", version/10000, oldestPostgres/10000)
	case encoding != "UTF8":
		return fmt.Errorf("the database has the encoding %s: make it with encoding 'UTF8'", encoding)
	}
	return nil
}

// lock takes the lock. An old session of this store that still has it, because PostgreSQL has not noticed yet that the
// connection is gone, is ended; another server's is given a moment, for its process may just have been killed.
func (s *postgresSession) lock(ctx context.Context) error {
	var locked bool
	if err := s.conn.QueryRowContext(ctx, "select pg_try_advisory_lock($1)", int64(lockKey)).Scan(&locked); err != nil || locked {
		return err
	}
	held, backend, err := s.holder(ctx)
	if err != nil {
		return err
	}
	if held == nil && backend != 0 {
		if _, err := s.conn.ExecContext(ctx, "select pg_terminate_backend($1)", backend); err != nil {
			return err
		}
	}
	_, err = s.conn.ExecContext(ctx, fmt.Sprintf("set lock_timeout = %d; select pg_advisory_lock(%d); set lock_timeout = 0",
		lockWithin.Milliseconds(), int64(lockKey)))
	if cause, ok := errors.AsType[*pgconn.PgError](err); !ok || cause.Code != "55P03" {
		return err
	}
	if held, _, err = s.holder(ctx); err != nil {
		return err
	}
	if held == nil {
		return errOwnSession
	}
	return held
}

// errOwnSession: the lock is still held by the session that was lost; it is being ended.
var errOwnSession = errors.New("the lost connection still holds the lock")

// holder gives who has the lock, and the process of PostgreSQL that holds it; nil if it is an old session of this store,
// or nobody any more.
func (s *postgresSession) holder(ctx context.Context) (held *LockedError, backend int, err error) {
	var application string
	err = s.conn.QueryRowContext(ctx, `select a.pid, coalesce(a.application_name, '') from pg_locks l
		join pg_stat_activity a on a.pid = l.pid
		where l.locktype = 'advisory' and l.granted and l.objsubid = 1 and l.classid::bigint = $1 and l.objid::bigint = $2
		and l.database = (select d.oid from pg_database d where d.datname = current_database())`,
		int64(lockKey)>>32, int64(lockKey)&0xffffffff).Scan(&backend, &application)
	if errors.Is(err, sql.ErrNoRows) { // it has just ended
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	other, own := s.engine.locked(application)
	if own {
		return nil, backend, nil
	}
	return other, backend, nil
}

// fence makes this session the one that writes. It holds the lock: what wrote before has ended. Its claim is a number that
// no other session has, and stays until it is known to be written: where the answer to that was lost, the row has it next
// time, and what was read before it was written still holds.
func (s *postgresSession) fence(ctx context.Context) (committed bool, err error) {
	if _, err := s.conn.ExecContext(ctx, fenceSetup); err != nil {
		return false, err
	}
	var epoch, seq int64
	if err := s.conn.QueryRowContext(ctx, "select epoch, seq from store_writer where id = 1").Scan(&epoch, &seq); err != nil {
		return false, err
	}
	switch {
	case s.epoch == 0: // the first session of this store
	case epoch == s.epoch:
		s.committed = seq == s.seq
	case epoch == s.claim && s.claim != 0:
	default: // another server wrote meanwhile; what this one remembers may be old
		return false, &LockedError{Name: s.engine.name()}
	}
	if s.claim == 0 {
		s.claim = 1 + rand.Int64N(math.MaxInt64)
	}
	if _, err := s.conn.ExecContext(ctx, fmt.Sprintf("update store_writer set epoch = %d, seq = 0 where id = 1", s.claim)); err != nil {
		return false, err
	}
	s.epoch, s.seq, s.claim = s.claim, 0, 0
	return s.committed, nil
}

// errNotConnected: the connection was lost, and was not restored.
var errNotConnected = errors.New("not connected")

func (s *postgresSession) begin(level Level) (db.DBTX, error) {
	if s.conn == nil {
		return nil, errNotConnected
	}
	local := ""
	if level == Fast {
		local = "set local synchronous_commit = local; " // does not wait for standby servers
	}
	s.seq++
	result, err := s.conn.ExecContext(context.Background(), fmt.Sprintf(
		"begin; %supdate store_writer set seq = %d where id = 1 and epoch = %d", local, s.seq, s.epoch))
	if err != nil {
		return nil, err
	}
	if n, err := result.RowsAffected(); err != nil || n != 1 {
		s.rollback()
		return nil, errors.Join(fmt.Errorf("another session took the place of this one (%d rows)", n), err)
	}
	return s.conn, nil
}

// errAborted: PostgreSQL would answer a commit with a rollback, and that is no error to it.
var errAborted = errors.New("the transaction has failed already")

func (s *postgresSession) commit() error {
	if s.status() != 'T' {
		return errAborted
	}
	_, err := s.conn.ExecContext(context.Background(), "commit")
	return err
}

func (s *postgresSession) rollback() {
	if s.conn != nil {
		_, _ = s.conn.ExecContext(context.Background(), "rollback")
	}
}

// status is the state of the transaction as the server has said it: I, T or E; 0 if the connection is gone.
func (s *postgresSession) status() (status byte) {
	if s.conn == nil {
		return 0
	}
	err := s.conn.Raw(func(raw any) error {
		if conn, ok := raw.(checkedPostgres); ok && !conn.Conn.Conn().IsClosed() {
			status = conn.Conn.Conn().PgConn().TxStatus()
		}
		return nil
	})
	if err != nil {
		return 0
	}
	return status
}

func (s *postgresSession) lost() bool { return s.status() == 0 }

// restore tries once only, and not too often, if it has failed already: each write that waits would wait as long again.
func (s *postgresSession) restore(wait time.Duration) (bool, error) {
	start := time.Now()
	if s.failed != nil {
		if start.Sub(s.tried) < retryPause {
			return false, s.failed
		}
		wait = 0
	}
	for pause := 20 * time.Millisecond; ; pause = min(2*pause, retryPause) {
		committed, err := s.reconnect(context.Background())
		if err == nil {
			s.failed = nil
			return committed, nil
		}
		s.tried, s.failed = time.Now(), err
		if permanent(err) || time.Since(start)+pause > wait {
			return false, err
		}
		<-time.After(pause)
	}
}

// drop closes the connection for good: it must not go back to the pool with the lock or half a transaction on it.
func (s *postgresSession) drop() {
	if s.conn == nil {
		return
	}
	_ = s.conn.Raw(func(raw any) error {
		if conn, ok := raw.(checkedPostgres); ok {
			ctx, cancel := context.WithTimeout(context.Background(), connectWithin)
			defer cancel()
			_ = conn.Conn.Conn().Close(ctx)
		}
		return driver.ErrBadConn
	})
	_ = s.conn.Close() // it is closed already
	s.conn = nil
}

func (s *postgresSession) close() error {
	s.drop()
	return nil
}
