package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	"throwbar.dev/throwbar/clients/cli/talk"
	"throwbar.dev/throwbar/clients/cli/term"
	throwbar "throwbar.dev/throwbar/clients/go"
	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
)

// modelsVerb lists the models that are configured.
func (p *program) modelsVerb() *cobra.Command {
	return &cobra.Command{
		Use:     "models",
		Short:   "List the models that are configured, the default first",
		GroupID: groupAgent,
		Args:    p.takes(),
		RunE:    func(c *cobra.Command, _ []string) error { return p.listModels(c.Context(), p.out) },
	}
}

// listed asks for a list and shows it, or writes it as JSON.
func listed[T proto.Message](
	p *program, what string, to *term.Screen, ask func(*throwbar.Client) (T, error), show func(T),
) error {
	s, err := p.api()
	if err != nil {
		return err
	}
	answer, err := ask(s)
	if err != nil {
		return fmt.Errorf("list the %s: %w", what, err)
	}
	if p.flags.json() && to == p.out {
		return p.printJSON(answer, true)
	}
	show(answer)
	return nil
}

func (p *program) listModels(ctx context.Context, to *term.Screen) error {
	return listed(p, "models", to, func(s *throwbar.Client) (*agentv1.ListModelsResponse, error) {
		return s.Agent.ListModels(ctx, &agentv1.ListModelsRequest{})
	}, func(answer *agentv1.ListModelsResponse) {
		if len(answer.GetModels()) == 0 {
			to.Line(term.Plain, "No model is configured. `throwbar chat` says what to set.")
		}
		t := term.Table{Header: []string{"name", "model", "host", "reads", "sees"}, Shrink: []int{1, 2}, DropEmpty: true}
		for _, m := range answer.GetModels() {
			reads, sees := "", ""
			if m.GetContextTokens() > 0 {
				reads = talk.Count(m.GetContextTokens()) + " tokens"
			}
			if m.GetImages() {
				sees = "images"
			}
			t.Rows = append(t.Rows, []term.Cell{
				{Text: m.GetName(), Style: term.Bold}, term.Text(m.GetModel()), term.Text(m.GetHost()), term.Text(reads), term.Text(sees),
			})
		}
		to.Table(t)
	})
}

// agentsVerb lists the agents that are defined.
func (p *program) agentsVerb() *cobra.Command {
	return &cobra.Command{
		Use:     "agents",
		Short:   "List the agents that the configuration defines",
		GroupID: groupAgent,
		Args:    p.takes(),
		RunE:    func(c *cobra.Command, _ []string) error { return p.listAgents(c.Context(), p.out) },
	}
}

func (p *program) listAgents(ctx context.Context, to *term.Screen) error {
	return listed(p, "agents", to, func(s *throwbar.Client) (*agentv1.ListAgentsResponse, error) {
		return s.Agent.ListAgents(ctx, &agentv1.ListAgentsRequest{})
	}, func(answer *agentv1.ListAgentsResponse) {
		if len(answer.GetAgents()) == 0 {
			to.Line(term.Plain, "No agent is defined in the server's configuration.")
		}
		t := term.Table{Header: []string{"name", "is for", "models", "tools"}, Shrink: []int{1, 3}, DropEmpty: true}
		for _, a := range answer.GetAgents() {
			t.Rows = append(t.Rows, []term.Cell{
				{Text: a.GetName(), Style: term.Bold}, term.Text(a.GetDescription()),
				term.Text(strings.Join(a.GetModel().GetModels(), ", ")), term.Text(grantsText(a.GetGrants())),
			})
		}
		to.Table(t)
	})
}

// grantsText says in one line which tools grants give.
func grantsText(g *agentv1.Grants) string {
	only := "all"
	if len(g.GetOnly()) > 0 {
		only = strings.Join(g.GetOnly(), ", ")
	}
	if len(g.GetExtra()) > 0 {
		only += " and " + strings.Join(g.GetExtra(), ", ")
	}
	if len(g.GetDenied()) > 0 {
		only += " without " + strings.Join(g.GetDenied(), ", ")
	}
	return only
}

