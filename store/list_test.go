package store

import (
	"context"
	"maps"
	"math"
	"slices"

	"throwbar.dev/throwbar/store/db"
)

func merged(all ...map[string]lister) map[string]lister {
	out := map[string]lister{}
	for _, some := range all {
		maps.Copy(out, some)
	}
	return out
}

// listers has a lister for each query with pages; a name with a slash is a query with a filter.
func listers(r rows) map[string]lister {
	return merged(commandListers(r), deviceListers(r), eventListers(r), savedListers(r), conversationListers(r),
		policyListers(r), auditListers(r), approvalListers(r), agendaListers(r))
}

func commandListers(r rows) map[string]lister {
	to := func(c db.Command) item { return item{id: c.ID, time: c.CreatedAt} }
	want := func(keep func(db.InsertCommandParams) bool) []item {
		return pick(r.commands, newestFirst, func(c db.InsertCommandParams) (item, bool) {
			return item{id: c.ID, time: c.CreatedAt}, keep(c)
		})
	}
	pending := func(device string) lister {
		return lister{
			page: func(ctx context.Context, q *db.Queries, last item, size int32) ([]item, error) {
				rows, err := q.ListPendingCommands(ctx, db.ListPendingCommandsParams{
					Workspace: "default", DeviceID: device, BeforeTime: last.time, BeforeID: last.id, PageSize: size,
				})
				return items(rows, err, to)
			},
			want: want(func(c db.InsertCommandParams) bool {
				return c.Workspace == "default" && !r.ended[c.ID] && (device == "" || c.DeviceID == device)
			}),
		}
	}
	return map[string]lister{
		"ListPendingCommands":        pending(""),
		"ListPendingCommands/device": pending("device1"),
		"ListCommands": {
			page: func(ctx context.Context, q *db.Queries, last item, size int32) ([]item, error) {
				rows, err := q.ListCommands(ctx, db.ListCommandsParams{
					Workspace: "default", BeforeTime: last.time, BeforeID: last.id, PageSize: size,
				})
				return items(rows, err, to)
			},
			want: want(func(c db.InsertCommandParams) bool { return c.Workspace == "default" }),
		},
		"ListRequestedCommands": {
			page: func(ctx context.Context, q *db.Queries, last item, size int32) ([]item, error) {
				rows, err := q.ListRequestedCommands(ctx, db.ListRequestedCommandsParams{
					Workspace: "default", Principal: r.commands[0].Principal, RequestID: "request1", BeforeTime: last.time, BeforeID: last.id,
					PageSize: size,
				})
				return items(rows, err, to)
			},
			want: want(func(c db.InsertCommandParams) bool { return c.Workspace == "default" && c.RequestID == "request1" }),
		},
		"ListDeviceCommands": {
			page: func(ctx context.Context, q *db.Queries, last item, size int32) ([]item, error) {
				rows, err := q.ListDeviceCommands(ctx, db.ListDeviceCommandsParams{
					Workspace: "default", DeviceID: "device2", BeforeTime: last.time, BeforeID: last.id, PageSize: size,
				})
				return items(rows, err, to)
			},
			want: want(func(c db.InsertCommandParams) bool { return c.Workspace == "default" && c.DeviceID == "device2" }),
		},
		"ListUnfinishedCommands": {
			page: func(ctx context.Context, q *db.Queries, last item, size int32) ([]item, error) {
				rows, err := q.ListUnfinishedCommands(ctx, db.ListUnfinishedCommandsParams{
					AfterTime: fromStart(last.time), AfterID: last.id, PageSize: size,
				})
				return items(rows, err, to)
			},
			want: pick(r.commands, oldestFirst, func(c db.InsertCommandParams) (item, bool) {
				return item{id: c.ID, time: c.CreatedAt}, !r.ended[c.ID]
			}),
		},
	}
}

