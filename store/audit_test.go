package store

import (
	"strings"
	"testing"

	"throwbar.dev/throwbar/store/storetest"
)

// TestTheAuditRecordOnlyGrows: nobody who goes through the database as this program does changes an entry, removes one or
// makes the record shorter, by whatever statement.
func TestTheAuditRecordOnlyGrows(t *testing.T) {
	t.Parallel()
	onEach(t, testTheAuditRecordOnlyGrows)
}

func testTheAuditRecordOnlyGrows(t *testing.T, engine storetest.Engine) {
	pool := migrated(t, engine)
	entry, head := sound()["srv_audit"], sound()["srv_audit_head"]
	check(t, insert(t.Context(), pool, "srv_audit", entry))
	check(t, insert(t.Context(), pool, "srv_audit", another(entry)))
	head["sequence"] = 2
	check(t, insert(t.Context(), pool, "srv_audit_head", head))
	statements := []string{
		"update srv_audit set record = hash", "update srv_audit set time = time + 1 where sequence = 2",
		"update srv_audit set sequence = 3 where sequence = 2",
		"delete from srv_audit", "delete from srv_audit where sequence = 2", "delete from srv_audit_head",
		"update srv_audit_head set sequence = 1", "update srv_audit_head set workspace = 'other'",
		`insert into srv_audit (workspace, sequence, time, record, previous, hash)
			select workspace, sequence, time, record, previous, hash from srv_audit where sequence = 1
			on conflict (workspace, sequence) do update set record = excluded.hash`,
	}
	if engine.SQLite() {
		statements = append(statements, `update or replace srv_audit set sequence = 1 where sequence = 2`)
	} else {
		statements = append(statements, "truncate srv_audit", "truncate srv_audit_head", "truncate srv_audit, srv_audit_head")
	}
	for _, statement := range statements {
		if _, err := pool.ExecContext(t.Context(), statement); err == nil || !strings.Contains(err.Error(), "srv_audit_grows") {
			t.Errorf("%s: error is %v, want it refused by srv_audit_grows", statement, err)
		}
	}
	var rows, last int
	check(t, pool.QueryRowContext(t.Context(), "select count(*), max(sequence) from srv_audit where length(record) = 6").Scan(&rows, &last))
	if rows != 2 || last != 2 {
		t.Errorf("%d entries up to %d are left, want 2", rows, last)
	}
	if _, err := pool.ExecContext(t.Context(), "update srv_audit_head set sequence = 3"); err != nil {
		t.Errorf("the record cannot grow: %v", err)
	}
}
