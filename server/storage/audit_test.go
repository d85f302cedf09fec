package storage_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	_ "github.com/mattn/go-sqlite3" // the attacker's
	"google.golang.org/protobuf/proto"

	"throwbar.dev/throwbar/auditlog"
	"throwbar.dev/throwbar/catalog"
	"throwbar.dev/throwbar/gen"
	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	optionv1 "throwbar.dev/throwbar/gen/go/throwbar/option/v1"
	"throwbar.dev/throwbar/server/auth"
	"throwbar.dev/throwbar/server/device"
	"throwbar.dev/throwbar/server/dispatch"
	"throwbar.dev/throwbar/server/storage"
	"throwbar.dev/throwbar/store"
	"throwbar.dev/throwbar/store/storetest"
)

// attacker has the database open beside the server, with the triggers out of the way.
type attacker struct {
	t    *testing.T
	pool *sql.DB
}

func attack(t *testing.T, engine storetest.Engine, config store.Config) attacker {
	t.Helper()
	a := attacker{t: t}
	if !engine.SQLite() {
		a.pool = storetest.Open(t, config.URL)
		a.exec("alter table srv_audit disable trigger all")
		a.exec("alter table srv_audit_head disable trigger all")
		return a
	}
	a.pool = besides(t, config)
	for _, name := range []string{"srv_audit_no_update", "srv_audit_no_delete", "srv_audit_head_no_update", "srv_audit_head_no_delete"} {
		a.exec("drop trigger " + name)
	}
	return a
}

func (a attacker) exec(statement string, args ...any) {
	a.t.Helper()
	if _, err := a.pool.ExecContext(a.t.Context(), statement, args...); err != nil {
		a.t.Fatalf("%s: %v", statement, err)
	}
}

// besides has the file of a database open beside its server.
func besides(t *testing.T, config store.Config) *sql.DB {
	t.Helper()
	pool, err := sql.Open("sqlite3", filepath.Join(config.Dir, "throwbar.db")+"?_busy_timeout=60000")
	if err != nil {
		t.Fatal(err)
	}
	pool.SetMaxOpenConns(1)
	t.Cleanup(func() { _ = pool.Close() })
	return pool
}

// row is a row of srv_audit in the default workspace.
type row struct {
	sequence, time         int64
	record, previous, hash []byte
}

func (a attacker) rows() []row {
	a.t.Helper()
	found, err := a.pool.QueryContext(a.t.Context(), `select sequence, time, record, previous, hash from srv_audit
		where workspace = 'default' order by sequence`)
	if err != nil {
		a.t.Fatal(err)
	}
	defer found.Close()
	var all []row
	for found.Next() {
		var r row
		if err := found.Scan(&r.sequence, &r.time, &r.record, &r.previous, &r.hash); err != nil {
			a.t.Fatal(err)
		}
		all = append(all, r)
	}
	if err := found.Err(); err != nil {
		a.t.Fatal(err)
	}
	return all
}

// put makes the record of the default workspace these rows, with an end.
func (a attacker) put(rows []row, last int64, head []byte) {
	a.t.Helper()
	a.exec("delete from srv_audit where workspace = 'default'")
	a.exec("delete from srv_audit_head where workspace = 'default'")
	for _, r := range rows {
		a.exec("insert into srv_audit (workspace, sequence, time, record, previous, hash) values ('default', $1, $2, $3, $4, $5)",
			r.sequence, r.time, r.record, r.previous, r.hash)
	}
	if last > 0 {
		a.exec("insert into srv_audit_head (workspace, sequence, hash) values ('default', $1, $2)", last, head)
	}
}

// reseal gives a row another record, and a hash that fits.
func reseal(t *testing.T, r row, change func(*controlv1.AuditRecord)) row {
	t.Helper()
	record := &controlv1.AuditRecord{}
	if err := proto.Unmarshal(r.record, record); err != nil {
		t.Fatal(err)
	}
	change(record)
	raw, err := proto.Marshal(record)
	if err != nil {
		t.Fatal(err)
	}
	r.record, r.hash = raw, auditlog.HashOf(r.previous, raw)
	return r
}

