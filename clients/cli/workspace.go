package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"throwbar.dev/throwbar/clients/cli/term"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
)

// workspaceVerb makes and lists workspaces.
func (p *program) workspaceVerb() *cobra.Command {
	c := p.branch(&cobra.Command{
		Use:     "workspace",
		Short:   "Make and list workspaces, which see nothing of each other",
		GroupID: groupServer,
	})
	c.AddCommand(p.workspaceCreateVerb(), p.workspaceListVerb())
	return c
}

func (p *program) workspaceCreateVerb() *cobra.Command {
	var file string
	c := &cobra.Command{
		Use:   "create NAME",
		Short: "Make a workspace; the secret of its owner's token is shown once",
		Long: "Make a workspace; the secret of its owner's token is shown once.\n\nDevices, commands, conversations, rules and " +
			"tokens belong to one workspace each and are not found from another. Only owners of the workspace default may make one.",
		Args: p.takes("a name of small letters, digits and dashes"),
		RunE: func(c *cobra.Command, words []string) error {
			s, err := p.api()
			if err != nil {
				return err
			}
			answer, err := s.Workspaces.CreateWorkspace(c.Context(), &controlv1.CreateWorkspaceRequest{Name: words[0]})
			if err != nil {
				return fmt.Errorf("make the workspace: %w", err)
			}
			return p.showWorkspace(answer, file)
		},
	}
	c.Flags().StringVar(&file, "file", "", "write the secret to this new `file` instead of showing it")
	return c
}

func (p *program) showWorkspace(answer *controlv1.CreateWorkspaceResponse, file string) error {
	if file != "" {
		if err := writeSecret(file, answer.GetSecret()); err != nil { // shown after all: nothing else opens the workspace
			p.err.Line(term.Red, "throwbar: %s", err)
			file = ""
		} else {
			answer.Secret = ""
		}
	}
	if p.flags.json() {
		return p.printJSON(answer, true)
	}
	p.out.Facts(0, [2]string{"workspace", answer.GetWorkspace().GetName()}, [2]string{"token id", answer.GetToken().GetTokenId()},
		[2]string{"secret", answer.GetSecret()}, [2]string{"file", file})
	p.keepSecret(file)
	return nil
}

func (p *program) workspaceListVerb() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the workspaces",
		Args:  p.takes(),
		RunE: func(c *cobra.Command, _ []string) error {
			s, err := p.api()
			if err != nil {
				return err
			}
			answer, err := s.Workspaces.ListWorkspaces(c.Context(), &controlv1.ListWorkspacesRequest{})
			if err != nil {
				return fmt.Errorf("list workspaces: %w", err)
			}
			if p.flags.json() {
				return p.printJSON(answer, true)
			}
			t := term.Table{Header: []string{"name", "made"}, Shrink: []int{0}}
			for _, w := range answer.GetWorkspaces() {
				t.Rows = append(t.Rows, []term.Cell{
					{Text: w.GetName(), Style: term.Bold}, term.Text(term.When(w.GetCreatedAt().AsTime(), p.Now())),
				})
			}
			p.out.Table(t)
			return nil
		},
	}
}
