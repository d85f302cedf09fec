-- name: InsertConversation :exec
insert into agt_conversation (id, workspace, title, open, created_at, updated_at)
values (@id, @workspace, @title, @open, @created_at, @updated_at);

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

-- name: UpdateConversation :execrows
update agt_conversation set title = @title, updated_at = @updated_at where workspace = @workspace and id = @id;

-- name: SetConversationOpen :execrows
update agt_conversation set open = @open, updated_at = @updated_at where workspace = @workspace and id = @id;

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
