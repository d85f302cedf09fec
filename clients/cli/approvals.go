package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"throwbar.dev/throwbar/clients/cli/term"
	throwbar "throwbar.dev/throwbar/clients/go"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
)

const (
	shortLength = 8  // of an id that is shown in words
	wholeLength = 36 // of an id
	approvalArg = "the id of an approval"
)

// approvalsVerb shows what waits for a person and takes decisions.
func (p *program) approvalsVerb() *cobra.Command {
	c := p.branch(&cobra.Command{
		Use:     "approvals",
		Short:   "See what waits for a person, and decide",
		GroupID: groupCommands,
		Long: "See what waits for a person, and decide.\n\nA command that policy asks a person about waits until somebody decides " +
			"or its deadline passes. Whoever decides first has decided. Ids may be cut to their first characters where that is " +
			"enough to tell them apart.",
	})
	c.AddCommand(p.approvalsListVerb(), p.approvalsShowVerb(), p.approvalsWatchVerb(), p.approveVerb(), p.denyVerb())
	return c
}

func (p *program) approvalsListVerb() *cobra.Command {
	var all bool
	var limit uint32
	c := &cobra.Command{
		Use:   "list",
		Short: "List the approvals that are pending, newest first",
		Args:  p.takes(),
		RunE: func(c *cobra.Command, _ []string) error {
			return p.listApprovals(c.Context(), all, limit)
		},
	}
	c.Flags().BoolVar(&all, "all", false, "also those that were decided, expired or were withdrawn")
	c.Flags().Uint32Var(&limit, "limit", historyRows, "most `rows`; 0 for all")
	return c
}

func (p *program) listApprovals(ctx context.Context, all bool, limit uint32) error {
	answer, err := p.approvals(ctx, !all, limit)
	if err != nil {
		return err
	}
	if _, err := p.catalogue(ctx); err != nil { // for the members that this program does not know
		return err
	}
	if p.flags.json() {
		return p.printJSON(answer, true)
	}
	p.approvalsTable(ctx, answer.GetApprovals())
	if answer.GetNextPageToken() != "" {
		p.out.Line(term.Dim, "There are older ones; --limit 0 shows all.")
	}
	return nil
}

// approvals lists approvals, newest first, at most so many; all if limit is zero.
func (p *program) approvals(ctx context.Context, pending bool, limit uint32) (*controlv1.ListApprovalsResponse, error) {
	s, err := p.api()
	if err != nil {
		return nil, err
	}
	answer := &controlv1.ListApprovalsResponse{}
	err = pages(func(token string) (string, error) {
		size := uint32(pageSize)
		if left := limit - uint32(len(answer.GetApprovals())); limit > 0 && left < size {
			size = left
		}
		page, err := s.Approvals.ListApprovals(ctx, &controlv1.ListApprovalsRequest{
			PendingOnly: set(pending), PageSize: &size, PageToken: set(token),
		})
		answer.Approvals = append(answer.Approvals, page.GetApprovals()...)
		answer.NextPageToken = page.GetNextPageToken()
		if limit > 0 && len(answer.GetApprovals()) >= int(limit) {
			return "", err
		}
		return page.GetNextPageToken(), err
	})
	if err != nil {
		return nil, fmt.Errorf("list approvals: %w", err)
	}
	return answer, nil
}

func (p *program) approvalsTable(ctx context.Context, list []*controlv1.Approval) {
	if len(list) == 0 {
		p.out.Line(term.Plain, "Nothing waits for a person.")
		return
	}
	names := p.tokenNames(ctx)
	t := term.Table{
		Header: []string{"id", "state", "what", "why", "deadline", "asked by", "asked"}, Shrink: []int{2, 3}, DropEmpty: true,
	}
	for _, a := range list {
		t.Rows = append(t.Rows, []term.Cell{
			{Text: shortID(a.GetApprovalId()), Style: term.Bold},
			approvalState(a.GetState()), term.Text(callsLine(a)), term.Text(a.GetReason()), p.deadline(a),
			term.Text(names.asker(a)),
			{Text: term.When(a.GetCreatedAt().AsTime(), p.Now()), Style: term.Dim},
		})
	}
	p.out.Table(t)
}

