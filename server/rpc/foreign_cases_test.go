package rpc_test

// What a case expects of an id of another workspace. The answer to it always has to be that to an id that nobody has.
const (
	missing = "missing" // it is said not to be there
	empty   = "empty"   // a filter that nothing passes
	same    = "same"    // no more than that: the field finds nothing, whatever is in it
	clean   = "clean"   // a place in a list: what is answered is the caller's own, wherever it begins
)

// foreignCase fills one field: ID stands for the id, OWN for the caller's own device.
type foreignCase struct{ kind, want, request string }

// foreignCases has a case for each field of a request that is an id, of every method but those that only devices call.
func foreignCases() map[string]foreignCase {
	const action = `{"closeTabs":{"tabIds":["OWN_tb1-1"]}}`
	rule := func(field string) string {
		return `{"rule":{"verdict":"VERDICT_ALLOW","tool":"closeTabs","` + field + `":"ID"}}`
	}
	cases := map[string]foreignCase{
		"AgentService.Chat conversation_id":                {"conversation", missing, `{"conversationId":"ID","message":"x"}`},
		"AgentService.Send conversation_id":                {"conversation", missing, `{"conversationId":"ID","message":"x"}`},
		"AgentService.StopTurn conversation_id":            {"conversation", missing, `{"conversationId":"ID"}`},
		"AgentService.WatchConversation conversation_id":   {"conversation", missing, `{"conversationId":"ID"}`},
		"AgentService.ListQueue conversation_id":           {"conversation", missing, `{"conversationId":"ID"}`},
		"AgentService.GetConversation conversation_id":     {"conversation", missing, `{"conversationId":"ID"}`},
		"AgentService.UpdateConversation conversation_id":  {"conversation", missing, `{"conversationId":"ID","title":"x"}`},
		"AgentService.ArchiveConversation conversation_id": {"conversation", missing, `{"conversationId":"ID"}`},
		"AgentService.ReopenConversation conversation_id":  {"conversation", missing, `{"conversationId":"ID"}`},
		"AgentService.EditQueued conversation_id":          {"conversation", missing, `{"conversationId":"ID","messageId":"x","message":"x"}`},
		"AgentService.RemoveQueued conversation_id":        {"conversation", missing, `{"conversationId":"ID","messageId":"x"}`},
		"AgentService.GetToolOutput conversation_id":       {"conversation", missing, `{"conversationId":"ID","callId":"x"}`},
		"AgentService.ListTools conversation_id":           {"conversation", missing, `{"conversationId":"ID"}`},
		"AgentService.ListQueue page_token":                {"event page", missing, `{"conversationId":"FOREIGN","pageToken":"ID"}`},
		"AgentService.EditQueued message_id":               {"message", missing, `{"conversationId":"FOREIGN","messageId":"ID","message":"x"}`},
		"AgentService.RemoveQueued message_id":             {"message", missing, `{"conversationId":"FOREIGN","messageId":"ID"}`},
		"AgentService.GetToolOutput call_id":               {"message", missing, `{"conversationId":"FOREIGN","callId":"ID"}`},
		"AgentService.Chat message_id":                     {"message", clean, `{"messageId":"ID","message":"x"}`},
		"AgentService.Send message_id":                     {"message", clean, `{"messageId":"ID","message":"x"}`},
		"AgentService.ListEvents conversation_id":          {"conversation", missing, `{"conversationId":"ID"}`},
		"AgentService.ListConversations page_token":        {"conversation page", clean, `{"pageToken":"ID"}`},
		"AgentService.ListEvents page_token":               {"event page", missing, `{"conversationId":"FOREIGN","pageToken":"ID"}`},
		"DevicesService.ListDevices page_token":            {"offset", clean, `{"pageToken":"ID"}`},
		"DevicesService.RenameDevice device_id":            {"device", missing, `{"deviceId":"ID","name":"x"}`},
		"DevicesService.RevokeDevice device_id":            {"device", missing, `{"deviceId":"ID"}`},
		"DevicesService.RotateDevice device_id":            {"device", missing, `{"deviceId":"ID"}`},
		"TokenService.ListTokens page_token":               {"offset", clean, `{"pageToken":"ID"}`},
		"TokenService.RevokeToken token_id":                {"token", missing, `{"tokenId":"ID"}`},
		"CommandService.Undo command_id":                   {"command", missing, `{"commandId":"ID"}`},
		"CommandService.Undo device_id":                    {"device", missing, `{"deviceId":"ID"}`},
		"CommandService.GetCommand command_id":             {"command", missing, `{"commandId":"ID"}`},
		"CommandService.CancelCommand command_id":          {"pending", missing, `{"commandId":"ID"}`},
		"CommandService.ListCommands device_id":            {"device", empty, `{"deviceId":"ID"}`},
		"CommandService.ListCommands page_token":           {"command page", clean, `{"pageToken":"ID"}`},
		"CommandService.WatchEvents cursor":                {"cursor", clean, `{"cursor":"ID"}`},
		"CommandService.WatchEvents device_id":             {"device", empty, `{"deviceId":"ID","cursor":"0"}`},
		"BrowserService.SearchTabs device_id":              {"device", missing, `{"deviceId":"ID","query":"secret"}`},
		"BrowserService.SearchTabs page_token":             {"offset", clean, `{"pageToken":"ID","query":"secret"}`},
		"BrowserService.ListTabs device_id":                {"device", missing, `{"deviceId":"ID"}`},
		"BrowserService.ListTabs window_id":                {"window", same, `{"windowId":"ID"}`},
		"BrowserService.ListTabs page_token":               {"offset", clean, `{"pageToken":"ID"}`},
		"BrowserService.ListWindows device_id":             {"device", missing, `{"deviceId":"ID"}`},
		"BrowserService.ListWindows page_token":            {"offset", clean, `{"pageToken":"ID"}`},
		"BrowserService.ListTabGroups device_id":           {"device", missing, `{"deviceId":"ID"}`},
		"BrowserService.ListTabGroups page_token":          {"offset", clean, `{"pageToken":"ID"}`},
		"BrowserService.CountByDomain device_id":           {"device", missing, `{"deviceId":"ID"}`},
		"BrowserService.CountByDomain page_token":          {"offset", clean, `{"pageToken":"ID"}`},
		"BrowserService.ListSavedTabs device_id":           {"device", same, `{"deviceId":"ID","closed":true}`},
		"BrowserService.ListSavedTabs page_token":          {"saved page", clean, `{"pageToken":"ID"}`},
		"PolicyService.AddRule rule.rule_id":               {"rule", same, rule("ruleId")},
		"PolicyService.AddRule rule.conversation_id":       {"conversation", same, rule("conversationId")},
		"PolicyService.AddRule rule.device_id":             {"device", same, rule("deviceId")},
		"PolicyService.AddRule rule.principal":             {"token", same, rule("principal")},
		"PolicyService.AddRule rule.created_by":            {"token", same, rule("createdBy")},
		"PolicyService.AddRule rule.approval_id":           {"approval", same, rule("approvalId")},
		"PolicyService.RemoveRule rule_id":                 {"rule", missing, `{"ruleId":"ID"}`},
		"PolicyService.ExplainPolicy device_ids":           {"device", missing, `{"deviceIds":["ID"],"action":{"openTab":{"url":"https://a.test/"}}}`},
		"PolicyService.ExplainPolicy conversation_id":      {"conversation", same, `{"conversationId":"ID","action":` + action + `}`},
		"PolicyService.ExplainPolicy principal":            {"token", same, `{"principal":"ID","action":` + action + `}`},
		"AuditService.VerifyAudit anchor":                  {"anchor", same, `{"anchor":"ID"}`},
		"ApprovalService.ListApprovals page_token":         {"command page", clean, `{"pageToken":"ID"}`},
		"ApprovalService.GetApproval approval_id":          {"approval", missing, `{"approvalId":"ID"}`},
		"ApprovalService.WatchApprovals cursor":            {"cursor", clean, `{"cursor":"ID"}`},
		"ApprovalService.Decide decisions.approval_id": {
			"approval", same, `{"decisions":[{"approvalId":"ID","deny":{}}]}`,
		},
		"ApprovalService.Decide decisions.approve.hash": {
			"hash", same, `{"decisions":[{"approvalId":"nothing","approve":{"hash":"ID"}}]}`,
		},
		"ApprovalService.Decide decisions.approve.edits.command_id": {
			"pending", same, `{"decisions":[{"approvalId":"nothing","approve":{"hash":"x","edits":[{"commandId":"ID","action":` + action + `}]}}]}`,
		},
	}
	for method, wrap := range map[string][2]string{
		"Dispatch": {`{`, `}`}, "Submit": {`{`, `}`}, "DispatchStream": {`{"items":[{"number":"1","dispatch":{`, `}}]}`},
	} {
		at := map[string]string{"DispatchStream": "items.dispatch."}[method]
		open := wrap[0] + `"action":` + action
		cases["CommandService."+method+" "+at+"device_ids"] = foreignCase{
			"device", missing,
			wrap[0] + `"action":{"openTab":{"url":"https://a.test/"}},"deviceIds":["ID"]` + wrap[1],
		}
		cases["CommandService."+method+" "+at+"plan_hash"] = foreignCase{"plan", same, open + `,"planHash":"ID"` + wrap[1]}
		cases["CommandService."+method+" "+at+"request_id"] = foreignCase{
			"command", same,
			wrap[0] + `"action":{"closeTabs":{"tabIds":["nobodyhere_tb1-1"]}},"requestId":"ID"` + wrap[1],
		}
	}
	return cases
}

