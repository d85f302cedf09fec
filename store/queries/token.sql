-- name: InsertToken :exec
insert into srv_token (id, workspace, name, scope, device_id, hash, created_at, revoked_at, expires_at, replaces, rotate_by)
values (@id, @workspace, @name, @scope, @device_id, @hash, @created_at, 0, @expires_at, @replaces, '');

-- GetTokenByHash finds revoked tokens too: the caller looks at revoked_at.
-- name: GetTokenByHash :one
select * from srv_token where hash = @hash;

-- name: GetToken :one
select * from srv_token where workspace = @workspace and id = @id;

-- ListTokens lists the tokens that are not revoked, newest first.
-- name: ListTokens :many
select * from srv_token
where workspace = @workspace and created_at <= @before_time and (created_at < @before_time or id < @before_id) and revoked_at = 0
order by created_at desc, id desc
limit @page_size;

-- name: RenameToken :execrows
update srv_token set name = @name where workspace = @workspace and id = @id and revoked_at = 0;

-- name: RevokeToken :execrows
update srv_token set revoked_at = @revoked_at where workspace = @workspace and id = @id and revoked_at = 0;

-- name: RevokeDeviceTokens :execrows
update srv_token
set revoked_at = @revoked_at
where workspace = @workspace and device_id = @device_id and device_id <> '' and revoked_at = 0;

-- AskRotation notes who asked for another token of the device.
-- name: AskRotation :execrows
update srv_token set rotate_by = @rotate_by where workspace = @workspace and id = @id and revoked_at = 0;

-- RevokeUnusedTokens makes void what a device was given and has not used.
-- name: RevokeUnusedTokens :execrows
update srv_token
set revoked_at = @revoked_at
where workspace = @workspace and device_id = @device_id and device_id <> '' and replaces <> '' and revoked_at = 0;

-- name: UseToken :execrows
update srv_token set replaces = '' where workspace = @workspace and id = @id and revoked_at = 0;

-- name: InsertWorkspace :exec
insert into srv_workspace (name, created_at) values (@name, @created_at);

-- name: GetWorkspace :one
select * from srv_workspace where name = @name;

-- name: ListWorkspaces :many
select * from srv_workspace where name > @after_name order by name limit @page_size;
