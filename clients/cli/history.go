package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"throwbar.dev/throwbar/clients/cli/args"
	"throwbar.dev/throwbar/clients/cli/term"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
)

const historyRows = 50

// historyVerb lists commands, newest first.
func (p *program) historyVerb() *cobra.Command {
	var device string
	var pending bool
	var limit uint32
	c := &cobra.Command{
		Use:         "history",
		Short:       "List the commands that were sent and how they ended, newest first",
		GroupID:     groupCommands,
		Args:        p.takes(),
		Annotations: map[string]string{"alone": "yes"},
		RunE: func(c *cobra.Command, _ []string) error {
			return p.runHistory(c.Context(), device, pending, limit)
		},
	}
	c.Flags().StringVar(&device, "device", "", "only commands of this `device`, by name or id")
	c.Flags().BoolVar(&pending, "pending", false, "only commands that have not ended")
	c.Flags().Uint32Var(&limit, "limit", historyRows, "most `rows`; 0 for all")
	_ = c.RegisterFlagCompletionFunc("device", p.completeDevices)
	c.AddCommand(&cobra.Command{
		Use:   "show COMMAND-ID",
		Short: "Show one command with its arguments and its outcome",
		Args:  p.takes("the id of a command"),
		RunE:  func(c *cobra.Command, words []string) error { return p.showCommand(c.Context(), words[0]) },
	})
	return c
}

func (p *program) runHistory(ctx context.Context, device string, pending bool, limit uint32) error {
	var err error
	if device, err = p.oneOrAll(ctx, device); err != nil {
		return err
	}
	s, err := p.api()
	if err != nil {
		return err
	}
	answer := &controlv1.ListCommandsResponse{}
	err = pages(func(token string) (string, error) {
		size := uint32(pageSize)
		if left := limit - uint32(len(answer.GetCommands())); limit > 0 && left < size {
			size = left
		}
		page, err := s.Commands.ListCommands(ctx, &controlv1.ListCommandsRequest{
			DeviceId: set(device), PendingOnly: set(pending), PageSize: &size, PageToken: set(token),
		})
		answer.Commands = append(answer.Commands, page.GetCommands()...)
		answer.NextPageToken = page.GetNextPageToken()
		if limit > 0 && len(answer.GetCommands()) >= int(limit) {
			return "", err
		}
		return page.GetNextPageToken(), err
	})
	if err != nil {
		return fmt.Errorf("list commands: %w", err)
	}
	if p.flags.json() {
		if _, err := p.catalogue(ctx); err != nil { // for the members that this program does not know
			return err
		}
		return p.printJSON(answer, true)
	}
	p.historyTable(answer.GetCommands())
	if answer.GetNextPageToken() != "" {
		p.out.Line(term.Dim, "There are older ones; --limit 0 shows all.")
	}
	return nil
}

func (p *program) historyTable(commands []*controlv1.Command) {
	t := term.Table{
		Header: []string{"when", "device", "command", "state", "took", "outcome", "id"}, Shrink: []int{1, 5}, DropEmpty: true,
	}
	for _, c := range commands {
		t.Rows = append(t.Rows, []term.Cell{
			{Text: term.When(c.GetCreatedAt().AsTime(), p.Now()), Style: term.Dim},
			term.Text(c.GetDeviceName()),
			{Text: c.GetName(), Style: term.Bold},
			state(c.GetState()), term.Text(took(c)), term.Text(outcomeText(c)),
			term.Text(c.GetCommandId()),
		})
	}
	p.out.Table(t)
	if len(commands) == 0 {
		p.out.Line(term.Plain, "No commands.")
	}
}

