package conversation

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
)

func TestHandlesAreTheShortestThatFit(t *testing.T) {
	t.Parallel()
	ids := []string{
		"11111111-0000-4000-8000-000000000000", "1111222f-0000-4000-8000-000000000000", "11112230-0000-4000-8000-000000000000",
		"abcd1234-0000-4000-8000-000000000000", "abcd1234-1000-4000-8000-000000000000", "ffff0000-0000-4000-8000-000000000000",
	}
	short := handles(ids)
	for id, want := range map[string]string{
		ids[0]: "11111", ids[1]: "1111222", ids[2]: "1111223", ids[3]: "abcd1234-0", ids[4]: "abcd1234-1", ids[5]: "ffff",
	} {
		if short[id] != want {
			t.Errorf("%s: %q, want %q", id, short[id], want)
		}
	}
	if got := handles(ids[3:4])[ids[3]]; got != "abcd" {
		t.Errorf("alone: %q", got)
	}
	if got := handles([]string{"abcd", "abcd"})["abcd"]; got != "abcd" {
		t.Errorf("equal ids: %q", got)
	}
}

// rows is a store of conversations only.
type rows struct {
	Lists
	all []Conversation
}

func (r rows) Find(_ context.Context, workspace, prefix string) ([]Conversation, error) {
	var found []Conversation
	for _, c := range r.all {
		if c.Workspace == workspace && c.Open && strings.HasPrefix(c.ID, prefix) {
			found = append(found, c)
		}
	}
	return found, nil
}

func TestResolutionIsOneNoneOrSeveral(t *testing.T) {
	t.Parallel()
	at := func(n int64) time.Time { return time.Unix(n, 0) }
	b := New(Config{Lists: rows{all: []Conversation{
		{ID: "abcd1111-0000", Workspace: "w", Open: true, Title: "old", UpdatedAt: at(1)},
		{ID: "abcd2222-0000", Workspace: "w", Open: true, Title: "new", UpdatedAt: at(2)},
		{ID: "abcd3333-0000", Workspace: "w", UpdatedAt: at(3)}, // archived
		{ID: "ef012345-0000", Workspace: "w", Open: true},
		{ID: "ef012345-0000-1", Workspace: "other", Open: true},
	}}})
	for ref, want := range map[string][]string{
		"abcd1": {"abcd1111-0000"}, "ABCD2": {"abcd2222-0000"}, "ef01": {"ef012345-0000"}, "ef012345-0000": {"ef012345-0000"},
		"abcd": {"abcd2222-0000", "abcd1111-0000"}, "abcd3": nil, "abc": nil, "ab%d": nil, "": nil, "zzzz": nil, "a_b_c_d_1": {"abcd1111-0000"},
	} {
		found, err := b.Resolve(t.Context(), "w", ref)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		if found.One != nil {
			got = append(got, found.One.ID)
		}
		for _, c := range found.Several {
			got = append(got, c.ID)
		}
		if !slices.Equal(got, want) || len(want) == 1 && found.One == nil {
			t.Errorf("%q: %q, want %q", ref, got, want)
		}
	}
	_, err := b.named(t.Context(), "w", "abcd")
	var known *Error
	if !errors.As(err, &known) || known.Code != Ambiguous || known.Message != `"abcd" fits 2 conversations: abcd2 (new), abcd1 (old)` {
		t.Errorf("ambiguous: %v", err)
	}
}

func TestTitlesAreOneShortLine(t *testing.T) {
	t.Parallel()
	for message, want := range map[string]string{
		"hello": "hello", "  two\nlines": "two", "a\tb\u202ec\x00d": "a b c d",
		strings.Repeat("word ", 20): "word word word word word word word word word word word word…",
		strings.Repeat("é", 70):     strings.Repeat("é", 60) + "…",
		"\u200b":                    "",
	} {
		if got := title(message); got != want {
			t.Errorf("%q: %q, want %q", message, got, want)
		}
	}
}

func piece(text string) *agentv1.Event {
	return &agentv1.Event{Kind: &agentv1.Event_TextDelta{TextDelta: &agentv1.TextDelta{Text: text}}}
}

func TestAFeedJoinsPiecesThatWait(t *testing.T) {
	t.Parallel()
	f := newFeed()
	first := piece("a")
	f.push(first, piece("b"))
	f.push(&agentv1.Event{Sequence: 1}, piece("c"))
	f.push(piece("d"))
	f.cut(io.EOF)
	var got []string
	for {
		event, err := f.next(t.Context(), nil)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, event.GetTextDelta().GetText())
	}
	if !slices.Equal(got, []string{"ab", "", "cd"}) || first.GetTextDelta().GetText() != "a" {
		t.Errorf("%q", got)
	}
}

func TestAFeedThatNobodyReadsEnds(t *testing.T) {
	t.Parallel()
	f := newFeed()
	for range maxPending + 1 {
		f.push(&agentv1.Event{Sequence: 1})
	}
	_, err := f.next(t.Context(), nil)
	var known *Error
	if !errors.As(err, &known) || known.Code != Slow {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := newFeed().next(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// torn is a store in which a turn runs that cannot be taken up yet: its events cannot be read.
type torn struct {
	Store
	Lists
	reads int
}

func (s *torn) State(_ context.Context, workspace, id string) (State, error) {
	s.reads++
	return State{
		Conversation: Conversation{ID: id, Workspace: workspace, Open: true}, Turns: true,
		Running: &Turn{ID: "turn", Conversation: id, State: TurnRunning, Durable: true},
	}, nil
}

func (*torn) Events(context.Context, string, uint64, int) ([]*agentv1.Event, error) {
	return nil, errors.New("the disk is away")
}

// A conversation whose turn could not be taken up is not taken for one at rest: the next look tries again.
func TestWhatCannotBeTakenUpIsLookedForAgain(t *testing.T) {
	t.Parallel()
	store := &torn{}
	b := New(Config{Store: store, Lists: store})
	used := b.use(Ref{"w", "x"}) // somebody uses it all the time
	defer b.leave(used)
	for n := 1; n <= 2; n++ {
		err := b.locked(t.Context(), used.ref, func(*thread) error { return nil })
		if err == nil || store.reads != n {
			t.Errorf("look %d: %v, read %d times", n, err, store.reads)
		}
	}
}
