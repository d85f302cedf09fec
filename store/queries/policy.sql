-- ListAllPolicies lists the policies of all workspaces, for a server that starts. The first page is after an empty name.
-- name: ListAllPolicies :many
select * from srv_policy where workspace > @after_workspace order by workspace limit @page_size;

-- ListAllRules lists the rules of all workspaces, by id, for a server that starts. The first page is after an empty id.
-- name: ListAllRules :many
select * from srv_rule where id > @after_id order by id limit @page_size;

-- RaisePolicy gives a workspace's policy its next version, one if it had none.
-- name: RaisePolicy :one
insert into srv_policy (workspace, version, settings) values (@workspace, 1, @settings)
on conflict (workspace) do update set version = srv_policy.version + 1
returning version;

-- name: UpdatePolicySettings :execrows
update srv_policy set settings = @settings where workspace = @workspace;

-- name: InsertRule :exec
insert into srv_rule (id, workspace, version, body) values (@id, @workspace, @version, @body);

-- name: DeleteRule :execrows
delete from srv_rule where workspace = @workspace and id = @id;

-- name: CountRules :one
select count(*) from srv_rule where workspace = @workspace;