func state(s controlv1.State) term.Cell {
	cell := term.Cell{Text: strings.ReplaceAll(args.ShortOf(s.Descriptor(), s.Number()), "_", " ")}
	switch s {
	case controlv1.State_STATE_SUCCEEDED:
		cell.Style = term.Green
	case controlv1.State_STATE_FAILED, controlv1.State_STATE_EXPIRED, controlv1.State_STATE_INTERRUPTED:
		cell.Style = term.Red
	case controlv1.State_STATE_CANCELLED, controlv1.State_STATE_AWAITING_APPROVAL:
		cell.Style = term.Yellow
	default:
	}
	return cell
}

func took(c *controlv1.Command) string {
	if c.GetEndedAt() == nil {
		return ""
	}
	return term.Span(max(c.GetEndedAt().AsTime().Sub(c.GetCreatedAt().AsTime()), 0))
}

func outcomeText(c *controlv1.Command) string {
	switch {
	case c.GetSummary() != "":
		return c.GetSummary()
	case c.GetError() != nil:
		return c.GetError().GetMessage()
	default:
		return ""
	}
}

func (p *program) showCommand(ctx context.Context, id string) error {
	s, err := p.api()
	if err != nil {
		return err
	}
	answer, err := s.Commands.GetCommand(ctx, &controlv1.GetCommandRequest{CommandId: id})
	if err != nil {
		return fmt.Errorf("get the command: %w", err)
	}
	known, err := p.catalogue(ctx)
	if err != nil {
		return err
	}
	if p.flags.json() {
		return p.printJSON(answer, true)
	}
	p.commandFacts(answer.GetCommand())
	p.payloads(known, answer.GetCommand())
	return nil
}

func (p *program) commandFacts(c *controlv1.Command) {
	until := ""
	if c.GetEndedAt() == nil {
		until = term.When(c.GetDeadline().AsTime(), p.Now())
	}
	p.out.Facts(0,
		[2]string{"command", c.GetName()},
		[2]string{"id", c.GetCommandId()},
		[2]string{"device", fmt.Sprintf("%s (%s)", c.GetDeviceName(), c.GetDeviceId())},
		[2]string{"state", state(c.GetState()).Text},
		[2]string{"asked by", c.GetPrincipal()},
		[2]string{"sent", c.GetCreatedAt().AsTime().Format(time.RFC3339)},
		[2]string{"took", took(c)},
		[2]string{"expires", until},
		[2]string{"outcome", outcomeText(c)},
	)
}

// payloads shows what was asked and answered, while the server still has it.
func (p *program) payloads(k *known, c *controlv1.Command) {
	e, err := k.ByAction(c.GetAction())
	if c.GetAction() == nil || err != nil {
		return
	}
	if m, err := e.Args(c.GetAction()); err == nil {
		p.out.Line(term.Bold, "Arguments")
		given := p.show()
		given.Given = true
		given.Message(m, outcomeIndent)
	}
	if c.GetResult() == nil {
		return
	}
	if m, err := e.Unwrap(c.GetResult()); err == nil {
		p.out.Line(term.Bold, "Result")
		p.show().Message(m, outcomeIndent)
	}
}

// cancelVerb cancels a command.
func (p *program) cancelVerb() *cobra.Command {
	return &cobra.Command{
		Use:     "cancel COMMAND-ID",
		Short:   "Cancel a command that has not ended",
		GroupID: groupCommands,
		Args:    p.takes("the id of a command"),
		RunE: func(c *cobra.Command, words []string) error {
			s, err := p.api()
			if err != nil {
				return err
			}
			answer, err := s.Commands.CancelCommand(c.Context(), &controlv1.CancelCommandRequest{CommandId: words[0]})
			if err != nil {
				return fmt.Errorf("cancel the command: %w", err)
			}
			if p.flags.json() {
				if _, err := p.catalogue(c.Context()); err != nil {
					return err
				}
				return p.printJSON(answer, true)
			}
			p.out.Line(term.Plain, "%s on %s: %s", answer.GetCommand().GetName(), answer.GetCommand().GetDeviceName(),
				state(answer.GetCommand().GetState()).Text)
			return nil
		},
	}
}
