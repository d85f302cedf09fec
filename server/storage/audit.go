package storage

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"throwbar.dev/throwbar/auditlog"
	"throwbar.dev/throwbar/catalog"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	"throwbar.dev/throwbar/server/auth"
	"throwbar.dev/throwbar/server/fault"
	"throwbar.dev/throwbar/store"
	"throwbar.dev/throwbar/store/db"
)

// auditText is how long a text of an entry may be. Entries are small: there are two for each command.
const auditText = 512

// auditAction is how many bytes of arguments an entry keeps.
const auditAction = 64 << 10

// Auditing says how the audit record is written.
type Auditing struct {
	// Catalogue knows which fields are sensitive, also those of commands that the program was not built with. Without one
	// what the program does not know is left out.
	Catalogue *catalog.Catalogue
	// SyncAll makes every command as durable as a decision of a person: on disk before it is acknowledged. Else that
	// is so for commands that can destroy something.
	SyncAll bool
	// Off leaves the record out. It is for measuring what the record costs.
	Off bool
}

// Audit sets how the audit record is written. It has to be called before the first write.
func (s *Storage) Audit(how Auditing) { s.auditing = how }

// audit adds an entry to a workspace's audit record, in the transaction of what it is about. Where the record does not
// say who did it, the token of the call counts, and without one the server did it. Sensitive fields are left out. The record
// belongs to audit then.
//
// Entries are collected and appended at the end of the transaction, so that ops that share one move the end of a record
// once. An op may run twice or be rolled back: what was collected is gone with the transaction.
func audit(ctx context.Context, q *db.Queries, workspace string, at time.Time, record *controlv1.AuditRecord) error {
	t, ok := ctx.Value(trailKey{}).(*trail)
	if !ok {
		t = &trail{}
	}
	if t.how.Off {
		return nil
	}
	record, err := t.tidy(ctx, workspace, at, record)
	if err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	t.entries = append(t.entries, record)
	if !ok {
		return t.End(ctx, q)
	}
	return nil
}

// trailKey is the key under which the context of a write has its trail.
type trailKey struct{}

// trail are the entries of one transaction.
type trail struct {
	how     Auditing
	heads   heads // may be nil: nothing is remembered then
	entries []*controlv1.AuditRecord
}

// heads are the ends of records as the last transaction left them, by workspace, whether it was committed or not. They
// are a guess, which the database has to confirm. They belong to the store's writer.
type heads map[string]db.AuditHead

// audited is an op that leaves what it has collected for the end of its transaction.
func (s *Storage) audited(write func(context.Context, *db.Queries) error) func(context.Context, *db.Queries) error {
	if s.auditing.Off {
		return func(ctx context.Context, q *db.Queries) error {
			return write(context.WithValue(ctx, trailKey{}, &trail{how: s.auditing}), q)
		}
	}
	return func(ctx context.Context, q *db.Queries) error {
		shared, err := store.Share(ctx, trailKey{}, func() store.Ending { return &trail{how: s.auditing, heads: s.heads} })
		if err != nil {
			return fmt.Errorf("audit: %w", err)
		}
		return write(context.WithValue(ctx, trailKey{}, shared), q)
	}
}

// tidy makes the record what is kept: without sensitive fields, with who, where and when.
func (t *trail) tidy(ctx context.Context, workspace string, at time.Time, kept *controlv1.AuditRecord) (*controlv1.AuditRecord, error) {
	if !t.harmless(kept) {
		var ok bool
		if kept, ok = t.redact(kept).(*controlv1.AuditRecord); !ok {
			return nil, errors.New("the record is none")
		}
	}
	if err := limitArguments(kept); err != nil {
		return nil, err
	}
	kept.Workspace, kept.Time = workspace, timestamppb.New(time.UnixMilli(at.UnixMilli()))
	if kept.GetActor() == "" {
		if token, err := auth.From(ctx); err == nil { // else it is the server itself
			kept.Actor = token.ID
		}
	}
	for _, field := range [...]*string{
		&kept.Actor, &kept.SubjectId, &kept.DeviceId, &kept.Name, &kept.RuleId, &kept.ApprovalId, &kept.ApprovalHash, &kept.Detail,
	} {
		*field = short(text(*field))
	}
	return kept, nil
}

// limitArguments replaces arguments that are too large for an entry by how many bytes they are and their hash.
func limitArguments(kept *controlv1.AuditRecord) error {
	if proto.Size(kept.GetAction()) <= auditAction {
		return nil
	}
	raw, err := proto.MarshalOptions{Deterministic: true}.Marshal(kept.GetAction())
	if err != nil {
		return fmt.Errorf("encode arguments: %w", err)
	}
	kept.Action = nil
	kept.Detail = strings.TrimSpace(fmt.Sprintf("argumentBytes=%d argumentsSHA256=%x %s", len(raw), sha256.Sum256(raw), kept.GetDetail()))
	return nil
}

