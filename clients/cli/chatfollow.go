package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	throwbar "throwbar.dev/throwbar/clients/go"
	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
)

// patience is how often in a row a stream is opened in vain before whoever has no person in front of it gives up: about
// three minutes.
const patience = 14

// news is one thing that a follower of a conversation tells.
type news struct {
	of    string // the conversation
	event *agentv1.Event
	// caught says that all that was stored has come, and what the conversation does.
	caught *agentv1.CaughtUp
	// lost says that the stream broke and could not be opened at once; back that it is there again; gap that pieces may be
	// missing since.
	lost error
	back bool
	gap  bool
	// reset says that the place is none of this conversation's, as after a restored backup.
	reset bool
	end   error // the follower ends
}

// follower follows a conversation over streams that may break: what is stored comes once and in order.
type follower struct {
	server  *throwbar.Client
	id      string
	after   uint64 // number of the last event that was told
	patient bool   // never gives up
	// untilIdle ends when all that is stored was told and no turn runs.
	untilIdle bool
	tell      func(news) bool
}

// run follows until the context ends, or the server says that there is nothing to follow.
func (f *follower) run(ctx context.Context) {
	misses, told := 0, false
	for ctx.Err() == nil {
		got, err := f.once(ctx, func() {
			switch {
			case told:
				f.tell(news{back: true, gap: true})
			case misses > 0:
				f.tell(news{gap: true})
			}
			told = false
		})
		if ctx.Err() != nil {
			return
		}
		if got {
			misses = 0
		}
		if err == nil && f.untilIdle {
			return
		}
		if err != nil && !passing(err) || !f.patient && misses >= patience {
			f.tell(news{end: fmt.Errorf("follow the conversation: %w", err)})
			return
		}
		if misses == 1 && !told { // opening it at once did not help
			told = f.tell(news{lost: err})
		}
		if pause(ctx, misses) != nil {
			return
		}
		misses++
	}
}

// once reads one stream to its end. opened is called with its first frame.
func (f *follower) once(ctx context.Context, opened func()) (got bool, err error) {
	stream, err := f.server.Agent.WatchConversation(ctx, &agentv1.WatchConversationRequest{
		ConversationId: f.id, After: f.after, UntilIdle: f.untilIdle,
	})
	if err != nil {
		return false, err
	}
	defer func() { _ = stream.Close() }() // the end of the stream is told by Receive
	for {
		frame, err := stream.Receive()
		if errors.Is(err, io.EOF) {
			return got, nil
		}
		if err != nil {
			return got, err
		}
		if !got {
			opened()
		}
		got = true
		if !f.frame(frame) {
			return got, nil
		}
	}
}

// frame tells what a frame brings. It says false when nobody listens any more.
func (f *follower) frame(frame *agentv1.WatchConversationResponse) bool {
	switch kind := frame.GetKind().(type) {
	case *agentv1.WatchConversationResponse_Event:
		if n := kind.Event.GetSequence(); n > 0 {
			if n <= f.after {
				return true
			}
			f.after = n
		}
		return f.tell(news{event: kind.Event})
	case *agentv1.WatchConversationResponse_CaughtUp:
		return f.tell(news{caught: kind.CaughtUp})
	case *agentv1.WatchConversationResponse_UnknownPlace:
		f.after = kind.UnknownPlace.GetSequence()
		f.tell(news{reset: true})
		return false // the stream is opened again at the end that there is
	default: // a sign of life
		return true
	}
}
