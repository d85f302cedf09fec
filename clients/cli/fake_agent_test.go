package cli_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"connectrpc.com/connect/v2"
	"google.golang.org/protobuf/proto"

	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
	"throwbar.dev/throwbar/gen/go/throwbar/agent/v1/agentv1connect"
)

// conversationIDs are what the fake calls its conversations, in turn: the third shares its beginning with the first.
func conversationIDs() []string {
	return []string{
		"3f2a9c1d-55e6-4000-8000-000000000001", "9ab1c2d3-0000-4000-8000-000000000002", "3f2b0000-0000-4000-8000-000000000003",
	}
}

// fakeAgent is the agent's service in memory: conversations with numbered events, a line of messages that wait, turns
// that run by a script, and watchers by cursor. Pieces carry no number and reach only who watches when they come.
type fakeAgent struct {
	agentv1connect.UnimplementedAgentServiceHandler

	// What a turn does; set before the first call. It ends when its context does.
	onChat func(context.Context, *agentv1.SendRequest, func(*agentv1.Event) error) error
	// cut says whether to break the nth stream after so many frames; guarded by mu.
	cut  func(n, sent int) bool
	down func(call string) error // what a call ends with
	// fails says whether a call about a conversation fails, before anything has come of it.
	fails func(call, conversation string) error
	tools []*agentv1.ToolInfo
	whole map[string]string // answers of tools, by call

	mu      sync.Mutex
	changed chan struct{}                        // guarded by mu; closed at the next change
	all     []*fakeConversation                  // guarded by mu
	sends   []*agentv1.SendRequest               // guarded by mu
	told    map[string]*agentv1.SendResponse     // guarded by mu; by message
	updates []*agentv1.UpdateConversationRequest // guarded by mu
	created []*agentv1.CreateConversationRequest // guarded by mu
	watches []uint64                             // guarded by mu; where each stream began
	closed  bool                                 // guarded by mu
	revoked bool                                 // guarded by mu; the token counts no more
	turns   int                                  // guarded by mu
	inVain  int                                  // guarded by mu; how often a turn was to be stopped where none ran
	running sync.WaitGroup
}

type fakeConversation struct {
	row  *agentv1.Conversation
	log  []*agentv1.Event // stored events and pieces, as they came
	line []*agentv1.QueuedMessage
	turn string
	stop context.CancelFunc
	// What has come of a message and of the reasoning before it: who joins gets each as one piece.
	partial, thoughts string

	followed int
}

func newFakeAgent() *fakeAgent {
	return &fakeAgent{changed: make(chan struct{}), told: map[string]*agentv1.SendResponse{}}
}

func (f *fakeAgent) close() {
	f.mu.Lock()
	f.closed = true
	for _, c := range f.all {
		if c.stop != nil {
			c.stop()
		}
	}
	f.mu.Unlock()
	f.running.Wait()
}

// seed makes a conversation.
func (f *fakeAgent) seed(row *agentv1.Conversation, events ...*agentv1.Event) *agentv1.Conversation {
	f.mu.Lock()
	defer f.mu.Unlock()
	row.ConversationId = conversationIDs()[len(f.all)%3]
	row.WakesLeft, row.CreatedAt = 6, ago(0)
	if row.GetUpdatedAt() == nil {
		row.UpdatedAt = ago(0)
	}
	c := &fakeConversation{row: row}
	f.all = append(f.all, c)
	for _, e := range events {
		f.record(c, e)
	}
	f.handles()
	return row
}

// seedAs makes a conversation with an id of its own.
func (f *fakeAgent) seedAs(id, title string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.all = append(f.all, &fakeConversation{row: &agentv1.Conversation{ConversationId: id, Title: title}})
	f.handles()
}

// handles gives every open conversation the shortest beginning of its id that no other has.
func (f *fakeAgent) handles() {
	for _, c := range f.all {
		n := 4
		for _, other := range f.all {
			for other != c && !other.row.GetArchived() && strings.HasPrefix(other.row.GetConversationId(), c.row.GetConversationId()[:n]) {
				n++
			}
		}
		c.row.Handle = c.row.GetConversationId()[:n]
		if c.row.GetArchived() {
			c.row.Handle = ""
		}
	}
}

