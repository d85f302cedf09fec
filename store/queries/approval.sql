-- InsertApproval writes an approval that is pending. State changes are compare-and-set: they say how many rows changed, and
-- zero means that another one was first.
-- name: InsertApproval :exec
insert into srv_approval (id, workspace, state, principal, origin, conversation_id, group_id, request_id, reason, rule_id,
  policy_version, hash, bound, created_at, expires_at, warned_at, decided_at, decided_by, decision_reason, remembered_rule_id)
values (@id, @workspace, 'pending', @principal, @origin, @conversation_id, @group_id, @request_id, @reason, @rule_id,
  @policy_version, @hash, '', @created_at, @expires_at, 0, 0, '', '', '');

-- name: InsertApprovalCall :exec
insert into srv_approval_call (approval_id, n, command_id, proposed, edited, effective, targets, used_at)
values (@approval_id, @n, @command_id, @proposed, null, null, @targets, 0);

-- DecideApproval takes a decision on an approval that is pending.
-- name: DecideApproval :execrows
update srv_approval
set state = @state, policy_version = @policy_version, bound = @bound, decided_at = @decided_at, decided_by = @decided_by,
  decision_reason = @decision_reason, remembered_rule_id = @remembered_rule_id
where id = @id and state = 'pending' and expires_at > @decided_at;

-- ResolveApproval ends an approval without anybody's decision.
-- name: ResolveApproval :execrows
update srv_approval
set state = @to_state, decided_at = @decided_at, decision_reason = @decision_reason
where id = @id and state = @from_state;

-- DropApproval ends an approval of which no command is left that could start: pending ones become withdrawn, and approved ones
-- void.
-- name: DropApproval :one
update srv_approval
set state = case state when 'pending' then 'withdrawn' else 'void' end, decided_at = @decided_at,
  decision_reason = @decision_reason
where srv_approval.id = @id and srv_approval.state in ('pending', 'approved')
  and not exists (select 1 from srv_command c where c.approval_id = srv_approval.id and c.approval_id <> '' and c.ended_at = 0)
  and not exists (select 1 from srv_approval_call u where u.approval_id = srv_approval.id and u.used_at > 0)
returning state;

-- NoteLateDecision keeps what somebody said about an approval that had expired.
-- name: NoteLateDecision :execrows
update srv_approval set decision_reason = @decision_reason where id = @id and state = 'expired' and decision_reason = '';

-- name: WarnApproval :execrows
update srv_approval set warned_at = @warned_at where id = @id and state = 'pending' and warned_at = 0;

-- name: SetApprovalCall :execrows
update srv_approval_call
set edited = @edited, effective = @effective, targets = @targets
where approval_id = @approval_id and n = @n and used_at = 0;

-- UseApprovalCall starts a call of an approval that is approved, once.
-- name: UseApprovalCall :execrows
update srv_approval_call
set used_at = @used_at
where approval_id = @approval_id and command_id = @command_id and used_at = 0
  and exists (select 1 from srv_approval a where a.id = srv_approval_call.approval_id and a.state = 'approved');

-- name: GetApproval :one
select * from srv_approval where id = @id;

-- ListApprovalCalls are the calls of an approval in their order, with what their commands say.
-- name: ListApprovalCalls :many
select u.approval_id, u.n, u.command_id, u.proposed, u.edited, u.effective, u.targets, u.used_at, c.device_id, c.name, c.ttl,
  c.workspace, c.principal, c.conversation_id, c.origin, c.group_id, c.request_id
from srv_approval_call u join srv_command c on c.id = u.command_id
where u.approval_id = @approval_id
order by u.n;

-- ListApprovals lists newest first. The first page is before the greatest time (math.MaxInt64).
-- name: ListApprovals :many
select * from srv_approval
where workspace = @workspace and created_at <= @before_time and (created_at < @before_time or id < @before_id)
order by created_at desc, id desc
limit @page_size;

-- name: ListPendingApprovals :many
select * from srv_approval
where workspace = @workspace and created_at <= @before_time and (created_at < @before_time or id < @before_id)
  and state = 'pending'
order by created_at desc, id desc
limit @page_size;

-- ClearApprovalCalls empties the arguments of the calls of approvals of a workspace of which no command has its own any
-- more: while one can still start, the hash of what was decided counts the arguments of all.
-- name: ClearApprovalCalls :execrows
update srv_approval_call
set proposed = substr(proposed, 1, 0), edited = substr(edited, 1, 0), effective = substr(effective, 1, 0)
where (approval_id, n) in (
  select u.approval_id, u.n from srv_approval a join srv_approval_call u on u.approval_id = a.id
  where a.workspace = @workspace and a.created_at < @before and length(u.proposed) > 0
    and not exists (
      select 1 from srv_approval_call o join srv_command c on c.id = o.command_id
      where o.approval_id = a.id and length(c.action) > 0)
  order by a.created_at, a.id
  limit @page_size);

-- DeleteApprovalCalls deletes the calls of the approvals of a workspace that were resolved before a time.
-- name: DeleteApprovalCalls :execrows
delete from srv_approval_call
where (approval_id, n) in (
  select u.approval_id, u.n from srv_approval a join srv_approval_call u on u.approval_id = a.id
  where a.workspace = @workspace and a.created_at < @decided_before and a.decided_at > 0 and a.decided_at < @decided_before
  order by a.created_at, a.id
  limit @page_size);

-- DeleteApprovals deletes approvals of a workspace that were resolved before a time and have no calls any more.
-- name: DeleteApprovals :execrows
delete from srv_approval
where id in (
  select a.id from srv_approval a
  where a.workspace = @workspace and a.created_at < @decided_before and a.decided_at > 0 and a.decided_at < @decided_before
    and not exists (select 1 from srv_approval_call u where u.approval_id = a.id)
  order by a.created_at, a.id
  limit @page_size);

-- NextApprovalWorkspace is the first workspace after a name that has approvals.
-- name: NextApprovalWorkspace :one
select workspace from srv_approval where workspace > @after order by workspace limit 1;
