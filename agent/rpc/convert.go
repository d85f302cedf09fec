package rpc

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"throwbar.dev/throwbar/agent/conversation"
	"throwbar.dev/throwbar/agent/tool"
	"throwbar.dev/throwbar/agent/turn"
	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
	configv1 "throwbar.dev/throwbar/gen/go/throwbar/config/v1"
)

const (
	defaultPage = 100
	maxPage     = 1000
)

func pageSize(asked uint32) int {
	if asked == 0 {
		return defaultPage
	}
	return int(min(asked, maxPage))
}

func chatDelivery(workspace string, req *agentv1.ChatRequest) conversation.Delivery {
	return conversation.Delivery{
		Workspace: workspace, To: req.GetConversationId(), Text: req.GetMessage(), Mode: req.GetMode(), MessageID: req.GetMessageId(),
		Model: req.GetModel(), Attached: !req.GetDetached(),
	}
}

func sendDelivery(workspace string, req *agentv1.SendRequest) conversation.Delivery {
	return conversation.Delivery{
		Workspace: workspace, To: req.GetConversationId(), Text: req.GetMessage(), Mode: req.GetMode(), MessageID: req.GetMessageId(),
		Model: req.GetModel(),
	}
}

func sendResponse(d conversation.Delivered) *agentv1.SendResponse {
	return &agentv1.SendResponse{
		ConversationId: d.Conversation.ID, Handle: d.Handle, MessageId: d.MessageID, Delivery: d.Delivery, TurnId: d.TurnID,
		Sequence: d.Sequence,
	}
}

func messages(rows []conversation.Row) []*agentv1.Conversation {
	out := make([]*agentv1.Conversation, len(rows))
	for i, row := range rows {
		out[i] = row.Message()
	}
	return out
}

// conversationsPage is a page of at most limit rows, of which one more was read to see whether it is the last.
func conversationsPage(rows []conversation.Row, limit int) *agentv1.ListConversationsResponse {
	res := &agentv1.ListConversationsResponse{}
	if len(rows) > limit {
		rows = rows[:limit]
		last := rows[limit-1]
		res.NextPageToken = strconv.FormatInt(last.UpdatedAt.UnixMilli(), 10) + "_" + last.ID
	}
	res.Conversations = messages(rows)
	return res
}

// queuePage is a page of at most limit messages, of which one more was read to see whether it is the last.
func queuePage(letters []conversation.Letter, limit int) *agentv1.ListQueueResponse {
	res := &agentv1.ListQueueResponse{}
	if len(letters) > limit {
		letters = letters[:limit]
		res.NextPageToken = strconv.FormatUint(letters[limit-1].Sequence, 10)
	}
	for _, l := range letters {
		res.Messages = append(res.Messages, l.Message())
	}
	return res
}

// toolsOf lists the tools, and which of them an agent has.
func toolsOf(set *tool.Set, access tool.Access) *agentv1.ListToolsResponse {
	view := set.View(access)
	res := &agentv1.ListToolsResponse{}
	for _, t := range set.Tools() {
		res.Tools = append(res.Tools, &agentv1.ToolInfo{
			Name: t.Name, Group: t.Entry.Family, Summary: t.Entry.Summary, Granted: t.Entry.Facility.GetGranted(), Available: view.Has(t),
		})
	}
	slices.SortFunc(res.Tools, func(a, b *agentv1.ToolInfo) int { return strings.Compare(a.GetName(), b.GetName()) })
	return res
}

// described is a model that says what it is at its provider.
type described interface {
	// Describe gives its name there, and the host.
	Describe() (name, host string)
}

func modelsOf(models []turn.Choice) *agentv1.ListModelsResponse {
	res := &agentv1.ListModelsResponse{}
	for _, m := range models {
		info := &agentv1.ModelInfo{Name: m.Name, Model: m.Name, ContextTokens: uint64(max(m.Context, 0)), Images: m.Images}
		if d, ok := m.Model.(described); ok {
			info.Model, info.Host = d.Describe()
		}
		res.Models = append(res.Models, info)
	}
	return res
}

func agentsOf(set *tool.Set, definitions []*configv1.AgentDefinition) *agentv1.ListAgentsResponse {
	res := &agentv1.ListAgentsResponse{}
	for _, d := range definitions {
		access := set.Listed(d.GetTools())
		res.Agents = append(res.Agents, &agentv1.AgentInfo{
			Name: d.GetName(), Description: d.GetDescription(), Grants: &agentv1.Grants{Only: access.Only, Extra: access.Extra},
			Model: &agentv1.ModelChoice{Models: d.GetModels(), Effort: d.GetEffort()},
		})
	}
	slices.SortFunc(res.Agents, func(a, b *agentv1.AgentInfo) int { return strings.Compare(a.GetName(), b.GetName()) })
	return res
}

// place reads the token of a page of conversations.
func place(token string) (*conversation.Place, error) {
	if token == "" {
		return nil, nil
	}
	millis, id, ok := strings.Cut(token, "_")
	at, err := strconv.ParseInt(millis, 10, 64)
	if !ok || err != nil {
		return nil, badToken()
	}
	return &conversation.Place{UpdatedAt: time.UnixMilli(at), ID: id}, nil
}

// eventsPage is a page of at most limit events, of which one more was read to see whether it is the last.
func eventsPage(events []*agentv1.Event, limit int) *agentv1.ListEventsResponse {
	res := &agentv1.ListEventsResponse{Events: events}
	if len(events) > limit {
		res.Events = events[:limit]
		res.NextPageToken = strconv.FormatUint(events[limit-1].GetSequence(), 10)
	}
	return res
}

// number reads the token of a page of events.
func number(token string) (uint64, error) {
	if token == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(token, 10, 63)
	if err != nil {
		return 0, badToken()
	}
	return n, nil
}

func badToken() error {
	return &conversation.Error{Code: conversation.Invalid, Message: "this page token is of no list of conversations or events"}
}
