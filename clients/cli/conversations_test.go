package cli_test

import (
	"time"

	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
)

// withConversations has three: one of a person, one that its agent started, and one that asks.
func withConversations(f *fake) {
	first := f.seed(&agentv1.Conversation{
		Title: "Tabs of the morning", Running: true, Status: agentv1.ConversationStatus_CONVERSATION_STATUS_RUNNING, UpdatedAt: ago(time.Minute),
	})
	f.seed(&agentv1.Conversation{
		Title: "Read \x1b[2J the news", ParentId: first.GetConversationId(), Agent: "reader", UpdatedAt: ago(2 * time.Minute),
		Status: agentv1.ConversationStatus_CONVERSATION_STATUS_WAITING,
	})
	f.seed(&agentv1.Conversation{
		Title: "Trip", UpdatedAt: ago(time.Hour), Status: agentv1.ConversationStatus_CONVERSATION_STATUS_FAILED,
		Settings: &agentv1.ConversationSettings{Prompt: "Be brief.\nAlways.", Grants: &agentv1.Grants{Only: []string{"tabs"}}},
	})
	f.tools = []*agentv1.ToolInfo{
		{Name: "closeTabs", Group: "tabs", Summary: "Close tabs.", Available: true},
		{Name: "sendToConversation", Group: "agent", Summary: "Send a message to another conversation's agent.", Granted: true},
	}
}
