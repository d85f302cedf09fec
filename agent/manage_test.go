package agent_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"

	"throwbar.dev/throwbar/agent/conversation"
	"throwbar.dev/throwbar/agent/turn"
	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
)

// alike makes ids that begin with the same four characters.
type alike struct{}

func (alike) Read(p []byte) (int, error) {
	n, err := rand.Read(p)
	if len(p) == 16 {
		p[0], p[1] = 0xab, 0xcd
	}
	return n, err
}

// R146–R148, R150–R156: a handle is derived from the open conversations at that moment: it grows when a sibling opens and
// shrinks when that closes. What is shown always resolves, whatever its case and what is around it.
func TestHandlesGrowAndShrink(t *testing.T) {
	t.Parallel()
	s := newShelf(t, echo)
	s.check(s.stop())
	s.random = alike{}
	s.start()
	a, err := s.Create(t.Context(), "w", "a", nil, "")
	if s.check(err); a.Handle != "abcd" {
		t.Errorf("alone: %q", a.Handle)
	}
	b, err := s.Create(t.Context(), "w", "b", nil, "")
	if s.check(err); len(b.Handle) < 5 || len(s.get(a.ID).Handle) != len(b.Handle) || strings.HasPrefix(a.ID, b.Handle) {
		t.Errorf("with a sibling: %q, %q", s.get(a.ID).Handle, b.Handle)
	}
	resolve := func(ref string) (n int, one bool) {
		found, one, err := s.Matches(t.Context(), "w", ref)
		s.check(err)
		return len(found), one
	}
	for _, row := range []conversation.Row{a, b} {
		shown := s.get(row.ID)
		if len(shown.Handle) < conversation.MinHandle || !strings.HasPrefix(row.ID, shown.Handle) {
			t.Errorf("handle %q of %s", shown.Handle, row.ID)
		}
		for _, ref := range []string{shown.Handle, " " + shown.Handle + "\n", strings.ToUpper(shown.Handle), row.ID, "#" + shown.Handle + "%"} {
			if n, one := resolve(ref); n != 1 || !one {
				t.Errorf("%q: %d", ref, n)
			}
		}
	}
	if n, one := resolve("abcd"); n != 2 || one {
		t.Errorf("both: %d", n)
	}
	_, err = s.Deliver(t.Context(), conversation.Delivery{Workspace: "w", To: "abcd", Text: "x"})
	expectError(t, err, conversation.Ambiguous)
	for _, ref := range []string{"", "ab", "ab%d", "%%%%%%", "zzzz"} {
		if n, one := resolve(ref); n != 0 || one {
			t.Errorf("%q: %d", ref, n)
		}
	}
	archived, err := s.Archive(t.Context(), "w", a.ID)
	s.check(err)
	if n, one := resolve("abcd"); n != 1 || !one || s.get(b.ID).Handle != "abcd" {
		t.Errorf("alone again: %d, %q", n, s.get(b.ID).Handle)
	}
	if n, _ := resolve(a.ID); n != 0 || archived.Handle != "" || archived.Open {
		t.Errorf("archived: %+v, found %d", archived, n)
	}
	if got := s.get(a.ID); got.Open { // by its whole id
		t.Errorf("%+v", got)
	}
	reopened, err := s.Reopen(t.Context(), "w", a.ID)
	if s.check(err); len(reopened.Handle) < 5 || s.get(b.ID).Handle == "abcd" {
		t.Errorf("%+v", reopened)
	}
}

func filtered(t *testing.T, s *shelf, filter agentv1.ConversationFilter) []string {
	t.Helper()
	rows, err := s.List(t.Context(), "w", filter, nil, 100)
	s.check(err)
	var titles []string
	for _, row := range rows {
		titles = append(titles, row.Title)
	}
	slices.Sort(titles)
	return titles
}

