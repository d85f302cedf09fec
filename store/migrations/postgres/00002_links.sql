-- +goose Up

-- 1 while the device has a link, and after a stop of the server until it is known whether the device comes back
alter table srv_device add column online bigint not null default 0
  constraint srv_device_online check (online in (0, 1));