// record adds an event, with a number unless it is a piece, and wakes the watchers.
func (f *fakeAgent) record(c *fakeConversation, e *agentv1.Event) {
	e = proto.CloneOf(e)
	e.ConversationId = c.row.GetConversationId()
	if e.GetTurnId() == "" {
		e.TurnId = c.turn
	}
	if e.GetTextDelta() == nil && e.GetReasoningDelta() == nil {
		c.row.Sequence++
		e.Sequence = c.row.GetSequence()
	}
	if e.GetTime() == nil {
		e.Time = ago(0)
	}
	switch {
	case e.GetTextDelta() != nil:
		c.partial += e.GetTextDelta().GetText()
	case e.GetReasoningDelta() != nil:
		c.thoughts += e.GetReasoningDelta().GetText()
	case e.GetMessage().GetRole() == agentv1.Role_ROLE_ASSISTANT, e.GetTurnEnded() != nil, e.GetToolCall() != nil:
		c.partial, c.thoughts = "", ""
	}
	c.log = append(c.log, e)
	close(f.changed)
	f.changed = make(chan struct{})
}

// happens adds an event from the outside.
func (f *fakeAgent) happens(id string, e *agentv1.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c, err := f.find(id)
	if err != nil {
		panic(err)
	}
	f.record(c, e)
}

// revoke takes the token back: who follows is told at once, and who says something too.
func (f *fakeAgent) revoke() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.revoked = true
	close(f.changed)
	f.changed = make(chan struct{})
}

func (f *fakeAgent) find(ref string) (*fakeConversation, error) {
	var found []*fakeConversation
	for _, c := range f.all {
		if c.row.GetConversationId() == ref || !c.row.GetArchived() && len(ref) >= 4 && strings.HasPrefix(c.row.GetConversationId(), ref) {
			found = append(found, c)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return nil, connect.NewError(connect.CodeNotFound, fmt.Sprintf("there is no open conversation %q", ref))
	default:
		return nil, connect.NewError(connect.CodeInvalidArgument, "ambiguous")
	}
}

// sent are the messages so far, each once.
func (f *fakeAgent) sent() []*agentv1.SendRequest {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.sends)
}

func (f *fakeAgent) Send(_ context.Context, req *agentv1.SendRequest) (*agentv1.SendResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.revoked {
		return nil, connect.NewError(connect.CodeUnauthenticated, "the token was revoked")
	}
	if before := f.told[req.GetMessageId()]; before != nil {
		return before, nil
	}
	answer, err := f.sendLocked(req)
	if err == nil {
		f.sends = append(f.sends, req)
		f.told[req.GetMessageId()] = answer
		if f.down != nil {
			err = f.down("Send") // the message is there, its answer is lost
		}
	}
	return answer, err
}

func (f *fakeAgent) sendLocked(req *agentv1.SendRequest) (*agentv1.SendResponse, error) {
	if req.GetConversationId() == "" {
		f.mu.Unlock()
		row := f.seed(&agentv1.Conversation{Title: req.GetMessage()})
		f.mu.Lock()
		req.ConversationId = &row.ConversationId
	}
	c, err := f.find(req.GetConversationId())
	if err != nil {
		return nil, err
	}
	if c.row.GetTitle() == "" {
		c.row.Title = req.GetMessage()
	}
	answer := &agentv1.SendResponse{
		ConversationId: c.row.GetConversationId(), Handle: c.row.GetHandle(), MessageId: req.GetMessageId(), Sequence: c.row.GetSequence(),
	}
	message := &agentv1.QueuedMessage{
		MessageId: req.GetMessageId(), Text: req.GetMessage(), Mode: req.GetMode(), CreatedAt: ago(0),
		Sender: &agentv1.Sender{Speaker: agentv1.Speaker_SPEAKER_PERSON},
	}
	switch {
	case c.turn == "":
		held := c.line
		c.line = nil
		f.begin(c, append(held, message), req)
		answer.Delivery, answer.TurnId = agentv1.Delivery_DELIVERY_STARTED, c.turn
	case req.GetMode() == agentv1.SendMode_SEND_MODE_STEER:
		f.record(c, userMessage(message))
		answer.Delivery, answer.TurnId = agentv1.Delivery_DELIVERY_STEERED, c.turn
	default:
		c.line = append(c.line, message)
		f.record(c, &agentv1.Event{Kind: &agentv1.Event_Queued{Queued: message}, TurnId: "-"})
		answer.Delivery = agentv1.Delivery_DELIVERY_QUEUED
	}
	return answer, nil
}

