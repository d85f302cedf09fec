package rpc

import (
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"throwbar.dev/throwbar/agent/conversation"
	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
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

func chatRequest(workspace string, req *agentv1.ChatRequest) conversation.Request {
	return conversation.Request{
		Workspace: workspace, Conversation: req.GetConversationId(), Message: req.GetMessage(), Detached: req.GetDetached(),
	}
}

// conversationsPage is a page of at most limit rows, of which one more was read to see whether it is the last.
func conversationsPage(rows []conversation.Row, limit int) *agentv1.ListConversationsResponse {
	res := &agentv1.ListConversationsResponse{}
	if len(rows) > limit {
		rows = rows[:limit]
		last := rows[limit-1]
		res.NextPageToken = strconv.FormatInt(last.UpdatedAt.UnixMilli(), 10) + "_" + last.ID
	}
	for _, row := range rows {
		res.Conversations = append(res.Conversations, &agentv1.Conversation{
			ConversationId: row.ID, Handle: row.Handle, Title: row.Title, Running: row.Running,
			CreatedAt: timestamppb.New(row.CreatedAt), UpdatedAt: timestamppb.New(row.UpdatedAt),
		})
	}
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
