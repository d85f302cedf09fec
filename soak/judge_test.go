package soak_test

import (
	"bufio"
	"bytes"
	"database/sql"
	"os"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
)

// row is a command as it is in the database.
type row struct {
	state              string
	deadline, ended    int64 // Unix milliseconds
	terminal, executed int   // events of its end; effects
}

// judge holds the database and the effects against what was told. Everything has stopped.
func (l *lane) judge() {
	l.t.Helper()
	db := l.engine.open(l.t)
	l.engine.sound(l.t, db)
	rows := readCommands(l.t, db)
	log := readLog(l.t, db)
	for _, e := range log {
		if id := e.GetCommand().GetCommandId(); id != "" && final(e) {
			if rows[id] == nil {
				l.t.Errorf("the log has the end of %s, which is no command", id)
				continue
			}
			rows[id].terminal++
		}
	}
	effects := 0
	for _, d := range l.devices {
		for id := range lines(l.t, filepath.Join(d.dir, effectsFile)) {
			effects++
			if rows[id] == nil {
				l.t.Errorf("%s was executed and is not in the database", id)
				continue
			}
			rows[id].executed++
		}
	}
	for id, r := range rows {
		judgeRow(l.t, id, r)
	}
	judgeTold(l.t, l.told.words, rows)
	for n, w := range l.watch {
		judgeWatcher(l.t, n, w.events, log)
	}
	judgeLogs(l.t, l.dir)
	l.t.Logf("%d commands, %d effects, %d told of, %d events", len(rows), effects, len(l.told.words), len(log))
}

func judgeRow(t *testing.T, id string, r *row) {
	t.Helper()
	if r.ended == 0 {
		t.Errorf("%s has not ended: it is %s, and its deadline was %s", id, r.state, time.UnixMilli(r.deadline))
	}
	if r.terminal != 1 {
		t.Errorf("%s, which is %s, has %d ends in the log", id, r.state, r.terminal)
	}
	if r.executed > 1 {
		t.Errorf("%s, which is %s, was executed %d times", id, r.state, r.executed)
	}
	if r.state == "succeeded" && r.executed != 1 {
		t.Errorf("%s has succeeded and was executed %d times", id, r.executed)
	}
}

func judgeTold(t *testing.T, words map[string]word, rows map[string]*row) {
	t.Helper()
	for id, w := range words {
		r := rows[id]
		switch {
		case r == nil:
			t.Errorf("somebody was told of %s, which is lost: %+v", id, w)
		case w.success && (r.state != "succeeded" || r.executed != 1):
			t.Errorf("somebody was told that %s has succeeded: it is %s and was executed %d times", id, r.state, r.executed)
		case w.err != 0 && r.state == "succeeded":
			t.Errorf("somebody was told that %s has failed (%s): it has succeeded", id, w.err)
		}
	}
}

// judgeWatcher compares what a watcher saw with the log, up to where it read.
func judgeWatcher(t *testing.T, n int, seen, log []*controlv1.Event) {
	t.Helper()
	for i, e := range seen {
		if i >= len(log) || log[i].GetCursor() != e.GetCursor() || !proto.Equal(log[i].GetCommand(), e.GetCommand()) {
			t.Errorf("watcher %d saw event %d as number %d of what it saw; the log differs", n, e.GetCursor(), i+1)
			return
		}
	}
}

// judgeLogs looks for what no process may say.
func judgeLogs(t *testing.T, dir string) {
	t.Helper()
	logs, err := filepath.Glob(filepath.Join(dir, "*", "log"))
	check(t, err)
	for _, path := range append(logs, filepath.Join(dir, "server.log")) {
		raw, err := os.ReadFile(path)
		check(t, err)
		for _, bad := range []string{"DATA RACE", "panic", "fatal error"} {
			if bytes.Contains(raw, []byte(bad)) {
				t.Errorf("%s has %q", path, bad)
			}
		}
	}
}

func readCommands(t *testing.T, db *sql.DB) map[string]*row {
	t.Helper()
	found, err := db.QueryContext(t.Context(), "select id, state, deadline, ended_at from srv_command")
	check(t, err)
	defer found.Close()
	rows := map[string]*row{}
	for found.Next() {
		var id string
		r := &row{}
		check(t, found.Scan(&id, &r.state, &r.deadline, &r.ended))
		rows[id] = r
	}
	check(t, found.Err())
	return rows
}

func readLog(t *testing.T, db *sql.DB) []*controlv1.Event {
	t.Helper()
	found, err := db.QueryContext(t.Context(), "select seq, body from srv_event order by seq")
	check(t, err)
	defer found.Close()
	var log []*controlv1.Event
	for found.Next() {
		var seq uint64
		var body []byte
		check(t, found.Scan(&seq, &body))
		e := &controlv1.Event{}
		check(t, proto.Unmarshal(body, e))
		e.Cursor = seq
		log = append(log, e)
	}
	check(t, found.Err())
	return log
}

// lines yields the whole lines of a file; one that was never made has none.
func lines(t *testing.T, path string) func(func(string) bool) {
	t.Helper()
	raw, err := os.ReadFile(path)
	if !os.IsNotExist(err) {
		check(t, err)
	}
	return func(yield func(string) bool) {
		for scan := bufio.NewScanner(bytes.NewReader(raw)); scan.Scan(); {
			if !yield(scan.Text()) {
				return
			}
		}
	}
}