const entries = 8

// written is a store whose default workspace has a record of so many entries, and another workspace one too.
func written(t *testing.T, engine storetest.Engine) (*storage.Storage, store.Config) {
	t.Helper()
	config := store.Config{Dir: t.TempDir(), URL: engine.URL(t)}
	s := running(t, config)
	for n := range entries {
		for _, workspace := range []string{auth.DefaultWorkspace, "other"} {
			if err := s.AddToken(t.Context(), token(workspace, fmt.Sprintf("%s%d", workspace, n))); err != nil {
				t.Fatal(err)
			}
		}
	}
	return s, config
}

func token(workspace, id string) auth.Token {
	return auth.Token{
		ID: id, Workspace: workspace, Name: "of a test", Scope: optionv1.Scope_SCOPE_VIEWER, Hash: auth.HashOf(id), CreatedAt: at(1),
	}
}

// damage is what an attacker makes of a sound record: its rows, and where it says that it ends.
type damage func(t *testing.T, rows []row) ([]row, int64, []byte)

func keepHead(change func(t *testing.T, rows []row) []row) damage {
	return func(t *testing.T, rows []row) ([]row, int64, []byte) {
		last := rows[len(rows)-1]
		return change(t, slices.Clone(rows)), last.sequence, last.hash
	}
}

func forge(r *controlv1.AuditRecord) { r.Name = "forged" }

func drop(n int) damage {
	return keepHead(func(_ *testing.T, rows []row) []row { return slices.Delete(rows, n-1, n) })
}

func flip(n, bit int) damage {
	return keepHead(func(_ *testing.T, rows []row) []row {
		record := slices.Clone(rows[n-1].record)
		record[bit/8%len(record)] ^= 1 << (bit % 8)
		rows[n-1].record = record
		return rows
	})
}

