package storage

import (
	"encoding/json"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"

	"throwbar.dev/throwbar/agent/conversation"
	"throwbar.dev/throwbar/agent/model"
	"throwbar.dev/throwbar/agent/turn"
	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
	"throwbar.dev/throwbar/store/db"
)

func fromRows(all []conversation.Conversation, rows []db.Conversation) ([]conversation.Conversation, error) {
	for _, row := range rows {
		c, err := fromRow(row)
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}

func fromRow(row db.Conversation) (conversation.Conversation, error) {
	settings := &agentv1.ConversationSettings{}
	if err := proto.Unmarshal(row.Settings, settings); err != nil {
		return conversation.Conversation{}, fmt.Errorf("decode settings of %s: %w", row.ID, err)
	}
	return conversation.Conversation{
		ID: row.ID, Workspace: row.Workspace, Title: row.Title, Open: row.Open, CreatedAt: fromMillis(row.CreatedAt),
		UpdatedAt: fromMillis(row.UpdatedAt), Settings: settings, Parent: row.ParentID, Root: row.RootID, Agent: row.Agent,
		Wakes: int(row.Wakes), Holds: conversation.Holds(row.Holds), LastEnd: agentv1.TurnEnd(row.LastEnd),
		Sequence: uint64(row.Sequence),
	}, nil
}

func fromTurn(row db.Turn) (conversation.Turn, error) {
	choice, err := decodeChoice(row.Choice)
	if err != nil {
		return conversation.Turn{}, fmt.Errorf("turn %s: %w", row.ID, err)
	}
	return conversation.Turn{
		ID: row.ID, Conversation: row.ConversationID, State: conversation.TurnState(row.State), Durable: row.Durable,
		Stopping: row.Stopping, Speaker: agentv1.Speaker(row.Speaker), Chain: row.ChainID, Choice: choice,
		Sequence: uint64(row.Sequence), Spent: turn.Spent{Rounds: int(row.Rounds), Tokens: row.Tokens, Millis: row.Millis},
		End: agentv1.TurnEnd(row.Reason), StartedAt: fromMillis(row.StartedAt), EndedAt: fromMillis(row.EndedAt),
	}, nil
}

func fromQueued(row db.Queued) (conversation.Letter, error) {
	choice, err := decodeChoice(row.Choice)
	if err != nil {
		return conversation.Letter{}, fmt.Errorf("message %s: %w", row.ID, err)
	}
	sender := &agentv1.Sender{}
	if err := proto.Unmarshal(row.Sender, sender); err != nil {
		return conversation.Letter{}, fmt.Errorf("decode sender of message %s: %w", row.ID, err)
	}
	return conversation.Letter{
		Workspace: row.Workspace, ID: row.ID, Conversation: row.ConversationID, N: row.N,
		State: conversation.LetterState(row.State), Mode: agentv1.SendMode(row.Mode), Sender: sender, Chain: row.ChainID,
		Choice: choice, Text: string(row.Body), Delivery: agentv1.Delivery(row.Delivery), Turn: row.TurnID,
		Sequence: uint64(row.Sequence), CreatedAt: fromMillis(row.CreatedAt),
	}, nil
}

func fromChain(row db.Chain) conversation.Chain {
	return conversation.Chain{
		ID: row.ID, Workspace: row.Workspace, Root: row.RootID, Authority: row.Authority, Left: int(row.WakesLeft),
		CreatedAt: fromMillis(row.CreatedAt),
	}
}

func decodeChoice(body []byte) (*agentv1.ModelChoice, error) {
	if len(body) == 0 {
		return nil, nil
	}
	choice := &agentv1.ModelChoice{}
	if err := proto.Unmarshal(body, choice); err != nil {
		return nil, fmt.Errorf("decode choice of a model: %w", err)
	}
	return choice, nil
}

// fromMillis is a time as it is stored; 0 is none.
func fromMillis(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.UnixMilli(n).UTC()
}

// millis is the reverse of fromMillis.
func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// message is the form in which a message of the history is stored.
type message struct {
	Role      model.Role `json:"role"`
	Text      string     `json:"text,omitempty"`
	Images    []string   `json:"images,omitempty"`
	Reasoning string     `json:"reasoning,omitempty"`
	Calls     []call     `json:"calls,omitempty"`
	Profile   string     `json:"profile,omitempty"`
	CallID    string     `json:"call_id,omitempty"`
}

type call struct {
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Arguments string          `json:"arguments"`
	Extra     json.RawMessage `json:"extra,omitempty"`
}

func encodeMessage(m model.Message) ([]byte, error) {
	stored := message{Role: m.Role, Text: m.Text, Images: m.Images, Reasoning: m.Reasoning, Profile: m.Profile, CallID: m.CallID}
	for _, c := range m.Calls {
		stored.Calls = append(stored.Calls, call(c))
	}
	body, err := json.Marshal(stored)
	if err != nil {
		return nil, fmt.Errorf("encode message: %w", err)
	}
	return body, nil
}

func decodeMessage(body []byte) (model.Message, error) {
	var stored message
	if err := json.Unmarshal(body, &stored); err != nil {
		return model.Message{}, fmt.Errorf("decode message: %w", err)
	}
	m := model.Message{
		Role: stored.Role, Text: stored.Text, Images: stored.Images, Reasoning: stored.Reasoning, Profile: stored.Profile, CallID: stored.CallID,
	}
	for _, c := range stored.Calls {
		m.Calls = append(m.Calls, model.Call(c))
	}
	return m, nil
}
