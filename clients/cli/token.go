package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/durationpb"

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
	var ttl time.Duration
	scopes := []string{"viewer", "operator", "owner", "hook"}
	c := &cobra.Command{
		Use:   "create --name text --scope scope",
		Short: "Make a token; its secret is shown once",
		Long: "Make a token; its secret is shown once.\n\nA viewer reads, an operator also sends commands and talks to the " +
			"agent, an owner also pairs devices and makes tokens. A hook is for a sender of webhooks and may call nothing else.",
		Example: "  throwbar token create --name ci --scope operator --ttl 720h --file ci.token",
		Args:    p.takes(),
		RunE: func(c *cobra.Command, _ []string) error {
			number, ok := scopeOf(scope)
			switch {
			case name == "":
				return Errorf(Invalid, "--name is missing: say what the token is for")
			case !ok:
				return Errorf(Invalid, "--scope has to be one of %s", strings.Join(scopes, ", "))
			case c.Flags().Changed("ttl") && ttl < time.Second:
				return Errorf(Invalid, "--ttl has to be at least 1s; leave it out for a token that works until it is revoked")
			}
			s, err := p.api()
			if err != nil {
				return err
			}
			req := &controlv1.CreateTokenRequest{Name: name, Scope: number}
			if ttl > 0 {
				req.Ttl = durationpb.New(ttl)
			}
			answer, err := s.Tokens.CreateToken(c.Context(), req)
			if err != nil {
				return fmt.Errorf("make a token: %w", err)
			}
			return p.showToken(answer, file)
		},
	}
	c.Flags().StringVar(&name, "name", "", "what it is for, as `text` (required)")
	c.Flags().StringVar(&scope, "scope", "", "what its bearer may do, a `scope`: viewer, operator, owner or hook (required)")
	c.Flags().DurationVar(&ttl, "ttl", 0, "how long it works, as a `time` like 720h; until it is revoked if left out")
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
	case "hook":
		return optionv1.Scope_SCOPE_HOOK, true
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
		[2]string{"expires", p.expiry(t)}, [2]string{"secret", answer.GetSecret()}, [2]string{"file", file})
	p.keepSecret(file)
	return nil
}

// keepSecret says what to do with a secret that was not written to a file.
func (p *program) keepSecret(file string) {
	if file == "" {
		p.err.Line(term.Dim, "The secret is shown this once. Keep it in a file that only you can read and name the file in "+
			"THROWBAR_TOKEN_FILE.")
	}
}

// expiry says when a token stops working; empty if it does not.
func (p *program) expiry(t *controlv1.Token) string {
	if t.GetExpiresAt() == nil {
		return ""
	}
	at := t.GetExpiresAt().AsTime()
	if !p.Now().Before(at) {
		return "expired"
	}
	return "in " + term.Span(at.Sub(p.Now()))
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
			t := term.Table{Header: []string{"name", "scope", "made", "expires", "device", "id"}, Shrink: []int{0}, DropEmpty: true}
			for _, token := range all.GetTokens() {
				t.Rows = append(t.Rows, []term.Cell{
					{Text: token.GetName(), Style: term.Bold},
					term.Text(scopeName(token)),
					term.Text(term.When(token.GetCreatedAt().AsTime(), p.Now())), term.Text(p.expiry(token)),
					term.Text(token.GetDeviceId()),
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
