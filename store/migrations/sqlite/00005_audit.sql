-- +goose Up

-- Where each record ends, so that it is noticed if entries at the end are gone.
create table srv_audit_head (
  workspace text not null primary key,
  sequence bigint not null,
  hash bytea not null,
  constraint srv_audit_head_named check (workspace <> ''),
  constraint srv_audit_head_sequence check (sequence > 0),
  constraint srv_audit_head_hash check (length(hash) = 32)
);

-- The audit record: rows are added and never changed. Each hash is over the one before it and the record.
create table srv_audit (
  workspace text not null,
  sequence bigint not null,
  time bigint not null,
  record bytea not null,
  previous bytea not null,
  hash bytea not null,
  primary key (workspace, sequence),
  constraint srv_audit_named check (workspace <> ''),
  constraint srv_audit_sequence check (sequence > 0),
  constraint srv_audit_time check (time > 0),
  constraint srv_audit_record check (length(record) > 0),
  constraint srv_audit_hashes check (length(previous) = 32 and length(hash) = 32)
)
-- +migrate Down is where sqlc stops to read, which knows neither what follows nor triggers of SQLite. To goose it is a
-- comment like any other. The key is the order in which rows are added: in a tree of its own it would be one more page.
without rowid;

-- +goose StatementBegin
create trigger srv_audit_no_update before update on srv_audit
begin
  select raise(abort, 'srv_audit_grows: entries of the audit record are never changed');
end;
-- +goose StatementEnd

-- +goose StatementBegin
create trigger srv_audit_no_delete before delete on srv_audit
begin
  select raise(abort, 'srv_audit_grows: entries of the audit record are never removed');
end;
-- +goose StatementEnd

-- +goose StatementBegin
create trigger srv_audit_head_no_update before update on srv_audit_head
when new.sequence < old.sequence or new.workspace <> old.workspace
begin
  select raise(abort, 'srv_audit_grows: the audit record never gets shorter');
end;
-- +goose StatementEnd

-- +goose StatementBegin
create trigger srv_audit_head_no_delete before delete on srv_audit_head
begin
  select raise(abort, 'srv_audit_grows: the audit record never gets shorter');
end;
-- +goose StatementEnd