func TestArchivedConversationsAreListedApart(t *testing.T) {
	t.Parallel()
	g := newGated()
	s := newShelf(t, g.act)
	row, err := s.Create(t.Context(), "w", "open", nil, "")
	s.check(err)
	closed := s.say("", "closed")
	<-g.begun
	s.say(closed.Conversation.ID, "waits")
	if row, err = s.Archive(t.Context(), "w", closed.Handle); err != nil || row.Status != agentv1.ConversationStatus_CONVERSATION_STATUS_IDLE || row.Queued != 1 {
		t.Fatalf("%+v, %v", row, err)
	}
	for filter, want := range map[agentv1.ConversationFilter]string{0: "[closed open]", 1: "[open]", 2: "[closed]"} {
		if got := fmt.Sprint(filtered(t, s, filter)); got != want {
			t.Errorf("%v: %s", filter, got)
		}
	}
	events := s.events(row.ID)
	if got := events[len(events)-1]; got.GetTurnEnded().GetReason() != agentv1.TurnEnd_TURN_END_STOPPED && notices(events) == nil {
		t.Errorf("%v", events)
	}
	// What waited is read with the first message after it was opened again.
	_, err = s.Reopen(t.Context(), "w", row.ID)
	s.check(err)
	s.say(row.ID, "and now?")
	<-g.begun
	g.release <- yes
	if got := fmt.Sprint(started(s.events(row.ID))); got != "[[closed] [waits and now?]]" {
		t.Errorf("turns %s", got)
	}
}

// R189: a change holds from the next step of a turn that runs.
func TestAChangeHoldsFromTheNextStep(t *testing.T) {
	t.Parallel()
	g := newGated()
	s := newShelf(t, g.act)
	told, err := s.Deliver(t.Context(), conversation.Delivery{
		Workspace: "w", Text: "one", Model: &agentv1.ModelChoice{Models: []string{"second", "first"}, Effort: "high"},
	})
	s.check(err)
	<-g.begun
	names := func(step turn.Step) (all []string) {
		for _, c := range step.Choices {
			all = append(all, c.Name)
		}
		return all
	}
	g.release <- func(ctx context.Context, task turn.Task) error {
		before, err := task.Journal.Next(ctx)
		s.check(err)
		prompt, dir, title := "be brief", "/srv", "new\x00 name"
		_, err = s.Update(ctx, "w", told.Handle, conversation.Patch{
			Prompt: &prompt, WorkingDirectory: &dir, Title: &title, Grants: &agentv1.Grants{Denied: []string{"closeTabs"}},
			Model: &agentv1.ModelChoice{Models: []string{"first"}, Effort: "low"},
		})
		s.check(err)
		after, err := task.Journal.Next(ctx)
		s.check(err)
		if before.Prompt != "" || !strings.HasPrefix(after.Prompt, "be brief") || !strings.Contains(after.Prompt, `"/srv"`) ||
			!slices.Equal(after.Access.Denied, []string{"closeTabs"}) {
			t.Errorf("%+v, then %+v", before, after)
		}
		if got := fmt.Sprint(names(before), before.Effort, names(after), after.Effort); got != "[second first]high[second first]high" {
			t.Errorf("the turn's own choice does not hold: %s", got)
		}
		return yes(ctx, task)
	}
	events := s.events(told.Handle)
	if begun := events[0].GetTurnStarted(); begun.GetModel() != "second" || begun.GetEffort() != "high" {
		t.Errorf("%v", begun)
	}
	at := slices.IndexFunc(events, func(e *agentv1.Event) bool { return e.GetConversationChanged() != nil })
	if c := events[at].GetConversationChanged(); c.GetTitle() != "new name" || c.GetSettings().GetPrompt() != "be brief" || c.GetHandle() != told.Handle {
		t.Errorf("%v", c)
	}
	s.restart()
	s.say(told.Handle, "two")
	<-g.begun
	g.release <- func(ctx context.Context, task turn.Task) error {
		step, err := task.Journal.Next(ctx)
		if got := fmt.Sprint(names(step), step.Effort, err); got != "[first]low<nil>" {
			t.Errorf("%s", got)
		}
		return yes(ctx, task)
	}
	s.events(told.Handle)
	_, err = s.Update(t.Context(), "w", told.Handle, conversation.Patch{Title: proto.String("\u200b")})
	expectError(t, err, conversation.Invalid)
	_, err = s.Update(t.Context(), "w", told.Handle, conversation.Patch{Model: &agentv1.ModelChoice{Models: []string{"gone"}}})
	expectError(t, err, conversation.Invalid)
	_, err = s.Create(t.Context(), "w", "x", nil, "nobody")
	expectError(t, err, conversation.Invalid)
}