func userMessage(q *agentv1.QueuedMessage) *agentv1.Event {
	return &agentv1.Event{Kind: &agentv1.Event_Message{Message: &agentv1.Message{
		Role: agentv1.Role_ROLE_USER, Text: q.GetText(), MessageId: q.GetMessageId(), Sender: q.GetSender(),
	}}}
}

// begin begins a turn with messages.
func (f *fakeAgent) begin(c *fakeConversation, messages []*agentv1.QueuedMessage, req *agentv1.SendRequest) {
	f.turns++
	c.turn = fmt.Sprintf("turn-%d", f.turns)
	c.row.Running, c.row.Status = true, agentv1.ConversationStatus_CONVERSATION_STATUS_RUNNING
	f.record(c, &agentv1.Event{Kind: &agentv1.Event_TurnStarted{TurnStarted: &agentv1.TurnStarted{Model: "small-model"}}})
	for _, m := range messages {
		f.record(c, userMessage(m))
	}
	ctx, stop := context.WithCancel(context.Background())
	c.stop = stop
	f.running.Go(func() { f.turnOf(ctx, c, req) })
}

// turnOf plays the script, ends the turn, and begins the next one with what waits.
func (f *fakeAgent) turnOf(ctx context.Context, c *fakeConversation, req *agentv1.SendRequest) {
	reason := agentv1.TurnEnd_TURN_END_FAILED
	if f.onChat == nil {
		<-ctx.Done()
	} else if f.joined(ctx, c) {
		_ = f.onChat(ctx, req, func(e *agentv1.Event) error {
			f.mu.Lock()
			defer f.mu.Unlock()
			switch {
			case ctx.Err() != nil:
				return ctx.Err()
			case e.GetTurnStarted() != nil || e.GetMessage().GetRole() == agentv1.Role_ROLE_USER:
			case e.GetTurnEnded() != nil:
				reason = e.GetTurnEnded().GetReason()
			default:
				f.record(c, e)
			}
			return nil
		})
	}
	if ctx.Err() != nil {
		reason = agentv1.TurnEnd_TURN_END_STOPPED
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.record(c, over(reason))
	c.turn, c.row.Running, c.row.Status = "", false, agentv1.ConversationStatus_CONVERSATION_STATUS_IDLE
	if waits := c.line; len(waits) > 0 && !f.closed && ctx.Err() == nil { // what waits is held where somebody has stopped
		c.line = nil
		f.begin(c, waits, &agentv1.SendRequest{ConversationId: &c.row.ConversationId, Message: waits[0].GetText()})
	}
}

// joined waits until somebody follows a conversation, so that no piece is missed.
func (f *fakeAgent) joined(ctx context.Context, c *fakeConversation) bool {
	for {
		f.mu.Lock()
		followed, changed := c.followed > 0, f.changed
		f.mu.Unlock()
		if followed || ctx.Err() != nil {
			return ctx.Err() == nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
}

// left waits until nobody follows a conversation: the server learns a moment after it that a program has ended, and
// what is streamed until then would be for that one.
func (f *fakeAgent) left(t *testing.T) {
	t.Helper()
	f.until(t, func() bool {
		return !slices.ContainsFunc(f.all, func(c *fakeConversation) bool { return c.followed > 0 })
	})
}

// stopsInVain waits until somebody has asked to stop a turn where none runs: a key and a line come on two ways.
func (f *fakeAgent) stopsInVain(t *testing.T) {
	t.Helper()
	f.until(t, func() bool { return f.inVain > 0 })
}

// until waits until something is so. It holds mu while it looks.
func (f *fakeAgent) until(t *testing.T, holds func() bool) {
	t.Helper()
	for {
		f.mu.Lock()
		so, changed := holds(), f.changed
		f.mu.Unlock()
		if so {
			return
		}
		select {
		case <-changed:
		case <-t.Context().Done():
			t.Fatal(context.Cause(t.Context()))
		}
	}
}

func (f *fakeAgent) StopTurn(_ context.Context, req *agentv1.StopTurnRequest) (*agentv1.StopTurnResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c, err := f.find(req.GetConversationId())
	if err != nil {
		return nil, err
	}
	if c.turn == "" {
		f.inVain++
		close(f.changed)
		f.changed = make(chan struct{})
		return &agentv1.StopTurnResponse{}, nil
	}
	c.stop()
	return &agentv1.StopTurnResponse{Stopped: true}, nil
}

func (f *fakeAgent) WatchConversation(
	ctx context.Context, req *agentv1.WatchConversationRequest, stream agentv1connect.AgentServiceWatchConversationServerStream,
) error {
	f.mu.Lock()
	c, err := f.find(req.GetConversationId())
	if err != nil {
		f.mu.Unlock()
		return err
	}
	f.watches = append(f.watches, req.GetAfter())
	c.followed++
	defer func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		c.followed--
		close(f.changed)
		f.changed = make(chan struct{})
	}()
	close(f.changed)
	f.changed = make(chan struct{})
	n, sent := len(f.watches), 0
	var frames []*agentv1.WatchConversationResponse
	if req.GetAfter() > c.row.GetSequence() {
		frames = append(frames, &agentv1.WatchConversationResponse{Kind: &agentv1.WatchConversationResponse_UnknownPlace{
			UnknownPlace: &agentv1.UnknownPlace{Sequence: c.row.GetSequence()},
		}})
	}
	for _, e := range c.log {
		if e.GetSequence() > req.GetAfter() {
			frames = append(frames, eventFrame(e))
		}
	}
	at := len(c.log)
	if c.thoughts != "" {
		frames = append(frames, eventFrame(&agentv1.Event{
			ConversationId: c.row.GetConversationId(), TurnId: c.turn, Time: ago(0),
			Kind: &agentv1.Event_ReasoningDelta{ReasoningDelta: &agentv1.ReasoningDelta{Text: c.thoughts}},
		}))
	}
	if c.partial != "" {
		frames = append(frames, eventFrame(&agentv1.Event{
			ConversationId: c.row.GetConversationId(), TurnId: c.turn, Time: ago(0),
			Kind: &agentv1.Event_TextDelta{TextDelta: &agentv1.TextDelta{Text: c.partial}},
		}))
	}
	frames = append(frames, &agentv1.WatchConversationResponse{Kind: &agentv1.WatchConversationResponse_CaughtUp{
		CaughtUp: &agentv1.CaughtUp{Sequence: c.row.GetSequence(), Status: c.row.GetStatus()},
	}})
	for {
		changed, idle, revoked := f.changed, c.turn == "", f.revoked
		f.mu.Unlock()
		if revoked {
			return connect.NewError(connect.CodeUnauthenticated, "the token was revoked")
		}
		for _, frame := range frames {
			if f.cut != nil && f.cut(n, sent) {
				return connect.NewError([]connect.Code{connect.CodeUnavailable, connect.CodeCanceled}[n%2], "the connection broke")
			}
			sent++
			if err := stream.Send(frame); err != nil {
				return err
			}
		}
		if req.GetUntilIdle() && idle && len(frames) == 0 {
			return nil
		}
		if !req.GetUntilIdle() || !idle {
			select {
			case <-changed:
			case <-ctx.Done():
				return nil
			}
		}
		f.mu.Lock()
		frames = nil
		for ; at < len(c.log); at++ {
			frames = append(frames, eventFrame(c.log[at]))
		}
	}
}

func eventFrame(e *agentv1.Event) *agentv1.WatchConversationResponse {
	return &agentv1.WatchConversationResponse{Kind: &agentv1.WatchConversationResponse_Event{Event: e}}
}

func (f *fakeAgent) ListQueue(_ context.Context, req *agentv1.ListQueueRequest) (*agentv1.ListQueueResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c, err := f.find(req.GetConversationId())
	if err != nil {
		return nil, err
	}
	return &agentv1.ListQueueResponse{Messages: slices.Clone(c.line)}, nil
}

func (f *fakeAgent) waiting(conversation, message string) (*fakeConversation, int, error) {
	c, err := f.find(conversation)
	if err != nil {
		return nil, 0, err
	}
	at := slices.IndexFunc(c.line, func(q *agentv1.QueuedMessage) bool { return q.GetMessageId() == message })
	if at < 0 {
		return nil, 0, connect.NewError(connect.CodeNotFound, "no such message waits: it may have been read meanwhile")
	}
	return c, at, nil
}

func (f *fakeAgent) EditQueued(_ context.Context, req *agentv1.EditQueuedRequest) (*agentv1.EditQueuedResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c, at, err := f.waiting(req.GetConversationId(), req.GetMessageId())
	if err != nil {
		return nil, err
	}
	q := proto.CloneOf(c.line[at])
	q.Text = req.GetMessage()
	c.line[at] = q
	f.record(c, &agentv1.Event{Kind: &agentv1.Event_QueueEdited{QueueEdited: q}, TurnId: "-"})
	return &agentv1.EditQueuedResponse{Message: q}, nil
}

func (f *fakeAgent) RemoveQueued(_ context.Context, req *agentv1.RemoveQueuedRequest) (*agentv1.RemoveQueuedResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c, at, err := f.waiting(req.GetConversationId(), req.GetMessageId())
	if err != nil {
		return nil, err
	}
	c.line = slices.Delete(c.line, at, at+1)
	f.record(c, &agentv1.Event{TurnId: "-", Kind: &agentv1.Event_QueueRemoved{
		QueueRemoved: &agentv1.QueueRemoved{MessageId: req.GetMessageId()},
	}})
	return &agentv1.RemoveQueuedResponse{}, nil
}

func (f *fakeAgent) CreateConversation(_ context.Context, req *agentv1.CreateConversationRequest) (*agentv1.CreateConversationResponse, error) {
	row := f.seed(&agentv1.Conversation{Title: req.GetTitle(), Settings: req.GetSettings(), Agent: req.GetAgent()})
	f.mu.Lock()
	defer f.mu.Unlock()
	f.created = append(f.created, req)
	return &agentv1.CreateConversationResponse{Conversation: proto.CloneOf(row)}, nil
}

func (f *fakeAgent) GetConversation(_ context.Context, req *agentv1.GetConversationRequest) (*agentv1.GetConversationResponse, error) {
	if f.fails != nil {
		if err := f.fails("GetConversation", req.GetConversationId()); err != nil {
			return nil, err
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	c, err := f.find(req.GetConversationId())
	if err != nil {
		return nil, err
	}
	c.row.Queued = uint32(len(c.line))
	return &agentv1.GetConversationResponse{Conversation: proto.CloneOf(c.row)}, nil
}

func (f *fakeAgent) UpdateConversation(_ context.Context, req *agentv1.UpdateConversationRequest) (*agentv1.UpdateConversationResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c, err := f.find(req.GetConversationId())
	if err != nil {
		return nil, err
	}
	f.updates = append(f.updates, req)
	own := &agentv1.ConversationSettings{}
	if c.row.GetSettings() != nil {
		own = proto.CloneOf(c.row.GetSettings())
	}
	if req.Title != nil {
		c.row.Title = req.GetTitle()
	}
	if req.Prompt != nil {
		own.Prompt = req.GetPrompt()
	}
	if req.GetModel() != nil {
		own.Model = req.GetModel()
	}
	if req.GetGrants() != nil {
		own.Grants = req.GetGrants()
	}
	if req.WorkingDirectory != nil {
		own.WorkingDirectory = req.GetWorkingDirectory()
	}
	if req.GetWakes() != nil {
		own.Wakes = req.GetWakes()
	}
	c.row.Settings = own
	f.record(c, &agentv1.Event{TurnId: "-", Kind: &agentv1.Event_ConversationChanged{ConversationChanged: proto.CloneOf(c.row)}})
	return &agentv1.UpdateConversationResponse{Conversation: proto.CloneOf(c.row)}, nil
}

func (f *fakeAgent) archive(id string, archived bool) (*agentv1.Conversation, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c, err := f.find(id)
	if err != nil {
		return nil, err
	}
	c.row.Archived = archived
	f.handles()
	return proto.CloneOf(c.row), nil
}

func (f *fakeAgent) ArchiveConversation(_ context.Context, req *agentv1.ArchiveConversationRequest) (*agentv1.ArchiveConversationResponse, error) {
	if f.fails != nil {
		if err := f.fails("ArchiveConversation", req.GetConversationId()); err != nil {
			return nil, err
		}
	}
	row, err := f.archive(req.GetConversationId(), true)
	return &agentv1.ArchiveConversationResponse{Conversation: row}, err
}

func (f *fakeAgent) ReopenConversation(_ context.Context, req *agentv1.ReopenConversationRequest) (*agentv1.ReopenConversationResponse, error) {
	row, err := f.archive(req.GetConversationId(), false)
	return &agentv1.ReopenConversationResponse{Conversation: row}, err
}

func (f *fakeAgent) ResolveConversation(_ context.Context, req *agentv1.ResolveConversationRequest) (*agentv1.ResolveConversationResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	answer := &agentv1.ResolveConversationResponse{}
	for _, c := range f.all {
		if !c.row.GetArchived() && len(req.GetReference()) >= 4 && strings.HasPrefix(c.row.GetConversationId(), req.GetReference()) {
			answer.Conversations = append(answer.Conversations, proto.CloneOf(c.row))
		}
	}
	answer.Resolved = len(answer.GetConversations()) == 1
	return answer, nil
}

// ListConversations has two to a page, to have pages.
func (f *fakeAgent) ListConversations(_ context.Context, req *agentv1.ListConversationsRequest) (*agentv1.ListConversationsResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	answer := &agentv1.ListConversationsResponse{}
	from, _ := strconv.Atoi(req.GetPageToken())
	for i, c := range f.all {
		fits := req.GetFilter() == agentv1.ConversationFilter_CONVERSATION_FILTER_UNSPECIFIED ||
			(req.GetFilter() == agentv1.ConversationFilter_CONVERSATION_FILTER_ARCHIVED) == c.row.GetArchived()
		if i < from || !fits {
			continue
		}
		if len(answer.GetConversations()) == min(int(req.GetPageSize()), 2) {
			answer.NextPageToken = strconv.Itoa(i)
			break
		}
		answer.Conversations = append(answer.Conversations, proto.CloneOf(c.row))
	}
	return answer, nil
}

func (f *fakeAgent) GetToolOutput(_ context.Context, req *agentv1.GetToolOutputRequest) (*agentv1.GetToolOutputResponse, error) {
	text, ok := f.whole[req.GetCallId()]
	if !ok {
		return nil, connect.NewError(connect.CodeNotFound, "there is no such call")
	}
	const piece = 7 // bytes of a page
	from := int(req.GetOffset())
	to := min(from+piece, len(text))
	answer := &agentv1.GetToolOutputResponse{Text: text[from:to], WholeBytes: uint64(len(text))}
	if to < len(text) {
		answer.NextOffset = uint64(to)
	}
	return answer, nil
}

func (f *fakeAgent) ListTools(context.Context, *agentv1.ListToolsRequest) (*agentv1.ListToolsResponse, error) {
	return &agentv1.ListToolsResponse{Tools: f.tools}, nil
}

func (f *fakeAgent) ListModels(context.Context, *agentv1.ListModelsRequest) (*agentv1.ListModelsResponse, error) {
	return &agentv1.ListModelsResponse{Models: []*agentv1.ModelInfo{
		{Name: "small", Model: "small-model", Host: "models.example.com", ContextTokens: 128_000, Images: true},
		{Name: "big", Model: "big-model-2", Host: "localhost"},
	}}, nil
}

func (f *fakeAgent) ListAgents(context.Context, *agentv1.ListAgentsRequest) (*agentv1.ListAgentsResponse, error) {
	return &agentv1.ListAgentsResponse{Agents: []*agentv1.AgentInfo{{
		Name: "reader", Description: "reads \x1b[2Jpages", Model: &agentv1.ModelChoice{Models: []string{"small"}},
		Grants: &agentv1.Grants{Only: []string{"tabs"}, Denied: []string{"closeTabs"}},
	}}}, nil
}