// damages are the cases, with the number of the entry that verify has to name and the kind of problem ("" for any).
func damages() map[string]struct {
	do   damage
	bad  uint64
	kind auditlog.Kind
} {
	type c = struct {
		do   damage
		bad  uint64
		kind auditlog.Kind
	}
	all := map[string]c{
		"drop the first":   {drop(1), 1, auditlog.Gap},
		"drop a middle":    {drop(4), 4, auditlog.Gap},
		"drop the last":    {drop(entries), entries, auditlog.Head},
		"drop the last 3":  {keepHead(func(_ *testing.T, rows []row) []row { return rows[:entries-3] }), entries - 2, auditlog.Head},
		"drop all entries": {keepHead(func(*testing.T, []row) []row { return nil }), 1, auditlog.Head},
		"reorder two": {keepHead(func(_ *testing.T, rows []row) []row {
			rows[3], rows[4] = rows[4], rows[3]
			rows[3].sequence, rows[4].sequence = 4, 5
			return rows
		}), 4, auditlog.Gap},
		"an entry twice, the rest moved up": {keepHead(func(_ *testing.T, rows []row) []row {
			rows = slices.Insert(rows, 3, rows[2])
			for n := 3; n < len(rows); n++ {
				rows[n].sequence++
			}
			return rows
		}), 3, auditlog.Order},
		"an entry again at the end": {keepHead(func(_ *testing.T, rows []row) []row {
			again := rows[2]
			again.sequence = entries + 1
			return append(rows, again)
		}), entries + 1, auditlog.Order},
		"insert a sound one in the midst": {keepHead(func(t *testing.T, rows []row) []row {
			forged := reseal(t, rows[3], forge)
			rows = slices.Insert(rows, 3, forged)
			for n := 4; n < len(rows); n++ {
				rows[n].sequence++
			}
			return rows
		}), 4, auditlog.Order},
		"append a sound one": {keepHead(func(t *testing.T, rows []row) []row {
			forged := rows[len(rows)-1]
			forged.previous = forged.hash
			forged = reseal(t, forged, func(r *controlv1.AuditRecord) { r.Sequence++ })
			forged.sequence++
			return append(rows, forged)
		}), entries + 1, auditlog.Head},
		"rewrite one with its hash": {keepHead(func(t *testing.T, rows []row) []row {
			rows[3] = reseal(t, rows[3], forge)
			return rows
		}), 4, auditlog.Hash},
		"rewrite the last with its hash": {keepHead(func(t *testing.T, rows []row) []row {
			rows[entries-1] = reseal(t, rows[entries-1], forge)
			return rows
		}), entries, auditlog.Head},
		"say another workspace": {keepHead(func(t *testing.T, rows []row) []row {
			rows[3] = reseal(t, rows[3], func(r *controlv1.AuditRecord) { r.Workspace = "other" })
			return rows
		}), 4, auditlog.Workspace},
		"another time beside the record": {keepHead(func(_ *testing.T, rows []row) []row { rows[3].time += 9; return rows }), 4, auditlog.Place},
		"another previous hash": {keepHead(func(_ *testing.T, rows []row) []row {
			rows[3].previous = make([]byte, 32)
			return rows
		}), 4, auditlog.Hash},
		"no end": {func(_ *testing.T, rows []row) ([]row, int64, []byte) { return rows, 0, nil }, 1, auditlog.Head},
		"a shorter end": {func(_ *testing.T, rows []row) ([]row, int64, []byte) {
			return rows, 5, rows[4].hash
		}, 6, auditlog.Head},
	}
	for _, n := range []int{1, 4, entries} {
		for bit := 0; bit < 8*64; bit += 37 {
			all[fmt.Sprintf("flip bit %d of %d", bit, n)] = c{flip(n, bit), uint64(n), ""}
		}
	}
	return all
}

// TestVerifyNamesWhatWasTamperedWith (security 22): each change that somebody makes in the database itself is found, and
// named by the first entry that is wrong or missing; and what was put back is in order again.
func TestVerifyNamesWhatWasTamperedWith(t *testing.T) {
	t.Parallel()
	for _, engine := range postgres.Engines() {
		t.Run(engine.Name, func(t *testing.T) {
			t.Parallel()
			s, config := written(t, engine)
			a := attack(t, engine, config)
			rows := a.rows()
			if len(rows) != entries {
				t.Fatalf("%d entries", len(rows))
			}
			for name, c := range damages() {
				a.put(c.do(t, rows))
				_, problem, err := s.VerifyAudit(t.Context(), auth.DefaultWorkspace, nil)
				if err != nil || problem == nil || problem.Sequence != c.bad || c.kind != "" && problem.Kind != c.kind {
					t.Errorf("%s: verify says %v, %v, want %s of entry %d", name, problem, err, c.kind, c.bad)
				}
				if _, problem, err := s.VerifyAudit(t.Context(), "other", nil); problem != nil || err != nil {
					t.Errorf("%s: of another workspace it says %v, %v", name, problem, err)
				}
			}
			a.put(rows, entries, rows[entries-1].hash)
			check, problem, err := s.VerifyAudit(t.Context(), auth.DefaultWorkspace, nil)
			if err != nil || problem != nil || check.Checked() != entries || !slices.Equal(check.Head(), rows[entries-1].hash) {
				t.Errorf("put back: %v, %v", problem, err)
			}
		})
	}
}