func TestWhatWaitsCanBeChangedAndTakenBack(t *testing.T) {
	t.Parallel()
	g := newGated()
	s := newShelf(t, g.act)
	to := s.say("", "one").Conversation.ID
	running := <-g.begun
	two, three := s.say(to, "two"), s.say(to, "three")
	other := s.say("", "another")
	<-g.begun
	edited, err := s.Edit(t.Context(), "w", to, two.MessageID, "two, better")
	if err != nil || edited.Text != "two, better" {
		t.Errorf("%+v, %v", edited, err)
	}
	s.check(s.Remove(t.Context(), "w", to, three.MessageID))
	s.check(s.Remove(t.Context(), "w", to, three.MessageID))
	_, err = s.Edit(t.Context(), "w", to, three.MessageID, "x")
	expectError(t, err, conversation.Late)
	_, err = s.Edit(t.Context(), "w", to, "nothing", "x")
	expectError(t, err, conversation.NotFound)
	expectError(t, s.Remove(t.Context(), "w", other.Conversation.ID, two.MessageID), conversation.NotFound)
	for _, nothing := range []string{"", " ", "\x00", "\t\x00\n"} { // that is nothing, though it has characters, once it is made fit for a model
		_, err = s.Edit(t.Context(), "w", to, two.MessageID, nothing)
		expectError(t, err, conversation.Invalid)
		_, err = s.Deliver(t.Context(), conversation.Delivery{Workspace: "w", To: to, Text: nothing, MessageID: id()})
		expectError(t, err, conversation.Invalid)
	}
	for range 2 {
		g.release <- func(ctx context.Context, task turn.Task) error {
			if task.Conversation == other.Conversation.ID {
				told, err := agentSays(ctx, s.Book, task, to, "from an agent", id())
				s.check(err)
				_, err = s.Edit(ctx, "w", to, told.MessageID, "forged")
				expectError(t, err, conversation.Invalid)
				s.check(s.Remove(ctx, "w", to, told.MessageID))
				return yes(ctx, task)
			}
			s.events(other.Conversation.ID)
			return yes(ctx, task)
		}
	}
	task := <-g.begun
	if task.Conversation != to || task.TurnID == running.TurnID || last(task) != "two, better" {
		t.Errorf("%+v", task)
	}
	expectError(t, s.Remove(t.Context(), "w", to, two.MessageID), conversation.Late)
	g.release <- yes
	if got := fmt.Sprint(started(s.events(to))); got != "[[one] [two, better]]" {
		t.Errorf("turns %s", got)
	}
}

// R168–R171: a snapshot is the text of the last turn that was completed with one, and waits for nothing.
func TestASnapshotIsTheLastAnswer(t *testing.T) {
	t.Parallel()
	g := newGated()
	s := newShelf(t, g.act)
	to := s.say("", "one").Conversation.ID
	snap := func() string {
		got, err := s.Snapshot(t.Context(), "w", to)
		s.check(err)
		return fmt.Sprint(got.Status, got.Answered, got.Answer)
	}
	<-g.begun
	if got := snap(); got != "CONVERSATION_STATUS_RUNNING false" {
		t.Errorf("first turn: %s", got)
	}
	g.release <- func(ctx context.Context, task turn.Task) error { return answers(ctx, task, "first answer") }
	s.events(to)
	s.say(to, "two")
	<-g.begun
	if got := snap(); got != "CONVERSATION_STATUS_RUNNING truefirst answer" {
		t.Errorf("second turn: %s", got)
	}
	g.release <- func(ctx context.Context, task turn.Task) error {
		return ended(ctx, task, agentv1.TurnEnd_TURN_END_FAILED)
	}
	s.events(to)
	s.restart()
	if got := snap(); got != "CONVERSATION_STATUS_FAILED truefirst answer" {
		t.Errorf("a turn that failed: %s", got)
	}
}