func approvalListers(r rows) map[string]lister {
	to := func(a db.Approval) item { return item{id: a.ID, time: a.CreatedAt} }
	want := func(keep func(db.InsertApprovalParams) bool) []item {
		return pick(r.approvals, newestFirst, func(a db.InsertApprovalParams) (item, bool) {
			return item{id: a.ID, time: a.CreatedAt}, a.Workspace == "default" && keep(a)
		})
	}
	return map[string]lister{
		"ListApprovals": {
			page: func(ctx context.Context, q *db.Queries, last item, size int32) ([]item, error) {
				rows, err := q.ListApprovals(ctx, db.ListApprovalsParams{
					Workspace: "default", BeforeTime: last.time, BeforeID: last.id, PageSize: size,
				})
				return items(rows, err, to)
			},
			want: want(func(db.InsertApprovalParams) bool { return true }),
		},
		"ListPendingApprovals": {
			page: func(ctx context.Context, q *db.Queries, last item, size int32) ([]item, error) {
				rows, err := q.ListPendingApprovals(ctx, db.ListPendingApprovalsParams{
					Workspace: "default", BeforeTime: last.time, BeforeID: last.id, PageSize: size,
				})
				return items(rows, err, to)
			},
			want: want(func(a db.InsertApprovalParams) bool { return !r.ended[a.ID] }),
		},
	}
}

func oldestFirst(a, b item) int { return -newestFirst(a, b) }

// fromStart is the time or number before the first page of a list that goes upwards.
func fromStart(last int64) int64 {
	if last == math.MaxInt64 {
		return 0
	}
	return last
}

func deviceListers(r rows) map[string]lister {
	return map[string]lister{
		"ListDevices": {
			page: func(ctx context.Context, q *db.Queries, last item, size int32) ([]item, error) {
				rows, err := q.ListDevices(ctx, db.ListDevicesParams{
					Workspace: "default", AfterName: last.name, AfterID: last.id, PageSize: size,
				})
				return items(rows, err, func(d db.Device) item { return item{id: d.ID, name: d.Name} })
			},
			want: pick(r.devices, byName, func(d db.InsertDeviceParams) (item, bool) {
				return item{id: d.ID, name: d.Name}, d.Workspace == "default"
			}),
		},
		"ListAllDevices": {
			page: func(ctx context.Context, q *db.Queries, last item, size int32) ([]item, error) {
				rows, err := q.ListAllDevices(ctx, db.ListAllDevicesParams{AfterID: last.id, PageSize: size})
				return items(rows, err, func(d db.Device) item { return item{id: d.ID} })
			},
			want: pick(r.devices, byName, func(d db.InsertDeviceParams) (item, bool) { return item{id: d.ID}, true }),
		},
		"ListBrowsers": {
			page: func(ctx context.Context, q *db.Queries, last item, size int32) ([]item, error) {
				rows, err := q.ListBrowsers(ctx, db.ListBrowsersParams{AfterDeviceID: last.id, PageSize: size})
				return items(rows, err, func(b db.Browser) item { return item{id: b.DeviceID} })
			},
			want: pick(r.browsers, byName, func(id string) (item, bool) { return item{id: id}, true }),
		},
		"ListWorkspaces": {
			page: func(ctx context.Context, q *db.Queries, last item, size int32) ([]item, error) {
				rows, err := q.ListWorkspaces(ctx, db.ListWorkspacesParams{AfterName: last.id, PageSize: size})
				return items(rows, err, func(w db.Workspace) item { return item{id: w.Name} })
			},
			want: pick(r.browsers, byName, func(name string) (item, bool) { return item{id: name}, true }),
		},
		"ListTokens": {
			page: func(ctx context.Context, q *db.Queries, last item, size int32) ([]item, error) {
				rows, err := q.ListTokens(ctx, db.ListTokensParams{
					Workspace: "default", BeforeTime: last.time, BeforeID: last.id, PageSize: size,
				})
				return items(rows, err, func(t db.Token) item { return item{id: t.ID, time: t.CreatedAt} })
			},
			want: pick(r.tokens, newestFirst, func(t db.InsertTokenParams) (item, bool) {
				return item{id: t.ID, time: t.CreatedAt}, t.Workspace == "default"
			}),
		},
		"ListAllTokens": {
			page: func(ctx context.Context, q *db.Queries, last item, size int32) ([]item, error) {
				rows, err := q.ListAllTokens(ctx, db.ListAllTokensParams{AfterID: last.id, PageSize: size})
				return items(rows, err, func(t db.Token) item { return item{id: t.ID} })
			},
			want: pick(r.tokens, byName, func(t db.InsertTokenParams) (item, bool) { return item{id: t.ID}, true }),
		},
	}
}

