-- name: InsertConversation :exec
insert into agt_conversation (
  id, workspace, title, open, created_at, updated_at, settings, parent_id, root_id, agent, wakes, holds, history_from, last_end,
  sequence)
values (
  @id, @workspace, @title, @open, @created_at, @updated_at, @settings, @parent_id, @root_id, @agent, @wakes, @holds,
  @history_from, @last_end, @sequence);

-- name: GetConversation :one
select * from agt_conversation where workspace = @workspace and id = @id;

-- ListConversations lists the last used first. The first page is before the greatest time (math.MaxInt64).
-- name: ListConversations :many
select * from agt_conversation
where workspace = @workspace and updated_at <= @before_time and (updated_at < @before_time or id < @before_id)
order by updated_at desc, id desc
limit @page_size;

-- FindOpenConversations lists open conversations with ids in [from_id, to_id), for handles. The first page is after an
-- empty id.
-- name: FindOpenConversations :many
select * from agt_conversation
where workspace = @workspace and id >= @from_id and id > @after_id and id < @to_id and open = true
order by id
limit @page_size;

-- ListConversationsWhere lists the open ones, or those that are not, the last used first.
-- name: ListConversationsWhere :many
select * from agt_conversation
where workspace = @workspace and open = @open and updated_at <= @before_time
  and (updated_at < @before_time or id < @before_id)
order by updated_at desc, id desc
limit @page_size;

-- ListChildConversations lists those that the agent of one has started, by id.
-- name: ListChildConversations :many
select * from agt_conversation
where workspace = @workspace and parent_id = @parent_id and parent_id <> '' and id > @after_id
order by id
limit @page_size;

-- GetOpenBefore and GetOpenAfter are the neighbours of an id among the open ones: nothing else bounds its handle.
-- name: GetOpenBefore :one
select id from agt_conversation where workspace = @workspace and id < @id and open = true order by id desc limit 1;

-- name: GetOpenAfter :one
select id from agt_conversation where workspace = @workspace and id > @id and open = true order by id limit 1;

-- name: UpdateConversation :execrows
update agt_conversation
set title = @title, open = @open, updated_at = @updated_at, settings = @settings, wakes = @wakes, holds = @holds,
  last_end = @last_end, sequence = @sequence
where workspace = @workspace and id = @id;

-- name: GetHistoryStart :one
select history_from from agt_conversation where id = @id;

-- name: SetHistoryStart :execrows
update agt_conversation set history_from = @history_from where workspace = @workspace and id = @id;

-- name: InsertConversationEvent :exec
insert into agt_event (conversation_id, seq, time, turn_id, body)
values (@conversation_id, @seq, @time, @turn_id, @body);

-- GetLastConversationEvent is the number of the last event; no row while there is none.
-- name: GetLastConversationEvent :one
select seq from agt_event where conversation_id = @conversation_id order by seq desc limit 1;

-- name: ListConversationEvents :many
select * from agt_event where conversation_id = @conversation_id and seq > @after order by seq limit @page_size;

-- name: InsertMessage :exec
insert into agt_message (conversation_id, n, body) values (@conversation_id, @n, @body);

-- name: UpdateMessage :execrows
update agt_message set body = @body where conversation_id = @conversation_id and n = @n;

-- GetLastMessage is the number of the last message; no row while there is none.
-- name: GetLastMessage :one
select n from agt_message where conversation_id = @conversation_id order by n desc limit 1;

-- name: ListMessages :many
select * from agt_message where conversation_id = @conversation_id and n > @after order by n limit @page_size;

-- ListEventsBefore lists events from a number down.
-- name: ListEventsBefore :many
select * from agt_event where conversation_id = @conversation_id and seq < @before order by seq desc limit @page_size;

-- name: InsertTurn :exec
insert into agt_turn (
  id, conversation_id, state, durable, stopping, speaker, chain_id, choice, sequence, rounds, tokens, millis, reason,
  started_at, ended_at)
values (
  @id, @conversation_id, @state, @durable, @stopping, @speaker, @chain_id, @choice, @sequence, @rounds, @tokens, @millis,
  @reason, @started_at, @ended_at);

-- name: UpdateTurn :execrows
update agt_turn
set state = @to_state, durable = @durable, stopping = @stopping, chain_id = @chain_id, rounds = @rounds, tokens = @tokens,
  millis = @millis, reason = @reason, ended_at = @ended_at
where id = @id and state = @from_state;

-- name: GetTurn :one
select * from agt_turn where id = @id;

-- name: GetRunningTurn :one
select * from agt_turn where conversation_id = @conversation_id and state = 'running';

-- ListRunningTurns lists the turns that run, one for each conversation.
-- name: ListRunningTurns :many
select t.id, t.conversation_id, c.workspace from agt_turn t join agt_conversation c on c.id = t.conversation_id
where t.state = 'running' and t.conversation_id > @after_id
order by t.conversation_id
limit @page_size;

-- InsertQueued keeps a message that was said; no row if there is one of its id.
-- name: InsertQueued :execrows
insert into agt_queue (
  workspace, id, conversation_id, n, state, mode, sender, chain_id, choice, body, delivery, turn_id, sequence, created_at)
values (
  @workspace, @id, @conversation_id, @n, @state, @mode, @sender, @chain_id, @choice, @body, @delivery, @turn_id, @sequence,
  @created_at)
on conflict (workspace, id) do nothing;

-- name: GetQueued :one
select * from agt_queue where workspace = @workspace and id = @id;

-- GetLastQueued is the number of the last message that was said; no row while there is none.
-- name: GetLastQueued :one
select n from agt_queue where conversation_id = @conversation_id order by n desc limit 1;

-- name: MoveQueued :execrows
update agt_queue set state = @to_state, body = @body, turn_id = @turn_id
where workspace = @workspace and id = @id and state = @from_state;

-- name: EditQueued :execrows
update agt_queue set body = @body where workspace = @workspace and id = @id and state = 'waiting';

-- name: ListWaiting :many
select * from agt_queue
where conversation_id = @conversation_id and state = 'waiting' and n > @after
order by n
limit @page_size;

-- ListWaitingConversations lists the conversations in which a message waits, by id.
-- name: ListWaitingConversations :many
select c.id, c.workspace from agt_conversation c
where c.id > @after_id
  and exists (select q.n from agt_queue q where q.conversation_id = c.id and q.state = 'waiting')
order by c.id
limit @page_size;

-- name: InsertChain :exec
insert into agt_chain (id, workspace, root_id, authority, wakes_left, created_at)
values (@id, @workspace, @root_id, @authority, @wakes_left, @created_at);

-- name: GetChain :one
select * from agt_chain where id = @id;

-- SpendChain takes one wake of a chain; no row if it has none left.
-- name: SpendChain :execrows
update agt_chain set wakes_left = wakes_left - 1 where id = @id and wakes_left > 0;

-- name: CloseChain :execrows
update agt_chain set wakes_left = 0 where id = @id;

-- PutOutput keeps the answer of a call, also where it was made again.
-- name: PutOutput :exec
insert into agt_output (conversation_id, call_id, body) values (@conversation_id, @call_id, @body)
on conflict (conversation_id, call_id) do update set body = excluded.body;

-- name: GetOutput :one
select body from agt_output where conversation_id = @conversation_id and call_id = @call_id;
