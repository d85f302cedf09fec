-- name: InsertDevice :exec
insert into srv_device (id, workspace, name, kind, agent, platform, paired_at, last_seen, revoked_at, boot_tag, actions,
  epoch, origin)
values (@id, @workspace, @name, @kind, @agent, @platform, @paired_at, @last_seen, 0, @boot_tag, @actions, @epoch, @origin);

-- name: GetDevice :one
select * from srv_device where workspace = @workspace and id = @id;

-- ListDevices lists the devices that are not revoked, by name. The first page is after an empty name and id.
-- name: ListDevices :many
select * from srv_device
where workspace = @workspace and name >= @after_name and (name > @after_name or id > @after_id) and revoked_at = 0
order by name, id
limit @page_size;

-- ListAllDevices lists the devices of every workspace that are not revoked, by id, for a server that starts. The first
-- page is after an empty id.
-- name: ListAllDevices :many
select * from srv_device where id > @after_id and revoked_at = 0 order by id limit @page_size;

-- name: RenameDevice :execrows
update srv_device set name = @name where workspace = @workspace and id = @id and revoked_at = 0;

-- UpdateDeviceSeen writes what the device says of itself each time it connects.
-- name: UpdateDeviceSeen :execrows
update srv_device
set last_seen = @last_seen, boot_tag = @boot_tag, actions = @actions, agent = @agent, platform = @platform, epoch = @epoch,
  online = @online
where id = @id and revoked_at = 0;

-- BeginDevices raises the epochs of all devices at the start of a server, far above what may have been lost unwritten.
-- name: BeginDevices :execrows
update srv_device set epoch = epoch + @step where revoked_at = 0;

-- name: TouchDevice :execrows
update srv_device set last_seen = @last_seen where id = @id and revoked_at = 0;

-- name: RevokeDevice :execrows
update srv_device set revoked_at = @revoked_at where workspace = @workspace and id = @id and revoked_at = 0;

-- name: UpsertBrowser :exec
insert into srv_browser (device_id, as_of, body) values (@device_id, @as_of, @body)
on conflict (device_id) do update set as_of = excluded.as_of, body = excluded.body;

-- name: GetBrowser :one
select * from srv_browser where device_id = @device_id;

-- name: ListBrowsers :many
select * from srv_browser where device_id > @after_device_id order by device_id limit @page_size;

-- name: DeleteBrowser :execrows
delete from srv_browser where device_id = @device_id;