// actionCases has a case for each field of a command's arguments that is an id.
func actionCases() map[string]foreignCase {
	return map[string]foreignCase{
		"open_tab.window_id":     {"window", missing, `{"openTab":{"url":"https://a.test/","windowId":"ID"}}`},
		"close_tabs.tab_ids":     {"tab", missing, `{"closeTabs":{"tabIds":["ID"]}}`},
		"activate_tab.tab_id":    {"tab", missing, `{"activateTab":{"tabId":"ID"}}`},
		"navigate_tab.tab_id":    {"tab", missing, `{"navigateTab":{"tabId":"ID","url":"https://a.test/"}}`},
		"reload_tabs.tab_ids":    {"tab", missing, `{"reloadTabs":{"tabIds":["ID"]}}`},
		"pin_tabs.tab_ids":       {"tab", missing, `{"pinTabs":{"tabIds":["ID"],"pinned":true}}`},
		"mute_tabs.tab_ids":      {"tab", missing, `{"muteTabs":{"tabIds":["ID"],"muted":true}}`},
		"group_tabs.tab_ids":     {"tab", missing, `{"groupTabs":{"tabIds":["ID"],"title":"x"}}`},
		"group_tabs.window_id":   {"window", same, `{"groupTabs":{"tabIds":["OWN_tb1-1"],"title":"x","windowId":"ID"}}`},
		"ungroup_tabs.tab_ids":   {"tab", missing, `{"ungroupTabs":{"tabIds":["ID"]}}`},
		"move_tabs.tab_ids":      {"tab", missing, `{"moveTabs":{"tabIds":["ID"]}}`},
		"move_tabs.window_id":    {"window", same, `{"moveTabs":{"tabIds":["OWN_tb1-1"],"windowId":"ID"}}`},
		"save_tabs.tab_ids":      {"tab", missing, `{"saveTabs":{"tabIds":["ID"]}}`},
		"restore_tabs.saved_ids": {"saved", missing, `{"restoreTabs":{"savedIds":["ID"]}}`},
	}
}

