package rpc

import (
	"context"
	"time"

	"throwbar.dev/throwbar/auditlog"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	"throwbar.dev/throwbar/gen/go/throwbar/control/v1/controlv1connect"
	"throwbar.dev/throwbar/server/auth"
)

// AuditReader reads and checks the audit records of workspaces.
type AuditReader interface {
	// AuditEntries gives the entries after a number and, if a time is given, from the first one on that is not older, in
	// order and a page at a time, up to the one that is the last now.
	AuditEntries(ctx context.Context, workspace string, after uint64, since time.Time, each func([]*controlv1.AuditEntry) error) error
	// VerifyAudit checks a record from its first entry to its end. The problem is nil if all is in order.
	VerifyAudit(ctx context.Context, workspace string, anchor []byte) (*auditlog.Checker, *auditlog.Problem, error)
}

var _ controlv1connect.AuditServiceHandler = (*auditHandler)(nil)

type auditHandler struct{ record AuditReader }

// auditMessage is about how many bytes of entries go into one message.
const auditMessage = 256 << 10

// ReadAudit gives the record, oldest first.
func (h *auditHandler) ReadAudit(
	ctx context.Context, req *controlv1.ReadAuditRequest, stream controlv1connect.AuditServiceReadAuditServerStream,
) error {
	token, err := auth.From(ctx)
	if err != nil {
		return err
	}
	var since time.Time
	if req.GetSince() != nil {
		since = req.GetSince().AsTime()
	}
	return h.record.AuditEntries(ctx, token.Workspace, req.GetAfter(), since, func(page []*controlv1.AuditEntry) error {
		for len(page) > 0 {
			n := fitting(page)
			if err := sendWatched(ctx, func() error {
				return stream.Send(&controlv1.ReadAuditResponse{Entries: page[:n]})
			}); err != nil {
				return err
			}
			page = page[n:]
		}
		return nil
	})
}

// fitting is how many of the entries go into one message: at least one.
func fitting(page []*controlv1.AuditEntry) int {
	size := 0
	for n, e := range page {
		if size += len(e.GetRecord()); size > auditMessage && n > 0 {
			return n
		}
	}
	return len(page)
}

// VerifyAudit checks the whole record.
func (h *auditHandler) VerifyAudit(
	ctx context.Context, req *controlv1.VerifyAuditRequest,
) (*controlv1.VerifyAuditResponse, error) {
	token, err := auth.From(ctx)
	if err != nil {
		return nil, err
	}
	check, problem, err := h.record.VerifyAudit(ctx, token.Workspace, req.GetAnchor())
	if err != nil {
		return nil, err
	}
	res := &controlv1.VerifyAuditResponse{Intact: problem == nil, Checked: check.Checked()}
	if check.Last() > 0 {
		res.Head = check.Head()
	}
	if problem != nil {
		res.FirstBad, res.Problem = problem.Sequence, problem.Error()
	}
	return res, nil
}
