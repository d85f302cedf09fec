-- +goose Up

create table srv_workspace (
  name text not null primary key,
  created_at bigint not null,
  constraint srv_workspace_named check (name <> ''),
  constraint srv_workspace_time check (created_at > 0)
);

-- SQLite cannot change a constraint: the table is made anew.
create table srv_token_new (
  id text not null primary key,
  workspace text not null,
  name text not null,
  scope bigint not null,       -- throwbar.option.v1.Scope
  device_id text not null,     -- '' for a person's or a program's
  hash bytea not null unique,  -- SHA-256 of the secret
  created_at bigint not null,
  revoked_at bigint not null,  -- 0 while it is not revoked
  expires_at bigint not null,  -- 0 if it works until it is revoked
  replaces text not null,      -- id of the device's token that is void once this one is used; '' when it is
  rotate_by text not null,     -- id of the token by which another one was asked of the device; '' if by none
  constraint srv_token_named check (id <> '' and workspace <> ''),
  constraint srv_token_scope check (scope between 2 and 6),
  constraint srv_token_device check ((scope = 5) = (device_id <> '')),
  constraint srv_token_hash check (length(hash) = 32),
  constraint srv_token_times check (created_at > 0 and revoked_at >= 0),
  constraint srv_token_expiry check (expires_at = 0 or expires_at > created_at),
  constraint srv_token_rotation check (scope = 5 or (replaces = '' and rotate_by = ''))
);

insert into srv_token_new (id, workspace, name, scope, device_id, hash, created_at, revoked_at, expires_at, replaces, rotate_by)
select id, workspace, name, scope, device_id, hash, created_at, revoked_at, 0, '', '' from srv_token;

drop table srv_token;

alter table srv_token_new rename to srv_token;

create index srv_token_by_time on srv_token (workspace, created_at, id);
create index srv_token_by_device on srv_token (device_id) where device_id <> '';
