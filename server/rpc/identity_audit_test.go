package rpc_test

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"google.golang.org/protobuf/proto"

	"throwbar.dev/throwbar/app"
	"throwbar.dev/throwbar/app/apptest"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	"throwbar.dev/throwbar/gen/go/throwbar/control/v1/controlv1connect"
	devicev1 "throwbar.dev/throwbar/gen/go/throwbar/device/v1"
	optionv1 "throwbar.dev/throwbar/gen/go/throwbar/option/v1"
)

// record reads the audit record of a workspace, and the bytes that are kept of it.
func record(t *testing.T, s *apptest.Server, owner string) (all []*controlv1.AuditRecord, raw []byte) {
	t.Helper()
	stream, err := controlv1connect.NewAuditServiceClient(s.Client(t, owner, nil)).ReadAudit(t.Context(), &controlv1.ReadAuditRequest{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stream.Close() }()
	for {
		res, err := stream.Receive()
		if errors.Is(err, io.EOF) {
			return all, raw
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range res.GetEntries() {
			r := &controlv1.AuditRecord{}
			if err := proto.Unmarshal(e.GetRecord(), r); err != nil {
				t.Fatal(err)
			}
			all, raw = append(all, r), append(raw, e.GetRecord()...)
		}
	}
}

// Who made, revoked, paired, renamed and rotated what is in the record, with who it was and without a secret.
func TestTheRecordSaysWhoChangedIdentities(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, app.Config{})
	client := s.Client(t, s.Owner, nil)
	tokens, devices := controlv1connect.NewTokenServiceClient(client), s.Devices(t)
	list, err := tokens.ListTokens(t.Context(), &controlv1.ListTokensRequest{})
	if err != nil {
		t.Fatal(err)
	}
	me := list.GetTokens()[0].GetTokenId()
	made, err := tokens.CreateToken(t.Context(), &controlv1.CreateTokenRequest{Name: "ci", Scope: optionv1.Scope_SCOPE_HOOK})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tokens.RevokeToken(t.Context(), &controlv1.RevokeTokenRequest{TokenId: made.GetToken().GetTokenId()}); err != nil {
		t.Fatal(err)
	}
	code, err := devices.CreatePairingCode(t.Context(), &controlv1.CreatePairingCodeRequest{})
	if err != nil {
		t.Fatal(err)
	}
	d, err := s.Device(t, "").Pair(t.Context(), &devicev1.PairRequest{Code: code.GetCode(), Name: "laptop", Kind: devicev1.Kind_KIND_BROWSER})
	if err != nil {
		t.Fatal(err)
	}
	id := d.GetDeviceId()
	if _, err := devices.RenameDevice(t.Context(), &controlv1.RenameDeviceRequest{DeviceId: id, Name: "work"}); err != nil {
		t.Fatal(err)
	}
	if _, err := devices.RotateDevice(t.Context(), &controlv1.RotateDeviceRequest{DeviceId: id}); err != nil {
		t.Fatal(err)
	}
	second, _ := rotation(t.Context(), s.Device(t, d.GetToken()))
	third, _ := rotation(t.Context(), s.Device(t, second))
	if _, err := devices.RevokeDevice(t.Context(), &controlv1.RevokeDeviceRequest{DeviceId: id}); err != nil {
		t.Fatal(err)
	}
	space, err := controlv1connect.NewWorkspaceServiceClient(client).CreateWorkspace(t.Context(), &controlv1.CreateWorkspaceRequest{Name: "home"})
	if err != nil {
		t.Fatal(err)
	}
	all, raw := record(t, s, s.Owner)
	want := []struct {
		kind          controlv1.AuditKind
		mine          bool // whether the owner did it
		device, named string
	}{
		{controlv1.AuditKind_AUDIT_KIND_TOKEN_CREATED, false, "", "owner"}, // by the server, at its first start
		{controlv1.AuditKind_AUDIT_KIND_TOKEN_CREATED, true, "", "ci"},
		{controlv1.AuditKind_AUDIT_KIND_TOKEN_REVOKED, true, "", "ci"},
		{controlv1.AuditKind_AUDIT_KIND_PAIRING_CODE_CREATED, true, "", ""},
		{controlv1.AuditKind_AUDIT_KIND_DEVICE_PAIRED, true, id, "laptop"},
		{controlv1.AuditKind_AUDIT_KIND_DEVICE_RENAMED, true, id, "work"},
		{controlv1.AuditKind_AUDIT_KIND_DEVICE_ROTATED, true, id, "laptop"},  // made, as the owner asked
		{controlv1.AuditKind_AUDIT_KIND_DEVICE_ROTATED, false, id, "laptop"}, // in use
		{controlv1.AuditKind_AUDIT_KIND_DEVICE_ROTATED, false, id, "laptop"}, // made, as the device asked
		{controlv1.AuditKind_AUDIT_KIND_DEVICE_REVOKED, true, id, "work"},
		{controlv1.AuditKind_AUDIT_KIND_WORKSPACE_CREATED, true, "", "home"},
	}
	for i, w := range want {
		if i >= len(all) {
			t.Fatalf("%d entries of %d", len(all), len(want))
		}
		if r := all[i]; r.GetKind() != w.kind || (r.GetActor() == me) != w.mine || r.GetDeviceId() != w.device || r.GetName() != w.named {
			t.Errorf("entry %d: %v, want %+v", i, r, w)
		}
	}
	if len(all) != len(want) {
		t.Errorf("%d entries, want %d: %v", len(all), len(want), all[len(want):])
	}
	for _, secret := range []string{s.Owner, made.GetSecret(), code.GetCode(), d.GetToken(), second, third, space.GetSecret()} {
		if bytes.Contains(raw, []byte(secret)) {
			t.Errorf("%q is in the record", secret)
		}
	}
	theirs, _ := record(t, s, space.GetSecret())
	if len(theirs) != 1 || theirs[0].GetKind() != controlv1.AuditKind_AUDIT_KIND_TOKEN_CREATED || theirs[0].GetActor() != me {
		t.Errorf("the new workspace's record: %v", theirs)
	}
}
