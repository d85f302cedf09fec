-- +goose Up

alter table agt_conversation add column settings bytea not null default x'';      -- a throwbar.agent.v1.ConversationSettings
alter table agt_conversation add column parent_id text not null default '';       -- whose agent started it; '' if a person did
alter table agt_conversation add column root_id text not null default ''          -- where a person decides for it; '' if here
  constraint agt_conversation_family check ((parent_id = '') = (root_id = ''));
alter table agt_conversation add column agent text not null default '';           -- its definition; '' if it has none
alter table agt_conversation add column wakes bigint not null default 6           -- how often agents may still wake it
  constraint agt_conversation_wakes check (wakes >= 0);
alter table agt_conversation add column holds bigint not null default 0           -- bits: why what waits is not read by itself
  constraint agt_conversation_holds check (holds between 0 and 7);
alter table agt_conversation add column history_from bigint not null default 0    -- the first message that models are shown
  constraint agt_conversation_history check (history_from >= 0);
alter table agt_conversation add column last_end bigint not null default 0        -- throwbar.agent.v1.TurnEnd of the last turn
  constraint agt_conversation_last_end check (last_end between 0 and 4);
alter table agt_conversation add column sequence bigint not null default 0        -- of its last event
  constraint agt_conversation_sequence check (sequence >= 0);

update agt_conversation
set sequence = coalesce((select max(seq) from agt_event where agt_event.conversation_id = agt_conversation.id), 0);

create index agt_conversation_by_parent on agt_conversation (workspace, parent_id, id) where parent_id <> '';

-- How often agents may still wake agents because of one message of a person.
create table agt_chain (
  id text not null primary key,
  workspace text not null,
  root_id text not null,           -- the conversation of that message
  authority text not null,         -- on whose behalf all of it happens
  wakes_left bigint not null,
  created_at bigint not null,
  constraint agt_chain_named check (id <> '' and workspace <> '' and root_id <> ''),
  constraint agt_chain_left check (wakes_left >= 0),
  constraint agt_chain_time check (created_at > 0)
);

create table agt_turn (
  id text not null primary key,
  conversation_id text not null references agt_conversation (id),
  state text not null,
  durable boolean not null,        -- goes on after a restart of the server
  stopping boolean not null,       -- a person said stop: it does not go on
  speaker bigint not null,         -- throwbar.agent.v1.Speaker who began it
  chain_id text not null,
  choice bytea not null,           -- a throwbar.agent.v1.ModelChoice for this turn; empty if the conversation's holds
  sequence bigint not null,        -- of the last event before it
  rounds bigint not null,
  tokens bigint not null,
  millis bigint not null,
  reason bigint not null,          -- throwbar.agent.v1.TurnEnd; 0 while it runs
  started_at bigint not null,
  ended_at bigint not null,        -- 0 while it runs
  constraint agt_turn_named check (id <> '' and chain_id <> ''),
  constraint agt_turn_state check (state in ('running', 'ended')),
  constraint agt_turn_speaker check (speaker between 1 and 2),
  constraint agt_turn_spent check (sequence >= 0 and rounds >= 0 and tokens >= 0 and millis >= 0),
  constraint agt_turn_ended check ((state = 'ended') = (reason > 0) and (state = 'ended') = (ended_at > 0)),
  constraint agt_turn_reason check (reason between 0 and 4),
  constraint agt_turn_times check (started_at > 0)
);

create unique index agt_turn_running on agt_turn (conversation_id) where state = 'running';

-- Every message that was said to an agent, under the id that its sender may have chosen; its text while it waits.
create table agt_queue (
  workspace text not null,
  id text not null,
  conversation_id text not null references agt_conversation (id),
  n bigint not null,
  state text not null,
  mode bigint not null,            -- throwbar.agent.v1.SendMode
  sender bytea not null,           -- a throwbar.agent.v1.Sender
  chain_id text not null,
  choice bytea not null,           -- a throwbar.agent.v1.ModelChoice for the turn that it begins; empty if it names none
  body bytea not null,             -- empty once it does not wait any more
  delivery bigint not null,        -- throwbar.agent.v1.Delivery, as its sender was told
  turn_id text not null,           -- that it began or entered; '' while it waits
  sequence bigint not null,        -- of the last event before it
  created_at bigint not null,
  primary key (workspace, id),
  constraint agt_queue_named check (workspace <> '' and id <> '' and chain_id <> ''),
  constraint agt_queue_n check (n > 0),
  constraint agt_queue_state check (state in ('waiting', 'taken', 'removed')),
  constraint agt_queue_mode check (mode between 1 and 2),
  constraint agt_queue_body check ((state = 'waiting') = (length(body) > 0)),
  constraint agt_queue_delivery check (delivery between 1 and 4),
  constraint agt_queue_turn check (state <> 'taken' or turn_id <> ''),
  constraint agt_queue_times check (sequence >= 0 and created_at > 0)
);

create unique index agt_queue_by_number on agt_queue (conversation_id, n);
create index agt_queue_waiting on agt_queue (conversation_id, n) where state = 'waiting';

-- Whole answers of tools, where the model was told only a part.
create table agt_output (
  conversation_id text not null references agt_conversation (id),
  call_id text not null,
  body bytea not null,
  primary key (conversation_id, call_id),
  constraint agt_output_call check (call_id <> '')
);
