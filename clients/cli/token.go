package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"throwbar.dev/throwbar/clients/cli/args"
	"throwbar.dev/throwbar/clients/cli/term"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	optionv1 "throwbar.dev/throwbar/gen/go/throwbar/option/v1"
)

// tokenVerb makes, lists and revokes tokens.
func (p *program) tokenVerb() *cobra.Command {
	c := p.branch(&cobra.Command{
		Use:     "token",
		Short:   "Make, list and revoke the tokens of people and programs",
		GroupID: groupServer,
	})
	c.AddCommand(p.tokenCreateVerb(), p.tokenListVerb(), p.tokenRevokeVerb())
	return c
}

func (p *program) tokenCreateVerb() *cobra.Command {
	var name, scope, file string
	scopes := []string{"viewer", "operator", "owner"}
	c := &cobra.Command{
		Use:   "create --name text --scope scope",
		Short: "Make a token; its secret is shown once",
		Long: "Make a token; its secret is shown once.\n\nA viewer reads, an operator also sends commands and talks to the " +
			"agent, an owner also pairs devices and makes tokens.",
		Args: p.takes(),
		RunE: func(c *cobra.Command, _ []string) error {
			number, ok := scopeOf(scope)
			switch {
			case name == "":
				return Errorf(Invalid, "--name is missing: say what the token is for")
			case !ok:
				return Errorf(Invalid, "--scope has to be one of %s", strings.Join(scopes, ", "))
			}
			s, err := p.api()
			if err != nil {
				return err
			}
			answer, err := s.Tokens.CreateToken(c.Context(), &controlv1.CreateTokenRequest{Name: name, Scope: number})
			if err != nil {
				return fmt.Errorf("make a token: %w", err)
			}
			return p.showToken(answer, file)
		},
	}
	c.Flags().StringVar(&name, "name", "", "what it is for, as `text` (required)")
	c.Flags().StringVar(&scope, "scope", "", "what its bearer may do: viewer, operator or owner (required) `scope`")
	c.Flags().StringVar(&file, "file", "", "write the secret to this new `file` instead of showing it")
	_ = c.RegisterFlagCompletionFunc("scope", cobra.FixedCompletions(scopes, cobra.ShellCompDirectiveNoFileComp))
	return c
}

func scopeOf(name string) (optionv1.Scope, bool) {
	switch name {
	case "viewer":
		return optionv1.Scope_SCOPE_VIEWER, true
	case "operator":
		return optionv1.Scope_SCOPE_OPERATOR, true
	case "owner":
		return optionv1.Scope_SCOPE_OWNER, true
	default:
		return optionv1.Scope_SCOPE_UNSPECIFIED, false
	}
}

func (p *program) showToken(answer *controlv1.CreateTokenResponse, file string) error {
	if file != "" {
		if err := writeSecret(file, answer.GetSecret()); err != nil {
			return fmt.Errorf("%w; the token is made all the same: `throwbar token revoke %s` takes it back",
				err, answer.GetToken().GetTokenId())
		}
		answer.Secret = ""
	}
	if p.flags.json() {
		return p.printJSON(answer, true)
	}
	t := answer.GetToken()
	p.out.Facts(0, [2]string{"name", t.GetName()}, [2]string{"scope", scopeName(t)}, [2]string{"id", t.GetTokenId()},
		[2]string{"secret", answer.GetSecret()}, [2]string{"file", file})
	if file == "" {
		p.err.Line(term.Dim, "The secret is shown this once. Keep it in a file that only you can read and name the file in "+
			"THROWBAR_TOKEN_FILE.")
	}
	return nil
}

// writeSecret writes a secret to a file that did not exist, for this user only.
func writeSecret(path, secret string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("write the secret: %s exists already", path)
	}
	if err != nil {
		return fmt.Errorf("write the secret: %w", err)
	}
	_, err = f.WriteString(secret + "\n")
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return fmt.Errorf("write the secret: %w", err)
	}
	return nil
}

func scopeName(t *controlv1.Token) string {
	return args.ShortOf(t.GetScope().Descriptor(), t.GetScope().Number())
}

func (p *program) tokenListVerb() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the tokens, without their secrets",
		Args:  p.takes(),
		RunE: func(c *cobra.Command, _ []string) error {
			s, err := p.api()
			if err != nil {
				return err
			}
			all := &controlv1.ListTokensResponse{}
			err = pages(func(token string) (string, error) {
				size := uint32(pageSize)
				page, err := s.Tokens.ListTokens(c.Context(), &controlv1.ListTokensRequest{
					PageSize: &size, PageToken: set(token),
				})
				all.Tokens = append(all.Tokens, page.GetTokens()...)
				return page.GetNextPageToken(), err
			})
			if err != nil {
				return fmt.Errorf("list tokens: %w", err)
			}
			if p.flags.json() {
				return p.printJSON(all, true)
			}
			t := term.Table{Header: []string{"name", "scope", "made", "device", "id"}, Shrink: []int{0}, DropEmpty: true}
			for _, token := range all.GetTokens() {
				t.Rows = append(t.Rows, []term.Cell{
					{Text: token.GetName(), Style: term.Bold},
					term.Text(scopeName(token)),
					term.Text(term.When(token.GetCreatedAt().AsTime(), p.Now())), term.Text(token.GetDeviceId()),
					term.Text(token.GetTokenId()),
				})
			}
			p.out.Table(t)
			return nil
		},
	}
}

func (p *program) tokenRevokeVerb() *cobra.Command {
	return &cobra.Command{
		Use:   "revoke TOKEN-ID",
		Short: "Revoke a token",
		Args:  p.takes("the id of a token"),
		RunE: func(c *cobra.Command, words []string) error {
			s, err := p.api()
			if err != nil {
				return err
			}
			answer, err := s.Tokens.RevokeToken(c.Context(), &controlv1.RevokeTokenRequest{TokenId: words[0]})
			if err != nil {
				return fmt.Errorf("revoke the token: %w", err)
			}
			if p.flags.json() {
				return p.printJSON(answer, true)
			}
			p.out.Line(term.Plain, "%s is revoked.", words[0])
			return nil
		},
	}
}
