-- +goose Up

-- The policy of a workspace: a row from its first change on.
create table srv_policy (
  workspace text not null primary key,
  version bigint not null,     -- rises with each change
  settings bytea not null,     -- a throwbar.control.v1.PolicySettings, without defaults
  constraint srv_policy_named check (workspace <> ''),
  constraint srv_policy_version check (version > 0)
);

create table srv_rule (
  id text not null primary key,
  workspace text not null,
  version bigint not null,     -- of the policy that the rule came with: their order
  body bytea not null,         -- a throwbar.control.v1.PolicyRule
  constraint srv_rule_named check (id <> '' and workspace <> ''),
  constraint srv_rule_version check (version > 0),
  constraint srv_rule_body check (length(body) > 0)
);

create index srv_rule_by_version on srv_rule (workspace, version);
