package cli

import (
	"strings"

	"github.com/spf13/cobra"
)

// exemplify gives examples to the verbs that have none of their own.
func exemplify(c *cobra.Command) {
	lines := examples()
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		_, path, _ := strings.Cut(c.CommandPath(), " ")
		if uses := lines[path]; c.Example == "" && len(uses) > 0 {
			c.Example = "  throwbar " + strings.Join(uses, "\n  throwbar ")
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(c)
}

// examples lists them by the verb, without the program's name.
func examples() map[string][]string {
	return map[string][]string{
		"devices":                {"devices --online"},
		"devices rename":         {`devices rename laptop "work laptop"`},
		"devices revoke":         {"devices revoke laptop"},
		"devices rotate":         {"devices rotate laptop"},
		"pair":                   {"pair", "pair --no-wait -o json"},
		"watch":                  {"watch --device laptop", "watch --cursor 0 -o json"},
		"cancel":                 {"cancel 3f2a9c1d-6b1e-4c53-9a50-2d1f0c7e8b44"},
		"history":                {"history --device laptop --limit 10", "history --pending"},
		"history show":           {"history show 3f2a9c1d-6b1e-4c53-9a50-2d1f0c7e8b44"},
		"commands":               {"commands", "commands -o json"},
		"approvals list":         {"approvals list --all"},
		"approvals show":         {"approvals show 3f2a9c1d"},
		"approvals watch":        {"approvals watch", "approvals watch -o json"},
		"models":                 {"models"},
		"agents":                 {"agents"},
		"tools list":             {"tools list --conversation 3f2a"},
		"conversations":          {"conversations", "conversations --archived"},
		"conversations list":     {"conversations list --archived", "conversations list --limit 0 -o json"},
		"conversations show":     {"conversations show 3f2a"},
		"conversations settings": {"conversations settings 3f2a", "conversations settings 3f2a --only read --deny undo", `conversations settings 3f2a --model ""`},
		"conversations send":     {`conversations send 3f2a "one more thing" --steer`},
		"conversations watch":    {"conversations watch 3f2a --after 0 -o json", "conversations watch 3f2a --until-idle"},
		"conversations history":  {"conversations history 3f2a --limit 0"},
		"conversations output":   {"conversations output 3f2a CALL-ID"},
		"conversations rename":   {`conversations rename 3f2a "Tabs of the trip"`},
		"conversations archive":  {"conversations archive 3f2a"},
		"conversations reopen":   {"conversations reopen 3f2a9c1d-6b1e-4c53-9a50-2d1f0c7e8b44"},
		"conversations stop":     {"conversations stop 3f2a"},
		"policy show":            {"policy show"},
		"policy allow":           {"policy allow --group tabs --device laptop --max-targets 100 --expires 30d"},
		"policy ask":             {"policy ask --group destructive --origin background"},
		"policy deny":            {"policy deny --group tabs --arg 'target.url=https://bank.example/*' --floor"},
		"policy remove":          {"policy remove 3f2a9c1d-6b1e-4c53-9a50-2d1f0c7e8b44"},
		"policy settings":        {"policy settings", "policy settings --within 12h --background wait"},
		"audit export":           {"audit export --since 24h --file day.audit"},
		"audit verify":           {"audit verify", "audit verify day.audit"},
		"token list":             {"token list"},
		"token revoke":           {"token revoke 3f2a9c1d-6b1e-4c53-9a50-2d1f0c7e8b44"},
		"workspace create":       {"workspace create team --file team.token"},
		"workspace list":         {"workspace list"},
		"version":                {"version -o json"},
		"serve":                  {"serve", "serve --config throwbar.yaml --data-dir ./data --listen 127.0.0.1:4000"},
		"doctor":                 {"doctor", "doctor --config throwbar.yaml"},
		"backup":                 {"backup throwbar.db.copy"},
		"export":                 {"export all.throwbar"},
		"import":                 {"import all.throwbar"},
	}
}
