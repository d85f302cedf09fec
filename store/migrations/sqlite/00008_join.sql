-- +goose Up

-- A call that is made again after a restart finds what was written down under its key.
create index srv_command_by_request on srv_command (workspace, principal, request_id) where request_id <> '';