func eventListers(r rows) map[string]lister {
	to := func(e db.Event) item { return item{time: e.Seq} }
	want := func(keep func(db.Event) bool) []item {
		return pick(r.events, oldestFirst, func(e db.Event) (item, bool) { return to(e), keep(e) })
	}
	return map[string]lister{
		"ListEvents": {
			page: func(ctx context.Context, q *db.Queries, last item, size int32) ([]item, error) {
				rows, err := q.ListEvents(ctx, db.ListEventsParams{
					Workspace: "default", After: fromStart(last.time), PageSize: size,
				})
				return items(rows, err, to)
			},
			want: want(func(e db.Event) bool { return e.Workspace == "default" }),
		},
		"ListDeviceEvents": {
			page: func(ctx context.Context, q *db.Queries, last item, size int32) ([]item, error) {
				rows, err := q.ListDeviceEvents(ctx, db.ListDeviceEventsParams{
					Workspace: "default", DeviceID: "device0", After: fromStart(last.time), PageSize: size,
				})
				return items(rows, err, to)
			},
			want: want(func(e db.Event) bool { return e.Workspace == "default" && e.DeviceID == "device0" }),
		},
	}
}

func auditListers(r rows) map[string]lister {
	return map[string]lister{
		"ListAudit": {
			page: func(ctx context.Context, q *db.Queries, last item, size int32) ([]item, error) {
				rows, err := q.ListAudit(ctx, db.ListAuditParams{Workspace: "default", After: fromStart(last.time), PageSize: size})
				return items(rows, err, func(a db.Audit) item { return item{time: a.Sequence} })
			},
			want: pick(r.audit, oldestFirst, func(a db.InsertAuditParams) (item, bool) {
				return item{time: a.Sequence}, a.Workspace == "default"
			}),
		},
	}
}

func savedListers(r rows) map[string]lister {
	list := func(device, kind string) lister {
		return lister{
			page: func(ctx context.Context, q *db.Queries, last item, size int32) ([]item, error) {
				rows, err := q.ListSaved(ctx, db.ListSavedParams{
					Workspace: "default", DeviceID: device, Kind: kind, BeforeTime: last.time, BeforeID: last.id, PageSize: size,
				})
				return items(rows, err, func(s db.Saved) item { return item{id: s.ID, time: s.SavedAt} })
			},
			want: pick(r.saved, newestFirst, func(s db.InsertSavedParams) (item, bool) {
				return item{id: s.ID, time: s.SavedAt}, s.Workspace == "default" && s.State == "kept" &&
					(device == "" || s.DeviceID == device) && (kind == "" || s.Kind == kind)
			}),
		}
	}
	groups := map[string]string{}
	for _, c := range r.commands {
		groups[c.ID] = c.GroupID
	}
	kept := func(device, group string) lister {
		return lister{
			page: func(ctx context.Context, q *db.Queries, last item, size int32) ([]item, error) {
				rows, err := q.ListKept(ctx, db.ListKeptParams{
					Workspace: "default", DeviceID: device, GroupID: group, BeforeTime: last.time, BeforeID: last.id, PageSize: size,
				})
				return items(rows, err, func(s db.ListKeptRow) item { return item{id: s.ID, time: s.SavedAt} })
			},
			want: pick(r.saved, newestFirst, func(s db.InsertSavedParams) (item, bool) {
				return item{id: s.ID, time: s.SavedAt}, s.Workspace == "default" && s.State == "kept" &&
					(device == "" || s.DeviceID == device) && (group == "" || groups[s.CommandID] == group)
			}),
		}
	}
	return map[string]lister{
		"ListKept":              kept("", ""),
		"ListKept/device":       kept("device1", ""),
		"ListKept/group":        kept("", "group1"),
		"ListSaved":             list("", ""),
		"ListSaved/device":      list("device1", ""),
		"ListSaved/kind":        list("", "closed"),
		"ListSaved/device,kind": list("device2", "saved"),
	}
}

