package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pressly/goose/v3"

	"throwbar.dev/throwbar/store/storetest"
)

type row map[string]any

// sound has a row of every table that is accepted.
func sound() map[string]row {
	return map[string]row{
		"srv_device": {
			"id": "k3v9x2mqta", "workspace": "default", "name": "laptop", "kind": 1, "agent": "Chrome 140", "platform": "Linux",
			"paired_at": at, "last_seen": 0, "revoked_at": 0, "boot_tag": "", "actions": "[]", "epoch": 0, "origin": "",
		},
		"srv_token": {
			"id": "t", "workspace": "default", "name": "cli", "scope": 4, "device_id": "", "hash": make([]byte, 32),
			"created_at": at, "revoked_at": 0, "expires_at": 0, "replaces": "", "rotate_by": "",
		},
		"srv_workspace": {"name": "default", "created_at": at},
		"srv_command": {
			"id": "c", "group_id": "g", "workspace": "default", "device_id": "k3v9x2mqta", "name": "closeTabs", "principal": "t",
			"action": []byte("action"), "state": "accepted", "created_at": at, "deadline": at, "ended_at": 0, "result": nil,
			"error": nil, "summary": "", "attached": false, "ttl": 0, "approval_id": "", "origin": 0, "conversation_id": "",
			"request_id": "", "act": "", "act_targets": 0, "undoes": "", "undo_targets": 0, "undone": 0,
		},
		"srv_approval": {
			"id": "a", "workspace": "default", "state": "pending", "principal": "t", "origin": 1, "conversation_id": "",
			"group_id": "g", "request_id": "", "reason": "", "rule_id": "", "policy_version": 0, "hash": "h", "bound": "",
			"created_at": at, "expires_at": at + 1, "warned_at": 0, "decided_at": 0, "decided_by": "", "decision_reason": "",
			"remembered_rule_id": "",
		},
		"srv_approval_call": {
			"approval_id": "a", "n": 0, "command_id": "c", "proposed": []byte("action"), "edited": nil, "effective": nil,
			"targets": []byte{}, "used_at": 0,
		},
		"srv_event": {"seq": 1, "workspace": "default", "time": at, "device_id": "", "body": []byte{}},
		"srv_saved": {
			"id": "s", "workspace": "default", "device_id": "k3v9x2mqta", "command_id": "c", "tab_id": "k3v9x2mqta_tab-1",
			"kind": "saved", "state": "pending", "saved_at": at, "body": []byte{},
		},
		"srv_browser": {"device_id": "k3v9x2mqta", "as_of": at, "body": []byte{}},
		"srv_policy":  {"workspace": "default", "version": 1, "settings": []byte{}},
		"srv_rule":    {"id": "r", "workspace": "default", "version": 1, "body": []byte("rule")},
		"srv_audit": {
			"workspace": "default", "sequence": 1, "time": at, "record": []byte("record"), "previous": make([]byte, 32),
			"hash": make([]byte, 32),
		},
		"srv_audit_head": {"workspace": "default", "sequence": 1, "hash": make([]byte, 32)},
		"agt_conversation": {
			"id": "v", "workspace": "default", "title": "", "open": true, "created_at": at, "updated_at": at, "settings": []byte{},
			"parent_id": "", "root_id": "", "agent": "", "wakes": 6, "holds": 0, "history_from": 0, "last_end": 0,
			"sequence": 0,
		},
		"agt_chain": {"id": "c", "workspace": "default", "root_id": "v", "authority": "", "wakes_left": 12, "created_at": at},
		"agt_turn": {
			"id": "t", "conversation_id": "v", "state": "running", "durable": true, "stopping": false, "speaker": 1, "chain_id": "c",
			"choice": []byte{}, "sequence": 0, "rounds": 0, "tokens": 0, "millis": 0, "reason": 0, "started_at": at, "ended_at": 0,
		},
		"agt_queue": {
			"workspace": "default", "id": "m", "conversation_id": "v", "n": 1, "state": "waiting", "mode": 1, "sender": []byte{},
			"chain_id": "c", "choice": []byte{}, "body": []byte("hello"), "delivery": 2, "turn_id": "", "sequence": 0, "created_at": at,
		},
		"agt_output":  {"conversation_id": "v", "call_id": "c", "body": []byte{}},
		"agt_event":   {"conversation_id": "v", "seq": 1, "time": at, "turn_id": "", "body": []byte{}},
		"agt_message": {"conversation_id": "v", "n": 1, "body": []byte{}},
	}
}