func short(s string) string {
	if len(s) <= auditText {
		return s
	}
	return text(s[:auditText]) + "…"
}

// harmless says that redacting would leave a record as it is, so that there is no need for a copy.
func (t *trail) harmless(record *controlv1.AuditRecord) bool {
	return t.how.Catalogue != nil && t.how.Catalogue.Harmless(record)
}

func (t *trail) redact(m proto.Message) proto.Message {
	if t.how.Catalogue == nil {
		return catalog.Redact(m)
	}
	return t.how.Catalogue.Redact(m)
}

// End appends the entries, those of one workspace after another.
func (t *trail) End(ctx context.Context, q *db.Queries) error {
	for len(t.entries) > 0 {
		workspace := t.entries[0].GetWorkspace()
		own, others := t.entries, []*controlv1.AuditRecord(nil)
		if slices.ContainsFunc(own, func(r *controlv1.AuditRecord) bool { return r.GetWorkspace() != workspace }) {
			own = nil
			for _, record := range t.entries {
				if record.GetWorkspace() == workspace {
					own = append(own, record)
				} else {
					others = append(others, record)
				}
			}
		}
		if err := t.append(ctx, q, workspace, own); err != nil {
			return fmt.Errorf("audit: %w", err)
		}
		t.entries = others
	}
	return nil
}

// append appends entries of one workspace. Where the record ends is what is remembered only if the row says the same in
// this transaction, number and hash, and else what the row says: so a rollback, another run of the ops, or a commit of
// which nobody knows leaves neither a gap nor a fork.
func (t *trail) append(ctx context.Context, q *db.Queries, workspace string, records []*controlv1.AuditRecord) error {
	head, known := t.heads[workspace]
	var sealed []db.InsertAuditParams
	var err error
	if known {
		var end db.AuditHead
		if sealed, end, err = seal(head, records); err != nil {
			return err
		}
		moved, err := q.MoveAuditHead(ctx, db.MoveAuditHeadParams{
			Workspace: workspace, FromSequence: head.Sequence, FromHash: head.Hash, ToSequence: end.Sequence, ToHash: end.Hash,
		})
		if err != nil {
			return fmt.Errorf("move where it ends: %w", err)
		}
		known, head = moved == 1, end
	}
	if !known {
		if sealed, head, err = resume(ctx, q, workspace, records); err != nil {
			return err
		}
	}
	for n := range sealed {
		if err := q.InsertAudit(ctx, sealed[n]); err != nil {
			return fmt.Errorf("append: %w", err)
		}
	}
	if t.heads != nil {
		t.heads[workspace] = head
	}
	return nil
}

// resume seals entries after the end that the database has, and moves it.
func resume(
	ctx context.Context, q *db.Queries, workspace string, records []*controlv1.AuditRecord,
) ([]db.InsertAuditParams, db.AuditHead, error) {
	head, err := q.GetAuditHead(ctx, workspace)
	if noRow(err) {
		head, err = db.AuditHead{Workspace: workspace, Hash: auditlog.Genesis()}, nil
	}
	if err != nil {
		return nil, head, fmt.Errorf("read where it ends: %w", err)
	}
	sealed, head, err := seal(head, records)
	if err != nil {
		return nil, head, err
	}
	if err := q.SetAuditHead(ctx, db.SetAuditHeadParams{Workspace: workspace, Sequence: head.Sequence, Hash: head.Hash}); err != nil {
		return nil, head, fmt.Errorf("note where it ends: %w", err)
	}
	return sealed, head, nil
}

// seal makes records the entries after an end, and gives where they end.
func seal(head db.AuditHead, records []*controlv1.AuditRecord) ([]db.InsertAuditParams, db.AuditHead, error) {
	sealed := make([]db.InsertAuditParams, 0, len(records))
	for _, record := range records {
		head.Sequence++
		record.Sequence = uint64(head.Sequence)
		entry, err := auditlog.Seal(head.Hash, record)
		if err != nil {
			return nil, head, err
		}
		sealed = append(sealed, db.InsertAuditParams{
			Workspace: record.GetWorkspace(), Sequence: head.Sequence, Time: millis(record.GetTime().AsTime()), Record: entry.GetRecord(),
			Previous: entry.GetPrevious(), Hash: entry.GetHash(),
		})
		head.Hash = entry.GetHash()
	}
	return sealed, head, nil
}

