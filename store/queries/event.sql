-- InsertEvent gives the event the next number.
-- name: InsertEvent :one
insert into srv_event (seq, workspace, time, device_id, body)
values ((select coalesce(max(e.seq), 0) + 1 from srv_event e), @workspace, @time, @device_id, @body)
returning seq;

-- AppendEvent gives the event the next number, and does not say which.
-- name: AppendEvent :exec
insert into srv_event (seq, workspace, time, device_id, body)
values ((select coalesce(max(e.seq), 0) + 1 from srv_event e), @workspace, @time, @device_id, @body);

-- ListEvents lists the events of a workspace after a number. Where it gives less than a page, go on after the last number
-- that GetEventRange gave before, so that other workspaces' events are not read again and again.
-- name: ListEvents :many
select * from srv_event where workspace = @workspace and seq > @after order by seq limit @page_size;

-- name: ListDeviceEvents :many
select * from srv_event
where workspace = @workspace and device_id = @device_id and device_id <> '' and seq > @after
order by seq
limit @page_size;

-- GetEventRange is the first and the last number kept; no row while there never was an event.
-- name: GetEventRange :one
select a.seq as first, z.seq as last
from (select f.seq from srv_event f order by f.seq limit 1) a,
  (select l.seq from srv_event l order by l.seq desc limit 1) z;

-- DeleteEvents deletes at most page_size events from the front: up to the first one that is not older than a time, so
-- that no hole appears, and never the last, so that no number is given twice.
-- name: DeleteEvents :execrows
delete from srv_event
where seq in (
  select e.seq from srv_event e
  where e.seq < coalesce(
    (select f.seq from srv_event f where f.time >= @before order by f.seq limit 1),
    (select l.seq from srv_event l order by l.seq desc limit 1))
  order by e.seq
  limit @page_size);
