package app_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"throwbar.dev/throwbar/app"
	"throwbar.dev/throwbar/app/apptest"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	"throwbar.dev/throwbar/gen/go/throwbar/control/v1/controlv1connect"
	optionv1 "throwbar.dev/throwbar/gen/go/throwbar/option/v1"
	"throwbar.dev/throwbar/store"
)

func audits(t *testing.T, s *apptest.Server, token string) controlv1connect.AuditServiceClient {
	t.Helper()
	return controlv1connect.NewAuditServiceClient(s.Client(t, token, nil))
}

// TestTheAuditRecordMovesBetweenTheEngines: the chain is as it was after it was taken from SQLite to PostgreSQL and back, and
// goes on from there.
func TestTheAuditRecordMovesBetweenTheEngines(t *testing.T) {
	t.Parallel()
	first := apptest.Start(t, app.Config{})
	if _, err := tokens(t, first).CreateToken(t.Context(), &controlv1.CreateTokenRequest{Name: "ci", Scope: optionv1.Scope_SCOPE_VIEWER}); err != nil {
		t.Fatal(err)
	}
	before, err := audits(t, first, first.Owner).VerifyAudit(t.Context(), &controlv1.VerifyAuditRequest{})
	if err != nil || !before.GetIntact() || before.GetChecked() < 2 {
		t.Fatalf("to begin with: %v, %v", before, err)
	}
	first.Stop()
	files, url, last := t.TempDir(), postgres.URL(t), t.TempDir()
	for _, args := range [][]string{
		{"export", filepath.Join(files, "1"), "--data-dir", first.Dir},
		{"import", filepath.Join(files, "1"), "--database", url},
		{"export", filepath.Join(files, "2"), "--database", url},
		{"import", filepath.Join(files, "2"), "--data-dir", last},
	} {
		if code, out, errs := throwbar(t, nil, args...); code != 0 {
			t.Fatalf("%v: %d\n%s%s", args, code, out, errs)
		}
	}
	owner, err := os.ReadFile(filepath.Join(first.Dir, "owner.token"))
	if err != nil {
		t.Fatal(err)
	}
	for _, cfg := range []app.Config{{DataDir: t.TempDir(), Store: store.Config{URL: url}}, {DataDir: last}} {
		if err := os.WriteFile(filepath.Join(cfg.DataDir, "owner.token"), owner, 0o600); err != nil {
			t.Fatal(err)
		}
		s := apptest.Start(t, cfg)
		after, err := audits(t, s, s.Owner).VerifyAudit(t.Context(), &controlv1.VerifyAuditRequest{Anchor: before.GetHead()})
		if err != nil || !after.GetIntact() || after.GetChecked() != before.GetChecked() || !bytes.Equal(after.GetHead(), before.GetHead()) {
			t.Errorf("after the move: %v, %v, want %v", after, err, before)
		}
		if _, err := tokens(t, s).CreateToken(t.Context(), &controlv1.CreateTokenRequest{Name: "more", Scope: optionv1.Scope_SCOPE_VIEWER}); err != nil {
			t.Fatal(err)
		}
		on, err := audits(t, s, s.Owner).VerifyAudit(t.Context(), &controlv1.VerifyAuditRequest{Anchor: before.GetHead()})
		if err != nil || !on.GetIntact() || on.GetChecked() != before.GetChecked()+1 {
			t.Errorf("it goes on: %v, %v", on, err)
		}
		s.Stop()
	}
}

// TestAnAuditRecordIsForItsOwnersOnly (security 20): a viewer and an operator are refused, and an owner of another workspace
// reads and verifies that one's record.
func TestAnAuditRecordIsForItsOwnersOnly(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, app.Config{})
	ours := readAudit(t, s, s.Owner)
	for _, scope := range []optionv1.Scope{optionv1.Scope_SCOPE_VIEWER, optionv1.Scope_SCOPE_OPERATOR} {
		made, err := tokens(t, s).CreateToken(t.Context(), &controlv1.CreateTokenRequest{Name: "x", Scope: scope})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := audits(t, s, made.GetSecret()).VerifyAudit(t.Context(), &controlv1.VerifyAuditRequest{}); err == nil {
			t.Errorf("%v may verify", scope)
		}
		stream, err := audits(t, s, made.GetSecret()).ReadAudit(t.Context(), &controlv1.ReadAuditRequest{})
		if err == nil {
			_, err = stream.Receive()
		}
		if err == nil || errors.Is(err, io.EOF) {
			t.Errorf("%v may read", scope)
		}
	}
	other, err := controlv1connect.NewWorkspaceServiceClient(s.Client(t, s.Owner, nil)).CreateWorkspace(
		t.Context(), &controlv1.CreateWorkspaceRequest{Name: "other"})
	if err != nil {
		t.Fatal(err)
	}
	theirs := readAudit(t, s, other.GetSecret())
	for _, record := range theirs {
		if record.GetWorkspace() == ours[0].GetWorkspace() {
			t.Errorf("an entry of another workspace: %v", record)
		}
	}
	if len(theirs) == 0 || theirs[0].GetSequence() != 1 {
		t.Errorf("the record of another workspace is %v", theirs)
	}
	// Its hashes are no anchors here.
	answer, err := audits(t, s, other.GetSecret()).VerifyAudit(t.Context(), &controlv1.VerifyAuditRequest{})
	if err != nil || !answer.GetIntact() {
		t.Fatalf("%v, %v", answer, err)
	}
	mixed, err := audits(t, s, s.Owner).VerifyAudit(t.Context(), &controlv1.VerifyAuditRequest{Anchor: answer.GetHead()})
	if err != nil || mixed.GetIntact() || !strings.HasPrefix(mixed.GetProblem(), "anchor") {
		t.Errorf("%v, %v", mixed, err)
	}
}

func readAudit(t *testing.T, s *apptest.Server, token string) []*controlv1.AuditRecord {
	t.Helper()
	stream, err := audits(t, s, token).ReadAudit(context.WithoutCancel(t.Context()), &controlv1.ReadAuditRequest{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stream.Close() }()
	var all []*controlv1.AuditRecord
	for {
		page, err := stream.Receive()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range page.GetEntries() {
			record := &controlv1.AuditRecord{}
			if err := proto.Unmarshal(e.GetRecord(), record); err != nil {
				t.Fatal(err)
			}
			all = append(all, record)
		}
	}
}

func TestAuditSyncIsChecked(t *testing.T) {
	t.Parallel()
	code, _, errs := throwbar(t, map[string]string{"THROWBAR_DATA_DIR": t.TempDir()}, "serve", "--audit-sync", "some")
	if code != 2 || !strings.Contains(errs, "--audit-sync") || !strings.Contains(errs, "effects or all") {
		t.Errorf("exit %d: %s", code, errs)
	}
}
