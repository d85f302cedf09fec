package cli_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect/v2"
	"google.golang.org/protobuf/types/known/timestamppb"

	"throwbar.dev/throwbar/auditlog"
	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	"throwbar.dev/throwbar/gen/go/throwbar/control/v1/controlv1connect"
)

var _ controlv1connect.AuditServiceHandler = (*fake)(nil)

// auditRecord is a small record.
func auditRecord() []*controlv1.AuditEntry {
	head := auditlog.Genesis()
	var all []*controlv1.AuditEntry
	for i, r := range []*controlv1.AuditRecord{
		{Kind: controlv1.AuditKind_AUDIT_KIND_TOKEN_CREATED, SubjectId: "tok-0", Name: "owner", Scope: 4},
		{
			Kind: controlv1.AuditKind_AUDIT_KIND_COMMAND_ACCEPTED, Actor: "tok-0", SubjectId: "cmd-1", DeviceId: laptop, Name: "openTab",
			State:  controlv1.State_STATE_ACCEPTED,
			Action: &commandv1.Action{Kind: &commandv1.Action_OpenTab{OpenTab: &commandv1.OpenTab{Url: "https://go.dev/"}}},
		},
		{Kind: controlv1.AuditKind_AUDIT_KIND_COMMAND_ENDED, SubjectId: "cmd-1", DeviceId: laptop, Name: "openTab", State: controlv1.State_STATE_SUCCEEDED},
	} {
		r.Sequence, r.Workspace, r.Time = uint64(i+1), "default", timestamppb.New(now().Add(time.Duration(i)*time.Hour))
		e, err := auditlog.Seal(head, r)
		if err != nil {
			panic(err)
		}
		all = append(all, e)
		head = e.GetHash()
	}
	return all
}

func (f *fake) ReadAudit(
	_ context.Context, req *controlv1.ReadAuditRequest, stream controlv1connect.AuditServiceReadAuditServerStream,
) error {
	f.mu.Lock()
	f.audits = append(f.audits, req)
	f.mu.Unlock()
	for _, e := range auditRecord()[min(req.GetAfter(), 3):] {
		if err := stream.Send(&controlv1.ReadAuditResponse{Entries: []*controlv1.AuditEntry{e}}); err != nil {
			return err
		}
	}
	if req.GetAfter() == 2 {
		return connect.NewError(connect.CodeAborted, "the audit record is damaged after entry 3")
	}
	return nil
}

func (f *fake) VerifyAudit(_ context.Context, req *controlv1.VerifyAuditRequest) (*controlv1.VerifyAuditResponse, error) {
	if len(req.GetAnchor()) > 0 {
		return &controlv1.VerifyAuditResponse{Checked: 3, FirstBad: 2, Problem: "hash: entry 2 is not what was written"}, nil
	}
	return &controlv1.VerifyAuditResponse{Intact: true, Checked: 3, Head: auditRecord()[2].GetHash()}, nil
}

const anchor = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

func TestAuditVerbs(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	for name, c := range map[string]struct {
		words string
		code  int
	}{
		"audit_export":      {"audit export", 0},
		"audit_verify":      {"audit verify", 0},
		"audit_verify_bad":  {"audit verify --anchor " + anchor, 1},
		"audit_verify_json": {"audit verify --anchor " + anchor + " -o json", 1},
		"help_audit_verify": {"help audit verify", 0},
		"help_audit_export": {"help audit export", 0},
	} {
		e := do(t, run{server: f.url, args: strings.Fields(c.words), env: map[string]string{"THROWBAR_TOKEN_FILE": tokenFile(t)}})
		if strings.HasPrefix(name, "help") {
			e.out = hideFile(e.out)
		}
		if e.code != c.code {
			t.Errorf("%s: exit code %d, want %d\n%s%s", name, e.code, c.code, e.out, e.err)
		}
		golden(t, name, e.out, f.url)
	}
}

func TestAuditExportAsksForAPart(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	for since, want := range map[string]time.Time{
		"2026-11-28T06:00:00Z": now().Add(-6 * time.Hour), "24h": now().Add(-24 * time.Hour), "2026-11-27T12:00:00+01:00": now().Add(-25 * time.Hour),
	} {
		f.run(t, "audit", "export", "--after", "1", "--since", since).check(t, 0)
		f.mu.Lock()
		got := f.audits[len(f.audits)-1]
		f.mu.Unlock()
		if !got.GetSince().AsTime().Equal(want) || got.GetAfter() != 1 {
			t.Errorf("%s: asked for %v", since, got)
		}
	}
	for _, words := range [][]string{
		{"audit", "export", "--since", "yesterday"},
		{"audit", "export", "--since", "-3h"},
		{"audit", "verify", "--anchor", "12"},
		{"audit", "verify", "a", "b"},
		{"audit", "export", "file"},
		{"audit", "verify", "/none/such"},
		{"audit", "check"},
	} {
		f.run(t, words...).check(t, 2)
	}
}

// TestAuditFilesAreCheckedWithoutAServer: what was exported, and what somebody did to it.
func TestAuditFilesAreCheckedWithoutAServer(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	file := filepath.Join(t.TempDir(), "audit.jsonl")
	f.run(t, "audit", "export", "--file", file).check(t, 0, "3 entries")
	f.run(t, "audit", "export", "--file", file).check(t, 2, "exists already")
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	nowhere := "http://127.0.0.1:1"
	head := strings.TrimSpace(strings.TrimPrefix(strings.Split(do(t, run{server: nowhere, args: []string{"audit", "verify", file}}).out, "\n")[1], "hash of the last:"))
	do(t, run{server: nowhere, args: []string{"audit", "verify", file, "--anchor", head}}).check(t, 0, "is intact: 3 entries")
	do(t, run{server: nowhere, args: []string{"audit", "verify", file, "--anchor", anchor}}).check(t, 1, "no entry has the hash")
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(raw, []byte("\n"))
	for name, c := range map[string]struct {
		text []byte
		want string
	}{
		"flipped": {bytes.Replace(raw, []byte("go.dev"), []byte("go.dex"), 1), "the first bad entry is 2: fields"},
		"dropped": {bytes.Join([][]byte{lines[0], lines[1], lines[3], lines[4]}, nil), "the first bad entry is 2: gap"},
		"cut off": {bytes.Join(lines[:4], nil), "the first bad entry is 4: head"},
		"no file": {[]byte("{}\n"), "no audit export"},
	} {
		e := do(t, run{server: nowhere, args: []string{"audit", "verify", "-"}, stdin: bytes.NewReader(c.text)})
		t.Log(name)
		e.check(t, 1, c.want)
	}
	part := filepath.Join(t.TempDir(), "part.jsonl")
	f.run(t, "audit", "export", "--file", part, "--after", "1").check(t, 0, "2 entries")
	do(t, run{server: nowhere, args: []string{"audit", "verify", part}}).check(t, 0, "warning: the file begins with entry 2", "is intact: 2 entries")
	broken := filepath.Join(t.TempDir(), "broken.jsonl")
	f.run(t, "audit", "export", "--file", broken, "--after", "2").check(t, 1, "damaged after entry 3")
	if _, err := os.Stat(broken); err == nil {
		t.Error("half a record is left")
	}
}
