package rpc

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect/v2"
	"google.golang.org/protobuf/proto"

	"throwbar.dev/throwbar/agent/conversation"
	"throwbar.dev/throwbar/agent/tool"
	"throwbar.dev/throwbar/catalog"
	"throwbar.dev/throwbar/gen"
	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
)

func TestEveryErrorHasItsCode(t *testing.T) {
	t.Parallel()
	for c := conversation.NotFound; c <= conversation.Exhausted; c++ {
		err := coded(&conversation.Error{Code: c, Message: "why"})
		if got := connect.CodeOf(err); got == connect.CodeInternal || got == connect.CodeUnknown {
			t.Errorf("code %d becomes %v", c, got)
		}
	}
	if err := errors.New("x"); !errors.Is(coded(err), err) {
		t.Error("an error of the inside was changed")
	}
}

func TestTokensLeadBackToTheirPlace(t *testing.T) {
	t.Parallel()
	at := time.UnixMilli(1_700_000_000_123)
	rows := []conversation.Row{
		{Conversation: conversation.Conversation{ID: "a", UpdatedAt: at, CreatedAt: at, Title: "t"}, Handle: "h", Status: agentv1.ConversationStatus_CONVERSATION_STATUS_WAITING},
		{Conversation: conversation.Conversation{ID: "b", UpdatedAt: at}},
	}
	page := conversationsPage(rows, 1)
	got, err := place(page.GetNextPageToken())
	if err != nil || got.ID != "a" || !got.UpdatedAt.Equal(at) || len(page.GetConversations()) != 1 {
		t.Errorf("%+v, %v", got, err)
	}
	c := page.GetConversations()[0]
	if c.GetConversationId() != "a" || c.GetHandle() != "h" || !c.GetRunning() || c.GetTitle() != "t" || !c.GetCreatedAt().AsTime().Equal(at) {
		t.Errorf("%v", c)
	}
	if last := conversationsPage(rows, 2); last.GetNextPageToken() != "" || len(last.GetConversations()) != 2 {
		t.Errorf("%v", last)
	}
	events := eventsPage([]*agentv1.Event{{Sequence: 7}, {Sequence: 8}}, 1)
	if n, err := number(events.GetNextPageToken()); err != nil || n != 7 || len(events.GetEvents()) != 1 {
		t.Errorf("%d, %v", n, err)
	}
}

func TestARequestKeepsAllItSays(t *testing.T) {
	t.Parallel()
	id, choice := "00000000-0000-4000-8000-000000000000", &agentv1.ModelChoice{Models: []string{"m"}}
	want := conversation.Delivery{
		Workspace: "w", To: "abcd", Text: "m", Mode: agentv1.SendMode_SEND_MODE_STEER, MessageID: id, Model: choice, Attached: true,
	}
	chat := &agentv1.ChatRequest{
		ConversationId: proto.String("abcd"), Message: "m", Mode: agentv1.SendMode_SEND_MODE_STEER, MessageId: &id, Model: choice,
	}
	if got := chatDelivery("w", chat); got != want {
		t.Errorf("%+v", got)
	}
	chat.Detached, want.Attached = true, false
	if got := chatDelivery("w", chat); got != want {
		t.Errorf("%+v", got)
	}
	send := &agentv1.SendRequest{
		ConversationId: proto.String("abcd"), Message: "m", Mode: agentv1.SendMode_SEND_MODE_STEER, MessageId: &id, Model: choice,
	}
	if got := sendDelivery("w", send); got != want {
		t.Errorf("%+v", got)
	}
	if pageSize(0) != 100 || pageSize(7) != 7 || pageSize(5000) != 1000 {
		t.Error("page sizes")
	}
}

func TestToolsSayWhatAnAgentHas(t *testing.T) {
	t.Parallel()
	c, err := catalog.New(gen.Descriptors)
	if err != nil {
		t.Fatal(err)
	}
	set, err := tool.NewSet(c)
	if err != nil {
		t.Fatal(err)
	}
	info := func(a tool.Access, name string) *agentv1.ToolInfo {
		all := toolsOf(set, a).GetTools()
		if !slices.IsSortedFunc(all, func(a, b *agentv1.ToolInfo) int { return strings.Compare(a.GetName(), b.GetName()) }) {
			t.Error("out of order")
		}
		return all[slices.IndexFunc(all, func(i *agentv1.ToolInfo) bool { return i.GetName() == name })]
	}
	if i := info(tool.Access{}, "searchTabs"); !i.GetAvailable() || i.GetGranted() || i.GetGroup() == "" || i.GetSummary() == "" {
		t.Errorf("%v", i)
	}
	if i := info(tool.Access{Denied: []string{"searchTabs"}}, "searchTabs"); i.GetAvailable() {
		t.Errorf("%v", i)
	}
	if i := info(tool.Access{}, "readConversation"); i.GetAvailable() || !i.GetGranted() {
		t.Errorf("%v", i)
	}
	if i := info(tool.Access{Extra: []string{"readConversation"}}, "readConversation"); !i.GetAvailable() {
		t.Errorf("%v", i)
	}
}