// toolsVerb lists what an agent can be granted.
func (p *program) toolsVerb() *cobra.Command {
	var conversation string
	c := p.branch(&cobra.Command{Use: "tools", Short: "See the tools that the agent has", GroupID: groupAgent})
	list := &cobra.Command{
		Use:   "list",
		Short: "List the tools that the agent has, and those that it can be granted",
		Long: "List the tools that the agent has, and those that it can be granted: by name or group with `throwbar conversations " +
			"settings`. What says that it has to be granted is off until it is named there.",
		Args: p.takes(),
		RunE: func(c *cobra.Command, _ []string) error {
			id := ""
			if conversation != "" {
				_, at, err := p.named(c.Context(), conversation)
				if err != nil {
					return err
				}
				id = at.GetConversationId()
			}
			return p.listTools(c.Context(), p.out, id, true)
		},
	}
	list.Flags().StringVar(&conversation, "conversation", "", "say what the agent of this conversation has, by handle or `id`; of a new one if left out")
	_ = list.RegisterFlagCompletionFunc("conversation", p.completeConversations(false))
	c.AddCommand(list)
	return c
}

// listTools lists the tools of a conversation, of a new one if id is empty; those that it has not only if others is set.
func (p *program) listTools(ctx context.Context, to *term.Screen, id string, others bool) error {
	return listed(p, "tools", to, func(s *throwbar.Client) (*agentv1.ListToolsResponse, error) {
		return s.Agent.ListTools(ctx, &agentv1.ListToolsRequest{ConversationId: set(id)})
	}, func(answer *agentv1.ListToolsResponse) {
		t := term.Table{Header: []string{"name", "group", "has it", "does"}, Shrink: []int{3}}
		for _, tool := range answer.GetTools() {
			has := term.Cell{Text: "yes", Style: term.Green}
			switch {
			case tool.GetAvailable():
			case !others:
				continue
			case tool.GetGranted():
				has = term.Cell{Text: "if granted", Style: term.Yellow}
			default:
				has = term.Cell{Text: "no", Style: term.Dim}
			}
			t.Rows = append(t.Rows, []term.Cell{
				{Text: tool.GetName(), Style: term.Bold}, term.Text(tool.GetGroup()), has, term.Text(tool.GetSummary()),
			})
		}
		if len(t.Rows) == 0 {
			to.Line(term.Plain, "It has no tools.")
		}
		to.Table(t)
	})
}

// offersFrom is a completion from a list of names and what they are.
func (p *program) offersFrom(ask func(context.Context, *throwbar.Client) ([][2]string, error)) cobra.CompletionFunc {
	return func(c *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(c.Context(), completeWait)
		defer cancel()
		s, err := p.api()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		rows, err := ask(ctx, s)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		names := make([]cobra.Completion, len(rows))
		for i, row := range rows {
			names[i] = cobra.CompletionWithDesc(term.Visible(row[0]), talk.OneLine(row[1]))
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

func (p *program) completeModels(c *cobra.Command, words []string, to string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return p.offersFrom(func(ctx context.Context, s *throwbar.Client) (rows [][2]string, err error) {
		answer, err := s.Agent.ListModels(ctx, &agentv1.ListModelsRequest{})
		for _, m := range answer.GetModels() {
			rows = append(rows, [2]string{m.GetName(), m.GetModel()})
		}
		return rows, err
	})(c, words, to)
}

func (p *program) completeAgents(c *cobra.Command, words []string, to string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return p.offersFrom(func(ctx context.Context, s *throwbar.Client) (rows [][2]string, err error) {
		answer, err := s.Agent.ListAgents(ctx, &agentv1.ListAgentsRequest{})
		for _, a := range answer.GetAgents() {
			rows = append(rows, [2]string{a.GetName(), a.GetDescription()})
		}
		return rows, err
	})(c, words, to)
}

func (p *program) completeTools(c *cobra.Command, words []string, to string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return p.offersFrom(func(ctx context.Context, s *throwbar.Client) (rows [][2]string, err error) {
		answer, err := s.Agent.ListTools(ctx, &agentv1.ListToolsRequest{})
		for _, tool := range answer.GetTools() {
			rows = append(rows, [2]string{tool.GetName(), tool.GetSummary()})
		}
		return rows, err
	})(c, words, to)
}
