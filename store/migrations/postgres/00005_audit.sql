-- +goose Up

-- The audit record: rows are added and never changed. Each hash is over the one before it and the record.
create table srv_audit (
  workspace text collate "C" not null,
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
);

-- Where each record ends, so that it is noticed if entries at the end are gone.
create table srv_audit_head (
  workspace text collate "C" not null primary key,
  sequence bigint not null,
  hash bytea not null,
  constraint srv_audit_head_named check (workspace <> ''),
  constraint srv_audit_head_sequence check (sequence > 0),
  constraint srv_audit_head_hash check (length(hash) = 32)
);

-- +goose StatementBegin
create function srv_audit_refuse() returns trigger language plpgsql as $$
begin
  raise exception 'srv_audit_grows: the audit record is never changed, and never gets shorter'
    using errcode = 'integrity_constraint_violation';
end
$$;
-- +goose StatementEnd

create trigger srv_audit_no_change before update or delete or truncate on srv_audit
  for each statement execute function srv_audit_refuse();

create trigger srv_audit_head_no_delete before delete or truncate on srv_audit_head
  for each statement execute function srv_audit_refuse();

create trigger srv_audit_head_no_update before update on srv_audit_head
  for each row when (new.sequence < old.sequence or new.workspace <> old.workspace)
  execute function srv_audit_refuse();
