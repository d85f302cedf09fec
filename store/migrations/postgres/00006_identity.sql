-- +goose Up

create table srv_workspace (
  name text collate "C" not null primary key,
  created_at bigint not null,
  constraint srv_workspace_named check (name <> ''),
  constraint srv_workspace_time check (created_at > 0)
);

alter table srv_token
  add column expires_at bigint not null default 0,
  add column replaces text collate "C" not null default '',
  add column rotate_by text collate "C" not null default '';

alter table srv_token
  alter column expires_at drop default,
  alter column replaces drop default,
  alter column rotate_by drop default,
  drop constraint srv_token_scope,
  add constraint srv_token_scope check (scope between 2 and 6),
  add constraint srv_token_expiry check (expires_at = 0 or expires_at > created_at),
  add constraint srv_token_rotation check (scope = 5 or (replaces = '' and rotate_by = ''));
