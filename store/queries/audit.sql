-- There is no query that changes or removes an entry, and triggers refuse it.

-- name: InsertAudit :exec
insert into srv_audit (workspace, sequence, time, record, previous, hash)
values (@workspace, @sequence, @time, @record, @previous, @hash);

-- GetAuditHead is where the record ends; no row while it is empty.
-- name: GetAuditHead :one
select * from srv_audit_head where workspace = @workspace;

-- name: SetAuditHead :exec
insert into srv_audit_head (workspace, sequence, hash) values (@workspace, @sequence, @hash)
on conflict (workspace) do update set sequence = excluded.sequence, hash = excluded.hash;

-- MoveAuditHead moves the end only from where it is taken to be; it says zero if it is elsewhere.
-- name: MoveAuditHead :execrows
update srv_audit_head set sequence = @to_sequence, hash = @to_hash
where workspace = @workspace and sequence = @from_sequence and hash = @from_hash;

-- TouchAuditHead changes nothing: it is for a commit that has something to sync.
-- name: TouchAuditHead :execrows
update srv_audit_head set sequence = sequence where workspace = @workspace;

-- name: ListAudit :many
select * from srv_audit where workspace = @workspace and sequence > @after order by sequence limit @page_size;

-- FindAuditSince is the first entry that is not older than a time.
-- name: FindAuditSince :one
select sequence from srv_audit where workspace = @workspace and time >= @since order by sequence limit 1;
