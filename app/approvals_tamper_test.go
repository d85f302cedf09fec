package app_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"google.golang.org/protobuf/proto"

	"throwbar.dev/throwbar/app"
	"throwbar.dev/throwbar/app/apptest"
	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	"throwbar.dev/throwbar/server/approval"
)

// vandal changes rows of an approval between the decision and the start of its call.
type vandal struct {
	*court

	action *commandv1.Action

	mu   sync.Mutex
	acts map[string]func() // guarded by mu; by approval, done once
}

func newVandal(t *testing.T, cfg app.Config) *vandal {
	t.Helper()
	v := &vandal{court: newCourt(t, cfg), acts: map[string]func(){}}
	startSim(t, v.Server, "laptop")
	tabs, err := v.Browser(t).ListTabs(t.Context(), &controlv1.ListTabsRequest{PageSize: proto.Uint32(2)})
	if err != nil || len(tabs.GetTabs()) != 2 {
		t.Fatal(tabs, err)
	}
	ids := []string{tabs.GetTabs()[0].GetTabId(), tabs.GetTabs()[1].GetTabId()}
	v.action = &commandv1.Action{Kind: &commandv1.Action_CloseTabs{CloseTabs: &commandv1.CloseTabs{TabIds: ids}}}
	looks := func(a approval.Approval) {
		v.mu.Lock()
		act := v.acts[a.ID]
		delete(v.acts, a.ID)
		v.mu.Unlock()
		if act != nil {
			act()
		}
	}
	v.looks.Store(&looks)
	return v
}

// closing asks about closing two tabs.
func (v *vandal) closing(t *testing.T) (command string, a *controlv1.Approval) {
	t.Helper()
	res, err := v.commands.Submit(t.Context(), &controlv1.SubmitRequest{Action: v.action})
	if err != nil || len(res.GetOutcomes()) != 1 || res.GetOutcomes()[0].GetApprovalId() == "" {
		t.Fatalf("submit: %v, %v", res, err)
	}
	return res.GetOutcomes()[0].GetCommandId(), v.approval(t, res.GetOutcomes()[0].GetApprovalId())
}

func (v *vandal) exec(t *testing.T, statement string, args ...any) {
	t.Helper()
	res, err := v.pool.ExecContext(t.Context(), statement, args...)
	if err != nil {
		t.Errorf("%s: %v", statement, err)
		return
	}
	if n, err := res.RowsAffected(); n != 1 || err != nil {
		t.Errorf("%s: %d rows, %v", statement, n, err)
	}
}

// refused has a command approved, and its rows changed before it starts: nothing is sent, and it ends with a reason.
func (v *vandal) refused(t *testing.T, what string, act func(command, id string)) (id string) {
	t.Helper()
	command, a := v.closing(t)
	id = a.GetApprovalId()
	v.mu.Lock()
	v.acts[id] = func() { act(command, id) }
	v.mu.Unlock()
	// Where the row goes to another workspace, the answer may come too late to find it.
	if out := v.decide(t, approve(a)); out.GetError() != nil && out.GetError().GetCode() != commandv1.ErrorCode_ERROR_CODE_NOT_FOUND {
		t.Fatalf("%s: %v", what, out)
	}
	apptest.Eventually(t, what+": it has ended", func() bool {
		return v.row(t, "select ended_at from srv_command where id = $1", command) > 0
	})
	if n := v.row(t, "select count(*) from srv_command where id = $1 and state = 'failed' and length(error) > 0", command); n != 1 {
		t.Errorf("%s: it does not end with a typed error", what)
	}
	if n := v.row(t, "select count(*) from srv_approval_call where command_id = $1 and used_at > 0", command); n != 0 {
		t.Errorf("%s: it was started", what)
	}
	return id
}

// voids are the approvals that the audit record says to be void.
func (v *vandal) voids(t *testing.T) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	for _, record := range readAudit(t, v.Server, v.Owner) {
		if record.GetKind() == controlv1.AuditKind_AUDIT_KIND_APPROVAL_VOID {
			out[record.GetApprovalId()] = true
		}
	}
	return out
}

