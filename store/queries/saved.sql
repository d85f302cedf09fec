-- name: InsertSaved :exec
insert into srv_saved (id, workspace, device_id, command_id, tab_id, kind, state, saved_at, body)
values (@id, @workspace, @device_id, @command_id, @tab_id, @kind, @state, @saved_at, @body);

-- name: GetSaved :one
select * from srv_saved where workspace = @workspace and id = @id;

-- ListSaved lists what is kept, newest first; of every device if device_id is empty, of both kinds if kind is empty.
-- name: ListSaved :many
select * from srv_saved
where workspace = @workspace and saved_at <= @before_time and (saved_at < @before_time or id < @before_id) and state = 'kept'
  and (device_id = @device_id or @device_id = '') and (kind = @kind or @kind = '')
order by saved_at desc, id desc
limit @page_size;

-- ListSavedOfCommand lists all that a command wrote, in whatever state.
-- name: ListSavedOfCommand :many
select * from srv_saved where command_id = @command_id order by tab_id;

-- name: ListSavedIDs :many
select id from srv_saved where command_id = @command_id order by tab_id;

-- KeepSaved marks a pending tab as kept: the device has confirmed that it is gone.
-- name: KeepSaved :execrows
update srv_saved set state = 'kept' where command_id = @command_id and tab_id = @tab_id and state = 'pending';

-- AdvanceSaved goes from one state to another.
-- name: AdvanceSaved :execrows
update srv_saved set state = @to_state where workspace = @workspace and id = @id and state = @from_state;

-- name: DeleteSaved :execrows
delete from srv_saved where workspace = @workspace and id = @id;

-- name: DeletePendingSaved :execrows
delete from srv_saved where command_id = @command_id and state = 'pending';

-- ListKept lists what is kept, newest first, with the command that took it away: of every device if device_id is empty, of
-- every dispatch if group_id is.
-- name: ListKept :many
select s.id, s.saved_at, s.body, c.id as command_id, c.group_id, c.name, c.state as command_state
from srv_saved s join srv_command c on c.id = s.command_id
where s.workspace = @workspace and s.saved_at <= @before_time and (s.saved_at < @before_time or s.id < @before_id)
  and s.state = 'kept' and (s.device_id = @device_id or @device_id = '') and (c.group_id = @group_id or @group_id = '')
order by s.saved_at desc, s.id desc
limit @page_size;

-- DeleteKeptSaved deletes a saved tab that nobody is bringing back.
-- name: DeleteKeptSaved :execrows
delete from srv_saved where workspace = @workspace and id = @id and state = 'kept';

-- DeleteClosed deletes at most page_size tabs of a workspace that were kept for undo before a time.
-- name: DeleteClosed :execrows
delete from srv_saved
where id in (
  select s.id from srv_saved s
  where s.workspace = @workspace and s.saved_at < @saved_before and s.state = 'kept' and s.kind = 'closed'
  order by s.saved_at, s.id
  limit @page_size);

-- NextSavedWorkspace is the first workspace after a name that has kept tabs.
-- name: NextSavedWorkspace :one
select workspace from srv_saved where state = 'kept' and workspace > @after order by workspace limit 1;