// auditPage is how many entries are read at once. They are small.
const auditPage = 500

// AuditEntries gives the entries of a workspace after a number and not older than a time, in order, a page at a time, up to
// the one that was last when the call began.
func (s *Storage) AuditEntries(
	ctx context.Context, workspace string, after uint64, since time.Time, each func([]*controlv1.AuditEntry) error,
) error {
	q := s.store.Read()
	head, err := q.GetAuditHead(ctx, workspace)
	if noRow(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read where the audit record ends: %w", err)
	}
	if !since.IsZero() {
		first, err := q.FindAuditSince(ctx, db.FindAuditSinceParams{Workspace: workspace, Since: millis(since)})
		if noRow(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("find the first entry since a time: %w", err)
		}
		after = max(after, uint64(first-1))
	}
	for at := int64(min(after, uint64(head.Sequence))); at < head.Sequence; {
		rows, err := q.ListAudit(ctx, db.ListAuditParams{
			Workspace: workspace, After: at, PageSize: int32(min(auditPage, head.Sequence-at)),
		})
		if err != nil {
			return fmt.Errorf("read the audit record: %w", err)
		}
		if len(rows) == 0 {
			return fault.New(fault.Failed, "the audit record is damaged after entry %d: `throwbar audit verify` says how", at)
		}
		page := make([]*controlv1.AuditEntry, 0, len(rows))
		for _, row := range rows {
			page = append(page, auditEntry(row))
		}
		if err := each(page); err != nil {
			return err
		}
		at = rows[len(rows)-1].Sequence
	}
	return nil
}

func auditEntry(row db.Audit) *controlv1.AuditEntry {
	return &controlv1.AuditEntry{Record: row.Record, Previous: row.Previous, Hash: row.Hash}
}

// VerifyAudit checks the record of a workspace from its first entry to its end, and that the end is on disk: a hash that
// somebody notes down must not be lost with the power. The problem is nil if all is in order.
func (s *Storage) VerifyAudit(ctx context.Context, workspace string, anchor []byte) (*auditlog.Checker, *auditlog.Problem, error) {
	if err := s.store.Write(ctx, store.Synced, func(ctx context.Context, q *db.Queries) error {
		_, err := q.TouchAuditHead(ctx, workspace)
		return err
	}); err != nil {
		return nil, nil, fmt.Errorf("sync the audit record: %w", err)
	}
	check := auditlog.NewChecker(workspace, anchor)
	for { // most of it in pages of their own, so that writes are not held up
		rows, err := s.store.Read().ListAudit(ctx, db.ListAuditParams{
			Workspace: workspace, After: int64(check.Last()), PageSize: auditPage,
		})
		if err != nil {
			return nil, nil, fmt.Errorf("read the audit record: %w", err)
		}
		if problem := checkRows(check, rows); problem != nil {
			return check, problem, nil
		}
		if len(rows) < auditPage {
			break
		}
	}
	var problem *auditlog.Problem
	err := s.store.ReadTx(ctx, func(q *db.Queries) (err error) { // the rest and the end as they are at one moment
		problem, err = checkEnd(ctx, q, workspace, check)
		return err
	})
	if err != nil {
		return nil, nil, fmt.Errorf("read the audit record: %w", err)
	}
	return check, problem, nil
}

func checkEnd(ctx context.Context, q *db.Queries, workspace string, check *auditlog.Checker) (*auditlog.Problem, error) {
	head, err := q.GetAuditHead(ctx, workspace)
	if err != nil && !noRow(err) {
		return nil, err
	}
	for {
		rows, err := q.ListAudit(ctx, db.ListAuditParams{Workspace: workspace, After: int64(check.Last()), PageSize: auditPage})
		if err != nil {
			return nil, err
		}
		if problem := checkRows(check, rows); problem != nil {
			return problem, nil
		}
		if len(rows) < auditPage {
			return check.End(uint64(head.Sequence), head.Hash), nil
		}
	}
}

// checkRows checks entries and that they lie where their records say.
func checkRows(check *auditlog.Checker, rows []db.Audit) *auditlog.Problem {
	for _, row := range rows {
		record, problem := check.Add(auditEntry(row))
		if problem != nil {
			return problem
		}
		if uint64(row.Sequence) != record.GetSequence() || row.Time != record.GetTime().AsTime().UnixMilli() {
			return &auditlog.Problem{
				Sequence: record.GetSequence(), Kind: auditlog.Place,
				Text: fmt.Sprintf("entry %d lies under another number or time than it has", record.GetSequence()),
			}
		}
	}
	return nil
}
