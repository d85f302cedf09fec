package conversation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// MinHandle is the length of the shortest handle. What is shown and what is resolved use the same.
const MinHandle = 4

// handles gives each id, of a sorted list, the shortest prefix that no other one has.
func handles(ids []string) map[string]string {
	out := make(map[string]string, len(ids))
	for i, id := range ids {
		n := MinHandle
		if i > 0 {
			n = max(n, shared(id, ids[i-1])+1)
		}
		if i+1 < len(ids) {
			n = max(n, shared(id, ids[i+1])+1)
		}
		if n < len(id) && id[n-1] == '-' { // nobody ends a word with a dash
			n++
		}
		out[id] = id[:min(n, len(id))]
	}
	return out
}

// shared is how many characters two ids begin with alike.
func shared(a, b string) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// clean is what may be part of an id, in lower case.
func clean(ref string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r >= 'a' && r <= 'f' || r == '-' {
			return r
		}
		return -1
	}, strings.ToLower(ref))
}

// Resolution is what a reference means: one conversation, none, or several.
type Resolution struct {
	One     *Conversation
	Several []Conversation // the last used first
}

// Resolve finds the open conversation that an id or the beginning of one means.
func (b *Book) Resolve(ctx context.Context, workspace, ref string) (Resolution, error) {
	prefix := clean(ref)
	if len(prefix) < MinHandle {
		return Resolution{}, nil
	}
	found, err := b.config.Lists.Find(ctx, workspace, prefix)
	if err != nil {
		return Resolution{}, fmt.Errorf("find conversations: %w", err)
	}
	for i := range found {
		if len(found) == 1 || found[i].ID == prefix {
			return Resolution{One: &found[i]}, nil
		}
	}
	slices.SortStableFunc(found, func(a, b Conversation) int { return b.UpdatedAt.Compare(a.UpdatedAt) })
	return Resolution{Several: found}, nil
}

// named is the conversation that a reference means, or an error that says what to give instead.
func (b *Book) named(ctx context.Context, workspace, ref string) (Conversation, error) {
	found, err := b.Resolve(ctx, workspace, ref)
	switch {
	case err != nil:
		return Conversation{}, err
	case found.One != nil:
		return *found.One, nil
	case len(found.Several) == 0:
		return Conversation{}, errorf(NotFound, "there is no open conversation %q", shown(ref))
	}
	const most = 5
	ids := make([]string, len(found.Several))
	for i, c := range found.Several {
		ids[i] = c.ID
	}
	slices.Sort(ids)
	short := handles(ids)
	var names []string
	for i, c := range found.Several {
		if i == most {
			names = append(names, "…")
			break
		}
		names = append(names, fmt.Sprintf("%s (%s)", short[c.ID], c.Title))
	}
	return Conversation{}, errorf(Ambiguous, "%q fits %d conversations: %s", shown(ref), len(found.Several), strings.Join(names, ", "))
}

func shown(ref string) string {
	const most = 64
	if len(ref) > most {
		return ref[:most]
	}
	return ref
}

// handle is the handle of a conversation as it is at this moment; empty if it is not open.
func (b *Book) handle(ctx context.Context, c Conversation) (string, error) {
	if !c.Open {
		return "", nil
	}
	ids, err := b.config.Lists.Neighbours(ctx, c.Workspace, c.ID)
	if err != nil {
		return "", fmt.Errorf("find conversations: %w", err)
	}
	ids = append(ids, c.ID)
	slices.Sort(ids)
	return handles(ids)[c.ID], nil
}

// readable is a conversation by its handle, or by its whole id if it is not open any more.
func (b *Book) readable(ctx context.Context, workspace, ref string) (Conversation, error) {
	c, err := b.named(ctx, workspace, ref)
	var known *Error
	if !errors.As(err, &known) || known.Code != NotFound {
		return c, err
	}
	s, stateErr := b.config.Store.State(ctx, workspace, strings.ToLower(ref))
	if errors.Is(stateErr, ErrNoRow) {
		return Conversation{}, err
	}
	if stateErr != nil {
		return Conversation{}, fmt.Errorf("read conversation: %w", stateErr)
	}
	return s.Conversation, nil
}