// TestBoundRows changes each bound field of the rows between the decision and the start, as somebody who can write to the
// database: each one is refused, nothing is sent, and the audit record says that the approval is void.
func TestBoundRows(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, cfg app.Config) {
		v := newVandal(t, cfg)
		of := map[string]string{"srv_approval": "id", "srv_approval_call": "approval_id", "srv_command": "approval_id"}
		other, err := proto.Marshal(opens("https://evil.example/"))
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range []struct {
			table, set string
			value      any
			elsewhere  bool // the audit entry is in another workspace's record
		}{
			{"srv_approval", "principal", "other", false},
			{"srv_approval", "conversation_id", "other", false},
			{"srv_approval", "group_id", "other", false},
			{"srv_approval", "request_id", "other", false},
			{"srv_approval", "origin", 1, false},
			{"srv_approval", "policy_version", 99, false},
			{"srv_approval", "expires_at", int64(1) << 60, false},
			{"srv_approval", "bound", "other", false},
			{"srv_approval", "workspace", "other", true},
			{"srv_approval_call", "command_id", "other", false},
			{"srv_approval_call", "proposed", other, false},
			{"srv_approval_call", "edited", other, false},
			{"srv_approval_call", "effective", other, false},
			{"srv_approval_call", "targets", []byte{}, false},
			{"srv_approval_call", "targets", []byte{0xff}, false},
			{"srv_command", "device_id", v.device, false},
			{"srv_command", "name", "openTab", false},
			{"srv_command", "ttl", 3_600_000, false},
			{"srv_command", "principal", "other", false},
			{"srv_command", "conversation_id", "other", false},
			{"srv_command", "group_id", "other", false},
			{"srv_command", "request_id", "other", false},
			{"srv_command", "origin", 1, false},
			{"srv_command", "workspace", "other", false},
		} {
			what := row.table + "." + row.set
			id := v.refused(t, what, func(_, id string) {
				v.exec(t, fmt.Sprintf("update %s set %s = $1 where %s = $2", row.table, row.set, of[row.table]), row.value, id)
			})
			if !row.elsewhere && !v.voids(t)[id] {
				t.Errorf("%s: the audit record does not say void", what)
			}
		}
		v.untouched(t)
	})
}

func (v *vandal) untouched(t *testing.T) {
	t.Helper()
	if n := openTabs(t, v.Server); n != 40 || v.tape.total() != 0 {
		t.Errorf("%d of 40 tabs are open, %d were opened", n, v.tape.total())
	}
	command, a := v.closing(t) // what nobody touched runs
	v.decide(t, approve(a))
	if got := v.end(t, command); got.GetState() != controlv1.State_STATE_SUCCEEDED {
		t.Errorf("untouched: %v", got)
	}
}

// TestFlippedBits flips one random bit, or replaces one random digit, in what is stored of an approved call: each is refused.
func TestFlippedBits(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, cfg app.Config) {
		v := newVandal(t, cfg)
		random := rand.New(rand.NewPCG(8, 15))
		flipped := map[string]string{}
		for n := range races / 4 {
			what := []string{"proposed", "effective", "targets", "bound"}[n%4]
			id := v.refused(t, fmt.Sprint(what, " ", n), func(_, id string) {
				if what == "bound" {
					v.flipHash(t, random, id)
				} else {
					v.flip(t, random, what, id)
				}
			})
			flipped[id] = what
		}
		voids := v.voids(t)
		for id, what := range flipped {
			if !voids[id] {
				t.Errorf("%s of %s: the audit record does not say void", what, id)
			}
		}
		v.untouched(t)
	})
}

// flip flips bits of a blob until it means something else: one of a boolean may not.
func (v *vandal) flip(t *testing.T, random *rand.Rand, column, id string) {
	t.Helper()
	var was []byte
	if err := v.pool.QueryRowContext(t.Context(), "select "+column+" from srv_approval_call where approval_id = $1", id).Scan(&was); err != nil || len(was) == 0 {
		t.Errorf("%s: %d bytes, %v", column, len(was), err)
		return
	}
	for {
		now := bytes.Clone(was)
		now[random.IntN(len(now))] ^= 1 << random.IntN(8)
		a, b := &controlv1.Plan{}, &controlv1.Plan{}
		if column == "targets" && proto.Unmarshal(was, a) == nil && proto.Unmarshal(now, b) == nil && proto.Equal(a, b) {
			continue
		}
		v.exec(t, "update srv_approval_call set "+column+" = $1 where approval_id = $2", now, id)
		return
	}
}

func (v *vandal) flipHash(t *testing.T, random *rand.Rand, id string) {
	t.Helper()
	var was string
	if err := v.pool.QueryRowContext(t.Context(), "select bound from srv_approval where id = $1", id).Scan(&was); err != nil || len(was) != 64 {
		t.Errorf("hash %q, %v", was, err)
		return
	}
	now := []byte(was)
	for string(now) == was {
		now[random.IntN(len(now))] = "0123456789abcdef"[random.IntN(16)]
	}
	v.exec(t, "update srv_approval set bound = $1 where id = $2", string(now), id)
}

// TestChangedWhileItWaits: what a person saw is not what is written down when they say yes. It is void, and does not run.
func TestChangedWhileItWaits(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, cfg app.Config) {
		v := newVandal(t, cfg)
		other, err := proto.Marshal(opens("https://evil.example/"))
		if err != nil {
			t.Fatal(err)
		}
		for column, value := range map[string][]byte{"proposed": other, "targets": {}, "effective": other} {
			command, a := v.closing(t)
			v.exec(t, "update srv_approval_call set "+column+" = $1 where approval_id = $2", value, a.GetApprovalId())
			if out := v.decide(t, approve(a)); out.GetError().GetCode() != codeDenied || out.GetApproval().GetState() != voidState {
				t.Errorf("%s: %v", column, out)
			}
			if got := v.end(t, command); got.GetError().GetCode() != codeDenied || !v.voids(t)[a.GetApprovalId()] {
				t.Errorf("%s: %v", column, got)
			}
		}
		v.untouched(t)
	})
}