func (p *program) approvalsShowVerb() *cobra.Command {
	return &cobra.Command{
		Use:               "show ID",
		Short:             "Show an approval: every call with its device, arguments and targets",
		Args:              p.takes(approvalArg),
		ValidArgsFunction: p.completeApprovals(false),
		RunE: func(c *cobra.Command, words []string) error {
			list, err := p.findApprovals(c.Context(), words)
			if err != nil {
				return err
			}
			if p.flags.json() {
				return p.printJSON(&controlv1.GetApprovalResponse{Approval: list[0]}, true)
			}
			p.approval(c.Context(), p.out, list[0], p.askedBy(c.Context(), list[0]))
			return nil
		},
	}
}

// findApprovals gets the approvals that words name by their ids or by prefixes of them, and the catalogue to show them.
func (p *program) findApprovals(ctx context.Context, words []string) ([]*controlv1.Approval, error) {
	s, err := p.api()
	if err != nil {
		return nil, err
	}
	if _, err := p.catalogue(ctx); err != nil {
		return nil, err
	}
	var found []*controlv1.Approval
	for _, word := range words {
		id, err := p.approvalID(ctx, word)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(found, func(a *controlv1.Approval) bool { return a.GetApprovalId() == id }) {
			return nil, Errorf(Invalid, "%s is named twice", word)
		}
		answer, err := s.Approvals.GetApproval(ctx, &controlv1.GetApprovalRequest{ApprovalId: id})
		if err != nil {
			return nil, fmt.Errorf("get approval %s: %w", term.Visible(word), err)
		}
		found = append(found, answer.GetApproval())
	}
	return found, nil
}

// approvalID is the whole id that a word stands for: among those that are pending if there it is plain, else among all.
func (p *program) approvalID(ctx context.Context, word string) (string, error) {
	if word == "" {
		return "", Errorf(Invalid, "an id is empty")
	}
	if len(word) >= wholeLength {
		return word, nil
	}
	for _, pending := range []bool{true, false} {
		list, err := p.approvals(ctx, pending, 0)
		if err != nil {
			return "", err
		}
		var ids []string
		for _, a := range list.GetApprovals() {
			if strings.HasPrefix(a.GetApprovalId(), word) {
				ids = append(ids, a.GetApprovalId())
			}
		}
		switch {
		case len(ids) == 1 || slices.Contains(ids, word):
			return ids[max(slices.Index(ids, word), 0)], nil
		case len(ids) > 1:
			return "", Errorf(Invalid, "%q is the beginning of %d ids: %s", word, len(ids), strings.Join(ids, ", "))
		}
	}
	return "", Errorf(Failed, "there is no approval %q: `throwbar approvals list --all` lists them", word)
}

// completeApprovals offers the ids of approvals; only such as can still be decided if pending is set.
func (p *program) completeApprovals(pending bool) cobra.CompletionFunc {
	return func(c *cobra.Command, words []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(c.Context(), completeWait)
		defer cancel()
		list, err := p.approvals(ctx, pending, historyRows)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var ids []cobra.Completion
		for _, a := range list.GetApprovals() {
			if !slices.Contains(words, a.GetApprovalId()) {
				ids = append(ids, cobra.CompletionWithDesc(term.Visible(a.GetApprovalId()), term.Visible(callsLine(a))))
			}
		}
		return ids, cobra.ShellCompDirectiveNoFileComp
	}
}

// shortID is an id as it is shown in words.
func shortID(id string) string { return id[:min(len(id), shortLength)] }

// names are the names of tokens by their ids, as far as this token may know them.
type names map[string]string

// tokenNames asks for them. Only an owner may; ids do where they are missing.
func (p *program) tokenNames(ctx context.Context) names {
	if p.names != nil {
		return p.names
	}
	p.names = names{}
	s, err := p.api()
	if err != nil {
		return p.names
	}
	tokens := throwbar.Pages(func(token string) ([]*controlv1.Token, string, error) {
		answer, err := s.Tokens.ListTokens(ctx, &controlv1.ListTokensRequest{PageToken: set(token)})
		return answer.GetTokens(), answer.GetNextPageToken(), err
	})
	for t, err := range tokens {
		if err != nil {
			break
		}
		p.names[t.GetTokenId()] = t.GetName()
	}
	return p.names
}

// token is a token in words.
func (n names) token(id string) string {
	if name := n[id]; name != "" {
		return fmt.Sprintf("%s (%s)", name, shortID(id))
	}
	return shortID(id)
}

// asker is whoever asked.
func (n names) asker(a *controlv1.Approval) string {
	if id := a.GetConversationId(); id != "" {
		return "conversation " + shortID(id)
	}
	return n.token(a.GetPrincipal())
}
