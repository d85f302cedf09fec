package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"throwbar.dev/throwbar/clients/cli/args"
	"throwbar.dev/throwbar/clients/cli/term"
	throwbar "throwbar.dev/throwbar/clients/go"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
)

const (
	againFirst = time.Second
	againMost  = 15 * time.Second
)

// watchVerb prints events as they happen.
func (p *program) watchVerb() *cobra.Command {
	var device string
	var cursor uint64
	c := &cobra.Command{
		Use:     "watch",
		Short:   "Print the events of commands and devices as they happen, until interrupted",
		GroupID: groupCommands,
		Args:    p.takes(),
		RunE: func(c *cobra.Command, _ []string) error {
			ask := &controlv1.WatchEventsRequest{}
			id, err := p.oneOrAll(c.Context(), device)
			if err != nil {
				return err
			}
			ask.DeviceId = set(id)
			if c.Flag("cursor").Changed {
				ask.Cursor = &cursor
			}
			return p.follow(c.Context(), ask, func() {}, p.event)
		},
	}
	c.Flags().StringVar(&device, "device", "", "only events of this `device`, by name or id")
	c.Flags().Uint64Var(&cursor, "cursor", 0, "events after this `number`, which every event shows; from now on if left out")
	_ = c.RegisterFlagCompletionFunc("device", p.completeDevices)
	return c
}

// follow hands over every frame of the event stream. When the stream breaks it is opened again after the last event.
// opened is called each time that it is open.
func (p *program) follow(
	ctx context.Context, ask *controlv1.WatchEventsRequest, opened func(),
	each func(*controlv1.WatchEventsResponse) error,
) error {
	s, err := p.api()
	if err != nil {
		return err
	}
	return again(ctx, "watch events", func() (bool, error) { return p.followOnce(ctx, s, ask, opened, each) })
}

// again reads a stream, and opens it again when it breaks. once reads it to its end and says whether anything came.
func again(ctx context.Context, what string, once func() (got bool, err error)) error {
	began, misses := false, 0
	for {
		got, err := once()
		var own *Exit
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.As(err, &own):
			return err
		case err != nil && !passing(err), !began && !got && err != nil:
			return fmt.Errorf("%s: %w", what, err)
		}
		began = true
		if got {
			misses = 0
		}
		if err := pause(ctx, misses); err != nil {
			return err
		}
		misses++
	}
}

// pause waits before a stream is opened again: not at all the first time.
func pause(ctx context.Context, misses int) error {
	if misses == 0 {
		return nil
	}
	return rest(ctx, min(againFirst<<min(misses-1, 10), againMost))
}

// rest waits for a while.
func rest(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// followOnce reads one stream to its end. It says whether an event came.
func (p *program) followOnce(
	ctx context.Context, s *throwbar.Client, ask *controlv1.WatchEventsRequest, opened func(),
	each func(*controlv1.WatchEventsResponse) error,
) (got bool, err error) {
	stream, err := s.Commands.WatchEvents(ctx, ask)
	if err != nil {
		return false, err
	}
	defer func() { _ = stream.Close() }() // the end of the stream is told by Receive
	opened()
	for {
		frame, err := stream.Receive()
		if errors.Is(err, io.EOF) {
			return got, nil
		}
		if err != nil {
			return got, err
		}
		if frame.GetEvent() != nil {
			got = true
			cursor := frame.GetEvent().GetCursor()
			ask.Cursor = &cursor
		}
		if err := each(frame); err != nil {
			return got, err
		}
	}
}

// event prints one frame.
func (p *program) event(frame *controlv1.WatchEventsResponse) error {
	if p.flags.json() {
		if frame.GetEvent() == nil && !frame.GetReset_() {
			return nil
		}
		return p.printJSON(frame, false)
	}
	if frame.GetReset_() {
		p.err.Line(term.Yellow, "The cursor is too old: events are missing here.")
	}
	e := frame.GetEvent()
	if e == nil {
		return nil
	}
	head := fmt.Sprintf("%d  %s  ", e.GetCursor(), e.GetTime().AsTime().Local().Format(time.TimeOnly))
	switch {
	case e.GetCommand() != nil:
		c := e.GetCommand()
		s := state(c.GetState())
		words := []string{
			term.Visible(e.GetDeviceId()), p.out.Paint(term.Bold, term.Visible(c.GetName())),
			p.out.Paint(s.Style, s.Text), term.Visible(c.GetDetail()),
		}
		if c.GetLate() {
			words = append(words, "late: it changes nothing")
		}
		p.out.Print(p.out.Paint(term.Dim, head) + join(append(words, p.out.Paint(term.Dim, term.Visible(c.GetCommandId())))))
	case e.GetDevice() != nil:
		change := e.GetDevice().GetChange()
		p.out.Print(p.out.Paint(term.Dim, head) + join([]string{
			term.Visible(e.GetDeviceId()),
			p.out.Paint(term.Bold, term.Visible(e.GetDevice().GetName())), args.ShortOf(change.Descriptor(), change.Number()),
		}))
	default: // of a kind that this program does not know
		p.out.Print(p.out.Paint(term.Dim, head) + join([]string{term.Visible(e.GetDeviceId()), "something else"}))
	}
	return nil
}

// join makes a line of the words that say something.
func join(words []string) string {
	var said []string
	for _, word := range words {
		if word != "" {
			said = append(said, word)
		}
	}
	return strings.Join(said, "  ") + "\n"
}
