package storage

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"

	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	optionv1 "throwbar.dev/throwbar/gen/go/throwbar/option/v1"
	"throwbar.dev/throwbar/server/dispatch"
	"throwbar.dev/throwbar/store"
	"throwbar.dev/throwbar/store/db"
)

// levelOf is how much the acceptance of commands has to survive: a power cut if one of them can destroy something, or
// nobody knows what it can.
func (s *Storage) levelOf(commands []dispatch.Acceptance) store.Level {
	if s.auditing.SyncAll {
		return store.Synced
	}
	if s.auditing.Catalogue == nil {
		return store.Fast
	}
	for i := range commands {
		entry, ok := s.auditing.Catalogue.Lookup(commands[i].Record.Name)
		if !ok || entry.Command.GetEffect() >= optionv1.Effect_EFFECT_DESTRUCTIVE {
			return store.Synced
		}
	}
	return store.Fast
}

// levelOfEnds is how much the ends of commands have to survive.
func (s *Storage) levelOfEnds() store.Level {
	if s.auditing.SyncAll {
		return store.Synced
	}
	return store.Fast
}

// auditAccepted notes that a command was written down.
func auditAccepted(ctx context.Context, q *db.Queries, rec dispatch.Record) error {
	entry := &controlv1.AuditRecord{
		Kind: controlv1.AuditKind_AUDIT_KIND_COMMAND_ACCEPTED, Actor: rec.Principal, SubjectId: rec.ID, DeviceId: rec.Device,
		Name: rec.Name, State: rec.State.Proto(), ApprovalId: rec.Approval, Origin: rec.Origin,
	}
	auditArguments(entry, rec)
	return audit(ctx, q, rec.Workspace, rec.CreatedAt, entry)
}

// auditArguments puts arguments into an entry, as they were written down. What is sensitive in them is left out later; of
// what is about a private tab there are only ids.
func auditArguments(entry *controlv1.AuditRecord, rec dispatch.Record) {
	action := &commandv1.Action{}
	if err := proto.Unmarshal(rec.Action, action); err != nil {
		entry.Detail = fmt.Sprintf("argumentBytes=%d unreadable", len(rec.Action))
		return
	}
	if rec.Private {
		action, _ = dispatch.Discreet(action).(*commandv1.Action)
	}
	entry.Action = action
}

// auditEnded notes how a command ended.
func auditEnded(ctx context.Context, q *db.Queries, rec dispatch.Record) error {
	entry := &controlv1.AuditRecord{
		Kind: controlv1.AuditKind_AUDIT_KIND_COMMAND_ENDED, SubjectId: rec.ID, DeviceId: rec.Device, Name: rec.Name,
		State: rec.State.Proto(),
	}
	auditOutcome(entry, rec)
	return audit(ctx, q, rec.Workspace, rec.EndedAt, entry)
}

// auditOutcome puts the code of an error or the figures of a result into an entry, and no text of a device.
func auditOutcome(entry *controlv1.AuditRecord, rec dispatch.Record) {
	if len(rec.Error) == 0 {
		entry.Detail = rec.Summary
		return
	}
	failed := &commandv1.CommandError{}
	if err := proto.Unmarshal(rec.Error, failed); err != nil {
		entry.Detail = "unreadable"
		return
	}
	entry.Error = failed.GetCode()
}

// auditLate notes that a result came after its command's end.
func auditLate(ctx context.Context, q *db.Queries, rec dispatch.Record, at time.Time, detail string) error {
	return audit(ctx, q, rec.Workspace, at, &controlv1.AuditRecord{
		Kind: controlv1.AuditKind_AUDIT_KIND_COMMAND_LATE, SubjectId: rec.ID, DeviceId: rec.Device, Name: rec.Name,
		State: rec.State.Proto(), Detail: detail,
	})
}
