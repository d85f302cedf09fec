-- +goose Up

-- What a command counts for: an act is all that agents do because of one message of a person. Of a command that can destroy
-- something and runs without anybody being asked.
alter table srv_command add column act text collate "C" not null default '';                 -- '' if it counts for none
alter table srv_command add column act_targets bigint not null default 0         -- on how many targets
  constraint srv_command_act check (act_targets >= 0 and (act = '') = (act_targets = 0));

create index srv_command_by_act on srv_command (workspace, act) where act <> '';

-- What a command of an undo is about, so that an undo that is followed after a restart says what is undone.
alter table srv_command add column undoes text collate "C" not null default '';              -- id of the command; '' of one of no undo
alter table srv_command add column undo_targets bigint not null default 0;       -- how many tabs of that the undo wants back
alter table srv_command add column undone bigint not null default 0              -- how many of them this one brought back
  constraint srv_command_undo check (undo_targets >= 0 and undone >= 0 and (undoes <> '' or (undo_targets = 0 and undone = 0)));