func policyListers(r rows) map[string]lister {
	want := pick(r.browsers, byName, func(id string) (item, bool) { return item{id: id}, true })
	return map[string]lister{
		"ListAllPolicies": {
			page: func(ctx context.Context, q *db.Queries, last item, size int32) ([]item, error) {
				rows, err := q.ListAllPolicies(ctx, db.ListAllPoliciesParams{AfterWorkspace: last.id, PageSize: size})
				return items(rows, err, func(p db.Policy) item { return item{id: p.Workspace} })
			},
			want: want,
		},
		"ListAllRules": {
			page: func(ctx context.Context, q *db.Queries, last item, size int32) ([]item, error) {
				rows, err := q.ListAllRules(ctx, db.ListAllRulesParams{AfterID: last.id, PageSize: size})
				return items(rows, err, func(r db.Rule) item { return item{id: r.ID} })
			},
			want: want,
		},
	}
}

func conversationListers(r rows) map[string]lister {
	numbers := pick(r.numbers, oldestFirst, func(n int64) (item, bool) { return item{time: n}, true })
	return map[string]lister{
		"ListConversations": {
			page: func(ctx context.Context, q *db.Queries, last item, size int32) ([]item, error) {
				rows, err := q.ListConversations(ctx, db.ListConversationsParams{
					Workspace: "default", BeforeTime: last.time, BeforeID: last.id, PageSize: size,
				})
				return items(rows, err, func(c db.Conversation) item { return item{id: c.ID, time: c.UpdatedAt} })
			},
			want: pick(r.conversations, newestFirst, func(c db.InsertConversationParams) (item, bool) {
				return item{id: c.ID, time: c.UpdatedAt}, c.Workspace == "default"
			}),
		},
		"FindOpenConversations": {
			page: func(ctx context.Context, q *db.Queries, last item, size int32) ([]item, error) {
				rows, err := q.FindOpenConversations(ctx, db.FindOpenConversationsParams{
					Workspace: "default", FromID: "0", AfterID: last.id, ToID: "a", PageSize: size,
				})
				return items(rows, err, func(c db.Conversation) item { return item{id: c.ID} })
			},
			want: pick(r.conversations, byName, func(c db.InsertConversationParams) (item, bool) {
				return item{id: c.ID}, c.Workspace == "default" && c.Open && c.ID >= "0" && c.ID < "a"
			}),
		},
		"ListConversationEvents": {
			page: func(ctx context.Context, q *db.Queries, last item, size int32) ([]item, error) {
				rows, err := q.ListConversationEvents(ctx, db.ListConversationEventsParams{
					ConversationID: r.conversations[0].ID, After: fromStart(last.time), PageSize: size,
				})
				return items(rows, err, func(e db.ConversationEvent) item { return item{time: e.Seq} })
			},
			want: numbers,
		},
		"ListConversationsWhere": {
			page: func(ctx context.Context, q *db.Queries, last item, size int32) ([]item, error) {
				rows, err := q.ListConversationsWhere(ctx, db.ListConversationsWhereParams{
					Workspace: "default", Open: true, BeforeTime: last.time, BeforeID: last.id, PageSize: size,
				})
				return items(rows, err, func(c db.Conversation) item { return item{id: c.ID, time: c.UpdatedAt} })
			},
			want: pick(r.conversations, newestFirst, func(c db.InsertConversationParams) (item, bool) {
				return item{id: c.ID, time: c.UpdatedAt}, c.Workspace == "default" && c.Open
			}),
		},
		"ListChildConversations": {
			page: func(ctx context.Context, q *db.Queries, last item, size int32) ([]item, error) {
				rows, err := q.ListChildConversations(ctx, db.ListChildConversationsParams{
					Workspace: "default", ParentID: "parent", AfterID: last.id, PageSize: size,
				})
				return items(rows, err, func(c db.Conversation) item { return item{id: c.ID} })
			},
			want: pick(r.conversations, byName, func(c db.InsertConversationParams) (item, bool) {
				return item{id: c.ID}, c.Workspace == "default" && c.ParentID == "parent"
			}),
		},
		"ListEventsBefore": {
			page: func(ctx context.Context, q *db.Queries, last item, size int32) ([]item, error) {
				rows, err := q.ListEventsBefore(ctx, db.ListEventsBeforeParams{
					ConversationID: r.conversations[0].ID, Before: last.time, PageSize: size,
				})
				return items(rows, err, func(e db.ConversationEvent) item { return item{time: e.Seq} })
			},
			want: pick(r.numbers, newestFirst, func(n int64) (item, bool) { return item{time: n}, true }),
		},
		"ListMessages": {
			page: func(ctx context.Context, q *db.Queries, last item, size int32) ([]item, error) {
				rows, err := q.ListMessages(ctx, db.ListMessagesParams{
					ConversationID: r.conversations[0].ID, After: fromStart(last.time), PageSize: size,
				})
				return items(rows, err, func(m db.Message) item { return item{time: m.N} })
			},
			want: numbers,
		},
	}
}