// actionWraps are the requests that carry a command: ACTION stands for it.
func actionWraps() map[string]string {
	return map[string]string{
		"CommandService.Dispatch action":                      `{"action":ACTION}`,
		"CommandService.Submit action":                        `{"action":ACTION}`,
		"CommandService.DispatchStream items.dispatch.action": `{"items":[{"number":"1","dispatch":{"action":ACTION}}]}`,
		"PolicyService.ExplainPolicy action":                  `{"action":ACTION}`,
		"ApprovalService.Decide decisions.approve.edits.action": `{"decisions":[{"approvalId":"nothing","approve":{"hash":"x",` +
			`"edits":[{"commandId":"nothing","action":ACTION}]}}]}`,
	}
}

// frameCases has a case for each id in what a device says, as the frame that says it.
func frameCases() map[string]foreignCase {
	cases := map[string]foreignCase{
		"hello.device_id":            {"device", same, `{"hello":{"deviceId":"ID"}}`},
		"hello.running_command_ids":  {"pending", same, `{"hello":{"deviceId":"OWN","bootTag":"b1","runningCommandIds":["ID"]}}`},
		"hello.outcomes.command_id":  {"pending", same, `{"hello":{"deviceId":"OWN","bootTag":"b1","outcomes":[{"commandId":"ID","result":{"closeTabs":{}}}]}}`},
		"hello.outcomes.result":      {"tab", same, `{"hello":{"deviceId":"OWN","bootTag":"b1","outcomes":[{"commandId":"x","result":{"openTab":{"tabId":"ID"}}}]}}`},
		"acknowledgement.command_id": {"pending", same, `{"acknowledgement":{"commandId":"ID"}}`},
		"outcome.command_id":         {"pending", same, `{"outcome":{"commandId":"ID","result":{"closeTabs":{}}}}`},
		"outcome.result":             {"tab", same, `{"outcome":{"commandId":"x","result":{"openTab":{"tabId":"ID"}}}}`},
		"delta.removed":              {"tab", same, `{"delta":{"sequence":"2","removed":["ID"]}}`},
		"delta.replaced.old_tab_id":  {"tab", same, `{"delta":{"sequence":"2","replaced":[{"oldTabId":"ID","newTabId":"OWN_tb1-2"}]}}`},
		"delta.replaced.new_tab_id":  {"tab", same, `{"delta":{"sequence":"2","replaced":[{"oldTabId":"OWN_tb1-1","newTabId":"ID"}]}}`},
	}
	const whole = `"windowId":"OWN_wb1-1"`
	for frame, start := range map[string]string{"snapshot": `"sequence":"1","last":true,`, "delta": `"sequence":"2",`} {
		for field, f := range map[string][2]string{
			"windows.window_id": {"window", `"windows":[{"windowId":"ID"}]`},
			"groups.group_id":   {"group", `"groups":[{"groupId":"ID",` + whole + `}]`},
			"groups.window_id":  {"window", `"groups":[{"groupId":"OWN_gb1-1","windowId":"ID"}]`},
			"tabs.tab_id":       {"tab", `"tabs":[{"tabId":"ID",` + whole + `,"url":"https://a.test/"}]`},
			"tabs.window_id":    {"window", `"tabs":[{"tabId":"OWN_tb1-9","windowId":"ID","url":"https://a.test/"}]`},
			"tabs.group_id":     {"group", `"tabs":[{"tabId":"OWN_tb1-9",` + whole + `,"groupId":"ID","url":"https://a.test/"}]`},
		} {
			cases[frame+"."+field] = foreignCase{f[0], same, `{"` + frame + `":{` + start + f[1] + `}}`}
		}
	}
	return cases
}
