-- InsertCommand writes a command that has not ended. State changes are compare-and-set: they say how many rows changed,
-- and zero means that the command was elsewhere.
-- name: InsertCommand :exec
insert into srv_command (id, group_id, workspace, device_id, name, principal, action, state, created_at, deadline,
  ended_at, result, error, summary, attached, ttl, approval_id, origin, conversation_id, request_id, act, act_targets, undoes,
  undo_targets)
values (@id, @group_id, @workspace, @device_id, @name, @principal, @action, @state, @created_at, @deadline, 0, null, null,
  '', @attached, @ttl, @approval_id, @origin, @conversation_id, @request_id, @act, @act_targets, @undoes, @undo_targets);

-- BeginCommand starts the life of a command that waited for its approval.
-- name: BeginCommand :execrows
update srv_command
set state = 'accepted', deadline = @deadline, action = @action
where id = @id and approval_id = @approval_id and state = 'awaiting_approval' and ended_at = 0;

-- MoveCommandApproval makes a command that waits wait for another approval.
-- name: MoveCommandApproval :execrows
update srv_command
set approval_id = @to_approval, deadline = @deadline
where id = @id and approval_id = @from_approval and state = 'awaiting_approval' and ended_at = 0;

-- AdvanceCommand goes from one state that is not final to another.
-- name: AdvanceCommand :execrows
update srv_command set state = @to_state where id = @id and state = @from_state and ended_at = 0;

-- AdvanceCommandFromAny goes from any of three states to another; name one twice where there are two.
-- name: AdvanceCommandFromAny :execrows
update srv_command set state = @to_state where id = @id and state in (@from_a, @from_b, @from_c) and ended_at = 0;

-- SetCommandDeadline starts the time to live again, after an approval.
-- name: SetCommandDeadline :execrows
update srv_command set deadline = @deadline where id = @id and state = @state and ended_at = 0;

-- FinishCommand ends a command that has not ended.
-- name: FinishCommand :execrows
update srv_command
set state = @state, ended_at = @ended_at, result = @result, error = @error, summary = @summary, undone = @undone
where id = @id and ended_at = 0;

-- FinishCommandFrom ends a command only if it is in this state.
-- name: FinishCommandFrom :execrows
update srv_command
set state = @state, ended_at = @ended_at, result = @result, error = @error, summary = @summary
where id = @id and state = @from_state and ended_at = 0;

-- name: GetCommand :one
select * from srv_command where workspace = @workspace and id = @id;

-- ListCommands lists newest first. The first page is before the greatest time (math.MaxInt64).
-- name: ListCommands :many
select * from srv_command
where workspace = @workspace and created_at <= @before_time and (created_at < @before_time or id < @before_id)
order by created_at desc, id desc
limit @page_size;

-- name: ListDeviceCommands :many
select * from srv_command
where workspace = @workspace and device_id = @device_id
  and created_at <= @before_time and (created_at < @before_time or id < @before_id)
order by created_at desc, id desc
limit @page_size;

-- ListRequestedCommands lists what a principal's request became, newest first.
-- name: ListRequestedCommands :many
select * from srv_command
where workspace = @workspace and principal = @principal and request_id = @request_id and request_id <> ''
  and created_at <= @before_time and (created_at < @before_time or id < @before_id)
order by created_at desc, id desc
limit @page_size;

-- ListPendingCommands lists what has not ended, newest first; of every device if device_id is empty.
-- name: ListPendingCommands :many
select * from srv_command
where workspace = @workspace and created_at <= @before_time and (created_at < @before_time or id < @before_id)
  and ended_at = 0 and length(action) > 0 and (device_id = @device_id or @device_id = '')
order by created_at desc, id desc
limit @page_size;

-- ListUnfinishedCommands lists what has not ended in all workspaces, oldest first, for a server that starts. The first
-- page is after the time 0.
-- name: ListUnfinishedCommands :many
select * from srv_command
where ended_at = 0 and length(action) > 0 and created_at >= @after_time and (created_at > @after_time or id > @after_id)
order by created_at, id
limit @page_size;

-- ClearCommands empties the payloads of at most page_size commands that ended before a time.
-- name: ClearCommands :execrows
update srv_command
set action = substr(action, 1, 0), result = substr(result, 1, 0), error = substr(error, 1, 0)
where id in (
  select c.id from srv_command c
  where c.ended_at > 0 and length(c.action) > 0 and c.ended_at < @ended_before
  order by c.ended_at
  limit @page_size);

-- DeleteCommands deletes at most page_size commands of a workspace that ended before a time, the oldest first.
-- name: DeleteCommands :execrows
delete from srv_command
where id in (
  select c.id from srv_command c
  where c.workspace = @workspace and c.created_at < @ended_before and c.ended_at > 0 and c.ended_at < @ended_before
  order by c.created_at, c.id
  limit @page_size);

-- GetCommandOfGroup is the newest command of a dispatch.
-- name: GetCommandOfGroup :one
select * from srv_command
where workspace = @workspace and group_id = @group_id
order by created_at desc, id desc
limit 1;

-- SumAct is on how many targets an act has acted without anybody being asked; no row if on none.
-- name: SumAct :one
select sum(act_targets) from srv_command
where workspace = @workspace and act = @act and act <> ''
having count(*) > 0;

-- NoteLate marks a command, once, as one whose result came after its end; it says zero if that was noted before.
-- name: NoteLate :execrows
update srv_command set summary = @summary where id = @id and ended_at > 0 and summary <> @summary;

-- NextCommandWorkspace is the first workspace after a name that has commands.
-- name: NextCommandWorkspace :one
select workspace from srv_command where workspace > @after order by workspace limit 1;