// What a turn waits for is said by its status, also over a restart.
func TestATurnThatWaitsForAPersonSaysSo(t *testing.T) {
	t.Parallel()
	g := newGated()
	s := newShelf(t, g.act)
	asked := func(ctx context.Context, task turn.Task) error {
		for range 2 { // once more after the restart
			err := task.Journal.Record(ctx, turn.Entry{Events: []*agentv1.Event{{Kind: &agentv1.Event_ApprovalRequested{
				ApprovalRequested: &agentv1.ApprovalRequested{ApprovalId: "a"},
			}}}})
			if err != nil {
				return err
			}
		}
		<-ctx.Done()
		return ended(ctx, task, agentv1.TurnEnd_TURN_END_STOPPED)
	}
	to := s.say("", "one").Conversation.ID
	<-g.begun
	w, err := s.Watch(t.Context(), "w", to, 0, false)
	s.check(err)
	g.release <- asked
	for {
		res, err := w.Next(t.Context())
		s.check(err)
		if res.GetEvent().GetApprovalRequested() != nil {
			break
		}
	}
	w.Close()
	waiting := agentv1.ConversationStatus_CONVERSATION_STATUS_WAITING
	if got := s.get(to).Status; got != waiting {
		t.Errorf("%v", got)
	}
	s.restart()
	if got := s.get(to).Status; got != waiting {
		t.Errorf("after a restart: %v", got)
	}
	<-g.begun
	g.release <- asked
	_, err = s.Stop(t.Context(), "w", to)
	s.check(err)
	n := 0
	for _, e := range s.events(to) {
		if e.GetApprovalRequested() != nil {
			n++
		}
	}
	if got := s.get(to).Status; n != 1 || got != agentv1.ConversationStatus_CONVERSATION_STATUS_IDLE {
		t.Errorf("asked %d times, %v", n, got)
	}
}

func TestTheWholeOutputComesInPieces(t *testing.T) {
	t.Parallel()
	whole := strings.Repeat("é", conversation.MaxOutputPiece) + "x"
	s := newShelf(t, func(ctx context.Context, _ *conversation.Book, task turn.Task) error {
		err := task.Journal.Record(ctx, turn.Entry{Outputs: []turn.Output{{CallID: "long", Text: whole}}, Events: []*agentv1.Event{
			{Kind: &agentv1.Event_ToolResult{ToolResult: &agentv1.ToolResult{CallId: "long", Content: "é…"}}},
			{Kind: &agentv1.Event_ToolResult{ToolResult: &agentv1.ToolResult{CallId: "short", Content: "all"}}},
		}})
		if err != nil {
			return err
		}
		return answers(ctx, task, "yes")
	})
	to := s.say("", "one").Conversation.ID
	s.events(to)
	got, offset, pieces := "", uint64(0), 0
	for {
		piece, bytes, next, err := s.Output(t.Context(), "w", to, "long", offset)
		s.check(err)
		if !utf8.ValidString(piece) || len(piece) > conversation.MaxOutputPiece || bytes != uint64(len(whole)) {
			t.Fatalf("a piece of %d bytes, of %d", len(piece), bytes)
		}
		got, pieces = got+piece, pieces+1
		if offset = next; next == 0 {
			break
		}
	}
	if got != whole || pieces != 3 {
		t.Errorf("%d bytes in %d pieces", len(got), pieces)
	}
	if piece, _, next, err := s.Output(t.Context(), "w", to, "short", 1); piece != "ll" || next != 0 || err != nil {
		t.Errorf("%q, %d, %v", piece, next, err)
	}
	_, _, _, err := s.Output(t.Context(), "w", to, "none", 0)
	expectError(t, err, conversation.NotFound)
	_, _, _, err = s.Output(t.Context(), "w", to, "short", 4)
	expectError(t, err, conversation.Invalid)
}