// TestAnAnchorFindsWhatTheChainCannot: who may write the whole database can write a record anew, or cut it off together
// with its end. A hash that was noted down elsewhere finds that.
func TestAnAnchorFindsWhatTheChainCannot(t *testing.T) {
	t.Parallel()
	for _, engine := range postgres.Engines() {
		t.Run(engine.Name, func(t *testing.T) {
			t.Parallel()
			s, config := written(t, engine)
			a := attack(t, engine, config)
			rows := a.rows()
			anchor := rows[5].hash
			anew := slices.Clone(rows)
			for n := 3; n < entries; n++ {
				anew[n].previous = anew[n-1].hash
				anew[n] = reseal(t, anew[n], func(r *controlv1.AuditRecord) {
					if n == 3 {
						r.Name = "forged"
					}
				})
			}
			for name, c := range map[string]struct {
				rows  []row
				sound bool
			}{"sound": {rows, true}, "written anew": {anew, false}, "cut off": {rows[:5], false}, "none": {nil, false}} {
				last := row{}
				if len(c.rows) > 0 {
					last = c.rows[len(c.rows)-1]
				}
				a.put(c.rows, last.sequence, last.hash)
				if _, problem, err := s.VerifyAudit(t.Context(), auth.DefaultWorkspace, nil); problem != nil || err != nil {
					t.Errorf("%s, without an anchor: %v, %v", name, problem, err)
				}
				_, problem, err := s.VerifyAudit(t.Context(), auth.DefaultWorkspace, anchor)
				if err != nil || (problem == nil) != c.sound || problem != nil && problem.Kind != auditlog.Anchor {
					t.Errorf("%s, with an anchor: %v, %v", name, problem, err)
				}
			}
		})
	}
}

