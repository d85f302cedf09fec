-- +goose Up

alter table srv_command add column attached boolean not null default false; -- somebody waits for it
alter table srv_command add column ttl bigint not null default 0            -- counts from the approval; 0 if nobody was asked
  constraint srv_command_ttl check (ttl >= 0);
alter table srv_command add column approval_id text not null default '';    -- '' if nobody was asked
alter table srv_command add column origin bigint not null default 0         -- throwbar.control.v1.Origin
  constraint srv_command_origin check (origin between 0 and 2);
alter table srv_command add column conversation_id text not null default '';
alter table srv_command add column request_id text not null default '';

create index srv_command_by_approval on srv_command (approval_id) where approval_id <> '';

create table srv_approval (
  id text not null primary key,
  workspace text not null,
  state text not null,
  principal text not null,
  origin bigint not null,          -- throwbar.control.v1.Origin
  conversation_id text not null,   -- '' if none asks
  group_id text not null,
  request_id text not null,
  reason text not null,
  rule_id text not null,           -- '' if the command's own option asks
  policy_version bigint not null,
  hash text not null,              -- over what a decision binds, as it was asked
  bound text not null,             -- over what the decision bound; '' until it is approved
  created_at bigint not null,
  expires_at bigint not null,
  warned_at bigint not null,       -- 0 until it is said that it is about to expire
  decided_at bigint not null,      -- 0 while it is pending
  decided_by text not null,        -- '' where nobody decided
  decision_reason text not null,
  remembered_rule_id text not null,
  constraint srv_approval_named check (id <> '' and workspace <> '' and group_id <> '' and hash <> ''),
  constraint srv_approval_state check (state in ('pending', 'approved', 'denied', 'expired', 'withdrawn', 'void')),
  constraint srv_approval_decided check ((decided_at > 0) = (state in ('approved', 'denied', 'expired', 'withdrawn', 'void'))),
  constraint srv_approval_bound check (state <> 'approved' or bound <> ''),
  constraint srv_approval_by check ((decided_by <> '') = (state in ('approved', 'denied')) or state = 'void'),
  constraint srv_approval_origin check (origin between 1 and 2),
  constraint srv_approval_times check (
    created_at > 0 and expires_at > created_at and warned_at >= 0 and decided_at >= 0 and policy_version >= 0)
);

create index srv_approval_by_time on srv_approval (workspace, created_at, id);
create index srv_approval_pending on srv_approval (workspace, created_at, id) where state = 'pending';

create table srv_approval_call (
  approval_id text not null references srv_approval (id),
  n bigint not null,
  command_id text not null,
  proposed bytea not null,
  edited bytea,                    -- none if it runs as proposed
  effective bytea,                 -- what runs; none until it is approved
  targets bytea not null,          -- a throwbar.control.v1.Plan
  used_at bigint not null,         -- 0 until it starts
  primary key (approval_id, n),
  constraint srv_approval_call_n check (n >= 0),
  constraint srv_approval_call_command check (command_id <> ''),
  constraint srv_approval_call_used check (used_at >= 0)
);

create unique index srv_approval_call_once on srv_approval_call (command_id) where used_at > 0;