// refused has, for every constraint, changes to a sound row that break it.
func refused() map[string][]row {
	ended := func(state string, more row) row {
		r := row{"state": state, "ended_at": at}
		maps.Copy(r, more)
		return r
	}
	return map[string][]row{
		"srv_device_named":    {{"id": ""}, {"workspace": ""}, {"name": ""}},
		"srv_device_kind":     {{"kind": 0}, {"kind": -1}},
		"srv_device_times":    {{"paired_at": 0}, {"last_seen": -1}, {"revoked_at": -1}},
		"srv_device_epoch":    {{"epoch": -1}},
		"srv_token_named":     {{"id": ""}, {"workspace": ""}},
		"srv_token_scope":     {{"scope": 1}, {"scope": 7}, {"scope": 0}},
		"srv_token_device":    {{"scope": 5}, {"scope": 4, "device_id": "k3v9x2mqta"}},
		"srv_token_hash":      {{"hash": []byte{}}, {"hash": make([]byte, 31)}, {"hash": make([]byte, 33)}},
		"srv_token_times":     {{"created_at": 0}, {"revoked_at": -1}},
		"srv_token_expiry":    {{"expires_at": at}, {"expires_at": -1}},
		"srv_token_rotation":  {{"replaces": "o"}, {"rotate_by": "o"}},
		"srv_workspace_named": {{"name": ""}},
		"srv_workspace_time":  {{"created_at": 0}},
		"srv_command_named":   {{"id": ""}, {"group_id": ""}, {"workspace": ""}, {"device_id": ""}, {"name": ""}},
		"srv_command_state":   {{"state": ""}, {"state": "done"}, {"state": "Sent"}},
		"srv_command_result":  {{"result": []byte("r")}, ended("failed", row{"result": []byte("r")})},
		"srv_command_error":   {{"error": []byte("e")}, ended("succeeded", row{"error": []byte("e")})},
		"srv_command_action":  {{"action": []byte{}}},
		"srv_command_times":   {{"created_at": 0}, {"deadline": at - 1}, {"ended_at": -1}},
		"srv_command_act":     {{"act_targets": -1, "act": "a"}, {"act": "a"}, {"act_targets": 1}},
		"srv_command_undo":    {{"undoes": "c", "undo_targets": -1}, {"undoes": "c", "undone": -1}, {"undo_targets": 1}, {"undone": 1}},
		"srv_command_ended": {
			{"ended_at": at},
			{"state": "sent", "ended_at": at},
			{"state": "acknowledged", "ended_at": at},
			{"state": "awaiting_approval", "ended_at": at},
			{"state": "succeeded"},
			{"state": "failed"},
			{"state": "expired"},
			{"state": "cancelled"},
			{"state": "interrupted"},
		},
		"srv_device_online":   {{"online": 2}, {"online": -1}},
		"srv_event_seq":       {{"seq": 0}, {"seq": -1}},
		"srv_event_workspace": {{"workspace": ""}},
		"srv_event_time":      {{"time": 0}},
		"srv_saved_named":     {{"id": ""}, {"workspace": ""}, {"device_id": ""}, {"command_id": ""}, {"tab_id": ""}},
		"srv_saved_kind":      {{"kind": ""}, {"kind": "open"}},
		"srv_saved_state":     {{"state": ""}, {"state": "gone"}},
		"srv_saved_time":      {{"saved_at": 0}},
		"srv_browser_device":  {{"device_id": ""}},
		"srv_browser_time":    {{"as_of": 0}},
		"srv_command_ttl":     {{"ttl": -1}},
		"srv_command_origin":  {{"origin": 3}, {"origin": -1}},
		"srv_approval_named":  {{"id": ""}, {"workspace": ""}, {"group_id": ""}, {"hash": ""}},
		"srv_approval_state":  {{"state": ""}, {"state": "Pending"}, {"state": "accepted"}},
		"srv_approval_decided": {
			{"state": "expired"}, {"state": "withdrawn"}, {"state": "void"}, {"decided_at": at},
		},
		"srv_approval_bound": {{"state": "approved", "decided_at": at, "decided_by": "t"}},
		"srv_approval_by": {
			{"state": "denied", "decided_at": at}, {"state": "expired", "decided_at": at, "decided_by": "t"}, {"decided_by": "t"},
		},
		"srv_approval_origin": {{"origin": 0}, {"origin": 3}},
		"srv_approval_times": {
			{"created_at": 0}, {"expires_at": at}, {"warned_at": -1}, {"decided_at": -1}, {"policy_version": -1},
		},
		"srv_approval_call_n":       {{"n": -1}},
		"srv_approval_call_command": {{"command_id": ""}},
		"srv_approval_call_used":    {{"used_at": -1}},
		"srv_policy_named":          {{"workspace": ""}},
		"srv_policy_version":        {{"version": 0}},
		"srv_rule_named":            {{"id": ""}, {"workspace": ""}},
		"srv_rule_version":          {{"version": 0}},
		"srv_rule_body":             {{"body": []byte{}}},
		"srv_audit_named":           {{"workspace": ""}},
		"srv_audit_sequence":        {{"sequence": 0}, {"sequence": -1}},
		"srv_audit_time":            {{"time": 0}},
		"srv_audit_record":          {{"record": []byte{}}},
		"srv_audit_hashes": {
			{"previous": []byte{}}, {"previous": make([]byte, 31)}, {"hash": []byte{}}, {"hash": make([]byte, 33)},
		},
		"srv_audit_head_named":    {{"workspace": ""}},
		"srv_audit_head_sequence": {{"sequence": 0}},
		"srv_audit_head_hash":     {{"hash": []byte{}}, {"hash": make([]byte, 31)}},
		"agt_conversation_named": {
			{"id": ""}, {"workspace": ""},
		},
		"agt_conversation_times":    {{"created_at": 0}, {"updated_at": 0}},
		"agt_conversation_wakes":    {{"wakes": -1}},
		"agt_conversation_holds":    {{"holds": -1}, {"holds": 8}},
		"agt_conversation_history":  {{"history_from": -1}},
		"agt_conversation_last_end": {{"last_end": -1}, {"last_end": 5}},
		"agt_conversation_sequence": {{"sequence": -1}},
		"agt_conversation_family":   {{"parent_id": "p"}, {"root_id": "r"}},
		"agt_chain_named":           {{"id": ""}, {"workspace": ""}, {"root_id": ""}},
		"agt_chain_left":            {{"wakes_left": -1}},
		"agt_chain_time":            {{"created_at": 0}},
		"agt_turn_named":            {{"id": ""}, {"chain_id": ""}},
		"agt_turn_state":            {{"state": ""}, {"state": "Running"}, {"state": "waiting"}},
		"agt_turn_speaker":          {{"speaker": 0}, {"speaker": 3}},
		"agt_turn_spent":            {{"sequence": -1}, {"rounds": -1}, {"tokens": -1}, {"millis": -1}},
		"agt_turn_ended": {
			{"reason": 1}, {"ended_at": at}, {"state": "ended"}, {"state": "ended", "reason": 1}, {"state": "ended", "ended_at": at},
		},
		"agt_turn_reason":    {{"state": "ended", "ended_at": at, "reason": 5}},
		"agt_turn_times":     {{"started_at": 0}},
		"agt_queue_named":    {{"workspace": ""}, {"id": ""}, {"chain_id": ""}},
		"agt_queue_n":        {{"n": 0}},
		"agt_queue_state":    {{"state": "", "body": []byte{}}, {"state": "Taken", "body": []byte{}}},
		"agt_queue_mode":     {{"mode": 0}, {"mode": 3}},
		"agt_queue_body":     {{"body": []byte{}}, {"state": "removed"}},
		"agt_queue_delivery": {{"delivery": 0}, {"delivery": 5}},
		"agt_queue_turn":     {{"state": "taken", "body": []byte{}}},
		"agt_queue_times":    {{"sequence": -1}, {"created_at": 0}},
		"agt_output_call":    {{"call_id": ""}},
		"agt_event_seq":      {{"seq": 0}},
		"agt_event_time":     {{"time": 0}},
		"agt_message_n":      {{"n": 0}},
	}
}