func agendaListers(r rows) map[string]lister {
	waits := func(conversation string) bool {
		return slices.ContainsFunc(r.queued, func(m db.InsertQueuedParams) bool {
			return m.ConversationID == conversation && m.State == "waiting"
		})
	}
	return map[string]lister{
		"ListRunningTurns": {
			page: func(ctx context.Context, q *db.Queries, last item, size int32) ([]item, error) {
				rows, err := q.ListRunningTurns(ctx, db.ListRunningTurnsParams{AfterID: last.id, PageSize: size})
				return items(rows, err, func(t db.ListRunningTurnsRow) item { return item{id: t.ConversationID} })
			},
			want: pick(r.conversations, byName, func(c db.InsertConversationParams) (item, bool) { return item{id: c.ID}, true }),
		},
		"ListWaiting": {
			page: func(ctx context.Context, q *db.Queries, last item, size int32) ([]item, error) {
				rows, err := q.ListWaiting(ctx, db.ListWaitingParams{
					ConversationID: r.conversations[0].ID, After: fromStart(last.time), PageSize: size,
				})
				return items(rows, err, func(m db.Queued) item { return item{time: m.N} })
			},
			want: pick(r.queued, oldestFirst, func(m db.InsertQueuedParams) (item, bool) {
				return item{time: m.N}, m.ConversationID == r.conversations[0].ID && m.State == "waiting"
			}),
		},
		"ListWaitingConversations": {
			page: func(ctx context.Context, q *db.Queries, last item, size int32) ([]item, error) {
				rows, err := q.ListWaitingConversations(ctx, db.ListWaitingConversationsParams{AfterID: last.id, PageSize: size})
				return items(rows, err, func(c db.ListWaitingConversationsRow) item { return item{id: c.ID} })
			},
			want: pick(r.conversations, byName, func(c db.InsertConversationParams) (item, bool) { return item{id: c.ID}, waits(c.ID) }),
		},
	}
}