// read gives all entries of a workspace.
func read(t *testing.T, s *storage.Storage, workspace string) []*controlv1.AuditRecord {
	t.Helper()
	var all []*controlv1.AuditRecord
	check := auditlog.NewChecker(workspace, nil)
	if err := s.AuditEntries(t.Context(), workspace, 0, time.Time{}, func(page []*controlv1.AuditEntry) error {
		for _, e := range page {
			record, problem := check.Add(e)
			if problem != nil {
				return problem
			}
			all = append(all, record)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if _, problem, err := s.VerifyAudit(t.Context(), workspace, nil); problem != nil || err != nil {
		t.Fatalf("verify: %v, %v", problem, err)
	}
	return all
}

func catalogue(t *testing.T) *catalog.Catalogue {
	t.Helper()
	c, err := catalog.New(gen.Descriptors)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestWhatIsAudited goes through what storage writes itself: each has its entry, with who did it.
func TestWhatIsAudited(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, s *storage.Storage) {
		s.Audit(storage.Auditing{Catalogue: catalogue(t)})
		person := auth.With(t.Context(), auth.Token{ID: "person"})
		d := device.Device{ID: "k3v9x2mqta", Workspace: auth.DefaultWorkspace, Name: "lap\xfftop", Kind: 1, PairedAt: at(1)}
		own := token(auth.DefaultWorkspace, "t1")
		own.Scope, own.Device = optionv1.Scope_SCOPE_DEVICE, d.ID
		action, err := proto.Marshal(&commandv1.Action{Kind: &commandv1.Action_OpenTab{OpenTab: &commandv1.OpenTab{Url: "https://a.example"}}})
		if err != nil {
			t.Fatal(err)
		}
		failure, err := proto.Marshal(&commandv1.CommandError{Code: commandv1.ErrorCode_ERROR_CODE_FAILED, Message: "text of a page"})
		if err != nil {
			t.Fatal(err)
		}
		a := accepted("c1")
		a.Saved, a.Record.Action, a.Record.Name = nil, action, "openTab"
		ended := a.Record
		ended.State, ended.EndedAt, ended.Error, ended.Summary = dispatch.Expired, at(9), failure, "FAILED"
		for name, err := range map[string]error{
			"pair":   s.Pair(t.Context(), d, own, ""),
			"rename": s.Rename(person, d),
			"accept": s.Accept(person, []dispatch.Acceptance{a}),
			"finish": errors.Join(s.Finish(t.Context(), []dispatch.End{{Record: ended}}), s.Finish(t.Context(), []dispatch.End{{Record: ended}})),
			"late":   errors.Join(s.Late(t.Context(), ended, "result", nil), s.Late(t.Context(), ended, "result", nil)),
			"revoke": s.Revoke(person, d),
			"token":  s.AddToken(person, token(auth.DefaultWorkspace, "t2")),
			"void":   s.RevokeToken(person, token(auth.DefaultWorkspace, "t2")),
		} {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		got := map[controlv1.AuditKind]*controlv1.AuditRecord{}
		for _, record := range read(t, s, auth.DefaultWorkspace) {
			if got[record.GetKind()] != nil {
				t.Errorf("%v is there twice", record.GetKind())
			}
			got[record.GetKind()] = record
		}
		for kind, want := range map[controlv1.AuditKind][3]string{
			controlv1.AuditKind_AUDIT_KIND_DEVICE_PAIRED:    {"", "k3v9x2mqta", "lap\ufffdtop"},
			controlv1.AuditKind_AUDIT_KIND_DEVICE_RENAMED:   {"person", "k3v9x2mqta", "lap\ufffdtop"},
			controlv1.AuditKind_AUDIT_KIND_DEVICE_REVOKED:   {"person", "k3v9x2mqta", "lap\ufffdtop"},
			controlv1.AuditKind_AUDIT_KIND_COMMAND_ACCEPTED: {"t", "c1", "openTab"},
			controlv1.AuditKind_AUDIT_KIND_COMMAND_ENDED:    {"", "c1", "openTab"},
			controlv1.AuditKind_AUDIT_KIND_COMMAND_LATE:     {"", "c1", "openTab"},
			controlv1.AuditKind_AUDIT_KIND_TOKEN_CREATED:    {"person", "t2", "of a test"},
			controlv1.AuditKind_AUDIT_KIND_TOKEN_REVOKED:    {"person", "t2", "of a test"},
		} {
			r := got[kind]
			if have := [3]string{r.GetActor(), r.GetSubjectId(), r.GetName()}; r == nil || have != want {
				t.Errorf("%v: %v, want %v", kind, have, want)
			}
		}
		if got[controlv1.AuditKind_AUDIT_KIND_COMMAND_ACCEPTED].GetAction().GetOpenTab().GetUrl() != "https://a.example" {
			t.Error("the arguments are missing")
		}
		end := got[controlv1.AuditKind_AUDIT_KIND_COMMAND_ENDED]
		if end.GetError() != commandv1.ErrorCode_ERROR_CODE_FAILED || end.GetState() != controlv1.State_STATE_EXPIRED || strings.Contains(end.String(), "page") {
			t.Errorf("end: %v", end)
		}
	})
}

// TestTheRecordHasNoGapWhateverGoesWrong: ops that are run twice, rolled back, or share a transaction with one that fails.
func TestTheRecordHasNoGapWhateverGoesWrong(t *testing.T) {
	t.Parallel()
	for _, engine := range postgres.Engines() {
		t.Run(engine.Name, func(t *testing.T) {
			t.Parallel()
			var turn atomic.Int64
			var mended atomic.Bool
			s := running(t, store.Config{Dir: t.TempDir(), URL: engine.URL(t), Fault: func(stage string) error {
				if stage == "commit" && turn.Add(1)%3 == 0 && !mended.Load() {
					return store.ErrDiskFull
				}
				return nil
			}})
			var written atomic.Int64
			var callers sync.WaitGroup
			for n := range 40 {
				callers.Go(func() {
					for m := range 10 {
						id := fmt.Sprintf("%d-%d", n, m)
						if m%4 == 3 {
							id = fmt.Sprintf("%d-%d", n, m-1) // conflicts if that was written, and fails its group
						}
						if s.AddToken(context.WithoutCancel(t.Context()), token(auth.DefaultWorkspace, id)) == nil {
							written.Add(1)
						}
					}
				})
			}
			callers.Wait()
			tokens, err := s.Tokens(t.Context())
			if err != nil || int64(len(tokens)) != written.Load() || len(tokens) < 100 {
				t.Fatalf("%d tokens, %d written, %v", len(tokens), written.Load(), err)
			}
			mended.Store(true) // what verify syncs must not fail
			if got := read(t, s, auth.DefaultWorkspace); len(got) != len(tokens) {
				t.Errorf("%d entries for %d tokens", len(got), len(tokens))
			}
		})
	}
}

// kinds notes how durable writes were.
type kinds struct {
	mu  sync.Mutex
	all []string
}

func (k *kinds) StoreWrote(kind string, _ time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.all = append(k.all, kind)
}

// TestWhatCanDestroyIsSyncedBeforeItIsAcknowledged (security 22), and with the setting everything.
func TestWhatCanDestroyIsSyncedBeforeItIsAcknowledged(t *testing.T) {
	t.Parallel()
	known := catalogue(t)
	for _, c := range []struct {
		name string
		all  bool
		want []string // of the acceptance and of the end
	}{
		{"openTab", false, []string{"fast", "fast"}},
		{"closeTabs", false, []string{"synced", "fast"}},
		{"unheardOf", false, []string{"synced", "fast"}},
		{"openTab", true, []string{"synced", "synced"}},
	} {
		s := running(t, store.Config{Dir: t.TempDir()})
		meter := &kinds{}
		s.Measure(meter)
		s.Audit(storage.Auditing{Catalogue: known, SyncAll: c.all})
		a := accepted("c1")
		a.Saved, a.Record.Name = nil, c.name
		end := a.Record
		end.State, end.EndedAt = dispatch.Succeeded, at(9)
		if err := errors.Join(s.Accept(t.Context(), []dispatch.Acceptance{a}), s.Finish(t.Context(), []dispatch.End{{Record: end}})); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(meter.all, c.want) {
			t.Errorf("%s, all=%v: %v, want %v", c.name, c.all, meter.all, c.want)
		}
	}
}

// TestReadingIsPagedAndBounded: after a number, since a time, and no further than the end at the beginning.
func TestReadingIsPagedAndBounded(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, s *storage.Storage) {
		const all = 1234
		for n := range all {
			a := token(auth.DefaultWorkspace, fmt.Sprint("t", n))
			a.CreatedAt = at(int64(n))
			if err := s.AddToken(t.Context(), a); err != nil {
				t.Fatal(err)
			}
		}
		for name, c := range map[string]struct {
			after uint64
			since time.Time
			want  []uint64
		}{
			"all":         {0, time.Time{}, []uint64{1, all}},
			"after":       {1000, time.Time{}, []uint64{1001, all}},
			"after all":   {all, time.Time{}, nil},
			"far beyond":  {1 << 63, time.Time{}, nil},
			"since":       {0, at(700), []uint64{701, all}},
			"since, late": {800, at(700), []uint64{801, all}},
			"since never": {0, at(5000), nil},
		} {
			var got []uint64
			grown := false
			if err := s.AuditEntries(t.Context(), auth.DefaultWorkspace, c.after, c.since, func(page []*controlv1.AuditEntry) error {
				if len(page) > 500 {
					t.Errorf("a page of %d", len(page))
				}
				for _, e := range page {
					record := &controlv1.AuditRecord{}
					if err := proto.Unmarshal(e.GetRecord(), record); err != nil {
						return err
					}
					got = append(got, record.GetSequence())
				}
				if !grown && name == "all" {
					grown = true
					return s.AddToken(t.Context(), token("other", "more"))
				}
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			if len(c.want) == 0 && len(got) == 0 {
				continue
			}
			if len(c.want) == 0 || len(got) == 0 || got[0] != c.want[0] || got[len(got)-1] != c.want[1] || len(got) != int(c.want[1]-c.want[0]+1) {
				t.Errorf("%s: %d entries", name, len(got))
			}
		}
	})
}