func TestChecksRefuse(t *testing.T) {
	t.Parallel()
	onEach(t, testChecksRefuse)
}

func testChecksRefuse(t *testing.T, engine storetest.Engine) {
	pool := migrated(t, engine)
	rows, cases := sound(), refused()
	for _, table := range tablesInOrder(rows) {
		if err := insert(t.Context(), pool, table, rows[table]); err != nil {
			t.Errorf("sound row of %s: %v", table, err)
		}
	}
	for _, name := range constraints(t) {
		if len(cases[name]) == 0 {
			t.Errorf("constraint %s has no row that breaks it here", name)
		}
	}
	for name, changes := range cases {
		table := tableOf(name, rows)
		for _, change := range changes {
			bad := another(rows[table])
			maps.Copy(bad, change)
			err := insert(t.Context(), pool, table, bad)
			if !errors.Is(typed(err), ErrRefused) || !strings.Contains(err.Error(), name) {
				t.Errorf("%s with %v: error is %v, want it refused by %s", table, change, err, name)
			}
		}
	}
}

// tableOf is the table of a constraint, whose name begins with the table's.
func tableOf(constraint string, rows map[string]row) string {
	longest := ""
	for table := range rows {
		if strings.HasPrefix(constraint, table+"_") && len(table) > len(longest) {
			longest = table
		}
	}
	return longest
}

// TestNullsRefused puts a null into every column: only a command's result and error may be null.
func TestNullsRefused(t *testing.T) {
	t.Parallel()
	onEach(t, testNullsRefused)
}

