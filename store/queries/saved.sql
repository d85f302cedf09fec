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
