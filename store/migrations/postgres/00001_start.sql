-- The same tables as in ../sqlite under the same number, which a test compares. PostgreSQL's own here: text is compared byte
-- by byte (collate "C"), as SQLite does, whatever the database's locale is; and a number has no word of its own.

-- +goose Up

create table srv_device (
  id text collate "C" not null primary key,
  workspace text collate "C" not null,
  name text collate "C" not null,
  kind bigint not null,
  agent text collate "C" not null,
  platform text collate "C" not null,
  paired_at bigint not null,
  last_seen bigint not null,   -- 0 while it has never been connected
  revoked_at bigint not null,  -- 0 while it is not revoked
  boot_tag text collate "C" not null,
  actions text collate "C" not null,       -- a JSON list of names
  epoch bigint not null,
  origin text collate "C" not null,        -- of the browser extension that it is; '' for others
  constraint srv_device_named check (id <> '' and workspace <> '' and name <> ''),
  constraint srv_device_kind check (kind > 0),
  constraint srv_device_times check (paired_at > 0 and last_seen >= 0 and revoked_at >= 0),
  constraint srv_device_epoch check (epoch >= 0)
);

create index srv_device_by_name on srv_device (workspace, name, id);

create table srv_token (
  id text collate "C" not null primary key,
  workspace text collate "C" not null,
  name text collate "C" not null,
  scope bigint not null,       -- throwbar.option.v1.Scope
  device_id text collate "C" not null,     -- '' for a person's or a program's
  hash bytea not null unique,  -- SHA-256 of the secret
  created_at bigint not null,
  revoked_at bigint not null,  -- 0 while it is not revoked
  constraint srv_token_named check (id <> '' and workspace <> ''),
  constraint srv_token_scope check (scope between 2 and 5),
  constraint srv_token_device check ((scope = 5) = (device_id <> '')),
  constraint srv_token_hash check (length(hash) = 32),
  constraint srv_token_times check (created_at > 0 and revoked_at >= 0)
);

create index srv_token_by_time on srv_token (workspace, created_at, id);
create index srv_token_by_device on srv_token (device_id) where device_id <> '';

create table srv_command (
  id text collate "C" not null primary key,
  group_id text collate "C" not null,
  workspace text collate "C" not null,
  device_id text collate "C" not null,
  name text collate "C" not null,
  principal text collate "C" not null,
  action bytea not null,
  state text collate "C" not null,
  created_at bigint not null,
  deadline bigint not null,
  ended_at bigint not null,    -- 0 while it has not ended
  result bytea,
  error bytea,
  summary text collate "C" not null,
  constraint srv_command_named check (id <> '' and group_id <> '' and workspace <> '' and device_id <> '' and name <> ''),
  constraint srv_command_state check (state in ('accepted', 'awaiting_approval', 'sent', 'acknowledged',
    'succeeded', 'failed', 'expired', 'cancelled', 'interrupted')),
  constraint srv_command_ended check (
    (ended_at > 0) = (state in ('succeeded', 'failed', 'expired', 'cancelled', 'interrupted'))),
  constraint srv_command_result check (state = 'succeeded' or result is null or length(result) = 0),
  constraint srv_command_error check (
    (ended_at > 0 and state <> 'succeeded') or error is null or length(error) = 0),
  constraint srv_command_action check (ended_at > 0 or length(action) > 0),
  constraint srv_command_times check (created_at > 0 and deadline >= created_at and ended_at >= 0)
);

create index srv_command_by_time on srv_command (workspace, created_at, id);
create index srv_command_by_device on srv_command (device_id, created_at, id);
-- What has not ended, and what has ended but still has its payloads: few rows at any time, however long the table.
create index srv_command_live on srv_command (ended_at, created_at, id) where length(action) > 0;

create table srv_event (
  seq bigint not null primary key,
  workspace text collate "C" not null,
  time bigint not null,
  device_id text collate "C" not null,     -- '' if about none
  body bytea not null,
  constraint srv_event_seq check (seq > 0),
  constraint srv_event_workspace check (workspace <> ''),
  constraint srv_event_time check (time > 0)
);

create index srv_event_by_device on srv_event (device_id, seq) where device_id <> '';

create table srv_saved (
  id text collate "C" not null primary key,
  workspace text collate "C" not null,
  device_id text collate "C" not null,
  command_id text collate "C" not null,
  tab_id text collate "C" not null,
  kind text collate "C" not null,
  state text collate "C" not null,
  saved_at bigint not null,
  body bytea not null,
  constraint srv_saved_named check (
    id <> '' and workspace <> '' and device_id <> '' and command_id <> '' and tab_id <> ''),
  constraint srv_saved_kind check (kind in ('saved', 'closed')),
  constraint srv_saved_state check (state in ('pending', 'kept', 'restoring')),
  constraint srv_saved_time check (saved_at > 0)
);

create unique index srv_saved_by_command on srv_saved (command_id, tab_id);
create index srv_saved_kept on srv_saved (workspace, saved_at, id) where state = 'kept';

create table srv_browser (
  device_id text collate "C" not null primary key,
  as_of bigint not null,
  body bytea not null,
  constraint srv_browser_device check (device_id <> ''),
  constraint srv_browser_time check (as_of > 0)
);

create table agt_conversation (
  id text collate "C" not null primary key,
  workspace text collate "C" not null,
  title text collate "C" not null,
  open boolean not null,
  created_at bigint not null,
  updated_at bigint not null,
  constraint agt_conversation_named check (id <> '' and workspace <> ''),
  constraint agt_conversation_times check (created_at > 0 and updated_at > 0)
);

create index agt_conversation_by_time on agt_conversation (workspace, updated_at, id);
create index agt_conversation_by_id on agt_conversation (workspace, id);

create table agt_event (
  conversation_id text collate "C" not null references agt_conversation (id),
  seq bigint not null,
  time bigint not null,
  turn_id text collate "C" not null,
  body bytea not null,
  primary key (conversation_id, seq),
  constraint agt_event_seq check (seq > 0),
  constraint agt_event_time check (time > 0)
);

create table agt_message (
  conversation_id text collate "C" not null references agt_conversation (id),
  n bigint not null,
  body bytea not null,
  primary key (conversation_id, n),
  constraint agt_message_n check (n > 0)
);