func testNullsRefused(t *testing.T, engine storetest.Engine) {
	pool := migrated(t, engine)
	for table, sound := range sound() {
		for column := range sound {
			if table == "srv_command" && (column == "result" || column == "error") {
				continue
			}
			if engine.SQLite() && table == "srv_event" && column == "seq" {
				continue // it is filled in
			}
			bad := another(sound)
			bad[column] = nil
			if err := insert(t.Context(), pool, table, bad); !errors.Is(typed(err), ErrRefused) {
				t.Errorf("%s without %s: error is %v, want ErrRefused", table, column, err)
			}
		}
	}
}

func TestKeysRefuse(t *testing.T) {
	t.Parallel()
	onEach(t, testKeysRefuse)
}

func testKeysRefuse(t *testing.T, engine storetest.Engine) {
	pool := migrated(t, engine)
	rows := sound()
	for _, table := range tablesInOrder(rows) {
		check(t, insert(t.Context(), pool, table, rows[table]))
		if err := insert(t.Context(), pool, table, rows[table]); !errors.Is(typed(err), ErrConflict) {
			t.Errorf("%s twice: error is %v, want ErrConflict", table, err)
		}
	}
	for table, change := range map[string]row{
		"srv_token": {"id": "other"}, // the same hash
		"srv_saved": {"id": "other"}, // the same tab of the same command
		"agt_turn":  {"id": "other"}, // a second one that runs
		"agt_queue": {"id": "other"}, // the same place
	} {
		bad := maps.Clone(rows[table])
		maps.Copy(bad, change)
		if err := insert(t.Context(), pool, table, bad); !errors.Is(typed(err), ErrConflict) {
			t.Errorf("%s with %v: error is %v, want ErrConflict", table, change, err)
		}
	}
	for _, table := range []string{"agt_event", "agt_message", "agt_turn", "agt_queue", "agt_output"} {
		bad := another(rows[table])
		bad["conversation_id"] = "unknown"
		if err := insert(t.Context(), pool, table, bad); !errors.Is(typed(err), ErrRefused) {
			t.Errorf("%s of an unknown conversation: error is %v, want ErrRefused", table, err)
		}
	}
}

// tablesInOrder has agt_conversation before what refers to it.
func tablesInOrder(rows map[string]row) []string {
	names := slices.Sorted(maps.Keys(rows))
	slices.SortStableFunc(names, func(a, b string) int {
		return strings.Compare(strings.TrimPrefix(a, "agt_conversation"), strings.TrimPrefix(b, "agt_conversation"))
	})
	return names
}

// migrated gives a new database by itself.
func migrated(tb testing.TB, engine storetest.Engine) *sql.DB {
	tb.Helper()
	if !engine.SQLite() {
		pool := storetest.Open(tb, engine.URL(tb))
		check(tb, migrate(tb.Context(), goose.DialectPostgres, pool))
		return pool
	}
	pool := openWriter(filepath.Join(tb.TempDir(), "new.db"))
	tb.Cleanup(func() { check(tb, pool.Close()) })
	check(tb, migrate(tb.Context(), goose.DialectSQLite3, pool))
	return pool
}

// another gives a row whose keys are those of no row yet.
func another(r row) row {
	r = maps.Clone(r)
	for _, key := range []string{"id", "device_id", "tab_id"} {
		if text, ok := r[key].(string); ok && text != "" {
			r[key] = text + "2"
		}
	}
	for _, key := range []string{"seq", "sequence", "n"} {
		if _, ok := r[key]; ok {
			r[key] = 2
		}
	}
	if _, ok := r["hash"]; ok {
		r["hash"] = []byte(strings.Repeat("h", 32))
	}
	return r
}

func insert(ctx context.Context, pool *sql.DB, table string, r row) error {
	columns := slices.Sorted(maps.Keys(r))
	values, places := make([]any, len(columns)), make([]string, len(columns))
	for n, column := range columns {
		values[n], places[n] = r[column], fmt.Sprint("$", n+1)
	}
	_, err := pool.ExecContext(ctx, fmt.Sprintf("insert into %s (%s) values (%s)", table, strings.Join(columns, ", "),
		strings.Join(places, ", ")), values...)
	return err
}

// constraints reads the names of all constraints from the migrations.
func constraints(tb testing.TB) []string {
	tb.Helper()
	paths, err := fs.Glob(migrations, "migrations/sqlite/*.sql")
	check(tb, err)
	pattern := regexp.MustCompile(`(?m)^\s*constraint (\w+) `)
	var names []string
	for _, path := range paths {
		text, err := fs.ReadFile(migrations, path)
		check(tb, err)
		named := pattern.FindAllSubmatch(text, -1)
		for _, match := range named {
			names = append(names, string(match[1]))
		}
		if all := strings.Count(string(text), " check ("); all != len(named) {
			tb.Errorf("%s has %d checks, of which %d are named", path, all, len(named))
		}
	}
	return names
}
