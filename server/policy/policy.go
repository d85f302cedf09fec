// Package policy decides whether a command may run, from its options and its targets. It never trusts the caller's
// word, and it knows no command by name.
package policy

import (
	"throwbar.dev/throwbar/catalog"
	optionv1 "throwbar.dev/throwbar/gen/go/throwbar/option/v1"
	"throwbar.dev/throwbar/server/fault"
)

// Check is nil if the command may run without asking a person. Until people can be asked, one that needs approval is
// denied and never run.
func Check(entry *catalog.Entry, targets int) error {
	if entry.Command.GetApproval() != optionv1.Approval_APPROVAL_AUTO {
		return fault.New(fault.Denied, "%s needs approval by a person, and this release cannot ask for one", entry.Name)
	}
	if most := entry.MaxTargets(); targets > most {
		return fault.New(fault.Denied,
			"%s on %d targets at once needs approval by a person, and this release cannot ask for one: use at most %d targets a command",
			entry.Name, targets, most)
	}
	return nil
}
