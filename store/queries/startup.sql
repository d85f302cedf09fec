-- FindCommand finds a command whatever workspace it is in, for what a device says of it.
-- name: FindCommand :one
select * from srv_command where id = @id;

-- ListAllTokens lists the tokens of every workspace that are not revoked, by id, for a server that starts. The first
-- page is after an empty id.
-- name: ListAllTokens :many
select * from srv_token where id > @after_id and revoked_at = 0 order by id limit @page_size;
