-- name: InsertToken :exec
insert into srv_token (id, workspace, name, scope, device_id, hash, created_at, revoked_at)
values (@id, @workspace, @name, @scope, @device_id, @hash, @created_at, 0);

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
