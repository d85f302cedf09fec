package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"throwbar.dev/throwbar/clients/cli/term"
	throwbar "throwbar.dev/throwbar/clients/go"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
)

// undoneNamed is the number of undone commands that are looked up to be shown with their names.
const undoneNamed = 20

// undoVerb brings back what a command took away.
func (p *program) undoVerb() *cobra.Command {
	var device string
	var dryRun bool
	c := &cobra.Command{
		Use:     "undo [COMMAND-ID]",
		Short:   "Bring back what a command took away, the newest one if none is named",
		GroupID: groupCommands,
		Long: "Bring back what a command took away: the tabs that it closed are opened again where they were. Without an id it " +
			"is the newest command that took something away. `throwbar history` shows the ids.",
		Example: "  throwbar undo --dry-run\n  throwbar undo --device laptop",
		Args: func(c *cobra.Command, words []string) error {
			if len(words) > 1 {
				return p.takes("the id of a command")(c, words)
			}
			return nil
		},
		RunE: func(c *cobra.Command, words []string) error {
			ask := &controlv1.UndoRequest{DryRun: dryRun, CommandId: set(strings.Join(words, ""))}
			id, err := p.oneOrAll(c.Context(), device)
			if err != nil {
				return err
			}
			ask.DeviceId = set(id)
			return p.runUndo(c.Context(), ask)
		},
	}
	c.Flags().StringVar(&device, "device", "", "only what was taken away on this `device`, by name or id")
	c.Flags().BoolVar(&dryRun, "dry-run", false, "say what would be done, and send nothing")
	_ = c.RegisterFlagCompletionFunc("device", p.completeDevices)
	return c
}

func (p *program) runUndo(ctx context.Context, ask *controlv1.UndoRequest) error {
	s, err := p.api()
	if err != nil {
		return err
	}
	if _, err := p.catalogue(ctx); err != nil {
		return err
	}
	answer, err := asking(ctx, p, s, p.unnamed(ctx), func(ctx context.Context) (*controlv1.UndoResponse, error) {
		return s.Commands.Undo(ctx, ask)
	})
	if err != nil {
		return fmt.Errorf("undo: %w", err)
	}
	codes := make([]int, 0, len(answer.GetOutcomes()))
	for _, o := range answer.GetOutcomes() {
		codes = append(codes, p.codeOf(nil, o))
	}
	switch {
	case p.flags.json():
		if err := p.printJSON(answer, true); err != nil {
			return err
		}
	case len(answer.GetOutcomes()) == 0:
		p.err.Line(term.Yellow, "There is nothing to bring back.")
	default:
		p.undone(ctx, s, answer, ask.GetDryRun())
		p.outcomes(nil, answer.GetOutcomes())
		if code := together(codes); code == Partial && !ask.GetDryRun() {
			p.out.Line(term.Yellow, "What did not come back is still kept: the same undo tries it again.")
		}
		if ask.GetDryRun() {
			p.out.Line(term.Plain, "Nothing was sent.")
		}
	}
	return exit(codes)
}

// undone says which commands are undone. Their names are looked up; where that fails their ids say enough.
func (p *program) undone(ctx context.Context, s *throwbar.Client, answer *controlv1.UndoResponse, dryRun bool) {
	word := "Undone:"
	if dryRun {
		word = "Would undo:"
	}
	for i, id := range answer.GetUndoneCommandIds() {
		what := "command "
		if i < undoneNamed {
			if got, err := s.Commands.GetCommand(ctx, &controlv1.GetCommandRequest{CommandId: id}); err == nil {
				c := got.GetCommand()
				what = fmt.Sprintf("%s on %s, %s: command ", c.GetName(), c.GetDeviceName(), term.When(c.GetCreatedAt().AsTime(), p.Now()))
			}
		}
		p.out.Line(term.Plain, "%s %s%s", word, what, id)
	}
}
