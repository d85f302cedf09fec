// Package policy decides whether a command may run, asks a person first, or is denied: from its options, its targets
// and the rules of its workspace. It never trusts the caller's word, and it knows no command by name.
package policy

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"throwbar.dev/throwbar/catalog"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	optionv1 "throwbar.dev/throwbar/gen/go/throwbar/option/v1"
)

// Call is a command on one device, a query, or what an agent itself does, as policy sees it.
type Call struct {
	Workspace, Conversation, Principal, Device string

	Origin  controlv1.Origin
	Entry   *catalog.Entry
	Args    protoreflect.Message
	Targets int // on how many things it would act
	// Together is on how many things the whole request would act, on all its devices: what is large asks, however it is
	// spread. Zero if there is only this device.
	Together int
	// Before is on how many things earlier commands of the same act have acted that can destroy something: what is large
	// asks, however many commands it is cut into.
	Before int
	URLs   func() []string // addresses of the tabs that it would act on; may be nil
}

// count is on how many things it would act, with all that belongs to the same request, and to the same act before it.
func (c *Call) count() int { return max(c.Targets, c.Together) + c.Before }

// Decision is what policy says of a call.
type Decision struct {
	Verdict controlv1.Verdict
	Rule    string // id of the rule that decided; empty where the command's own option did
	Reason  string // in words that whoever asked may read
	Version uint64 // of the workspace's policy
}

// Option is what a command's own option says of a call, without any rule. Nothing else asks a person by itself: what an
// agent can do by itself is off until a conversation is granted it, or acts by commands, each of which is decided again.
func Option(c Call) Decision {
	switch {
	case c.Entry.Facility != nil:
		return Decision{Verdict: controlv1.Verdict_VERDICT_ALLOW, Reason: c.Entry.Name + " is for the conversation's grants to give"}
	case c.Entry.Command == nil:
		return Decision{Verdict: controlv1.Verdict_VERDICT_ALLOW, Reason: c.Entry.Name + " only reads what the server knows"}
	}
	consents := c.Entry.ConsentsIn(c.Args)
	switch most := c.Entry.MaxTargets(); {
	case c.Entry.Command.GetApproval() != optionv1.Approval_APPROVAL_AUTO:
		return Decision{Verdict: controlv1.Verdict_VERDICT_ASK, Reason: c.Entry.Name + " always asks a person" + alsoSet(consents)}
	case c.count() > most:
		return Decision{
			Verdict: controlv1.Verdict_VERDICT_ASK,
			Reason: fmt.Sprintf("%s acts on %d targets%s, and asks a person for more than %d at once%s",
				c.Entry.Name, c.count(), c.earlier(), most, alsoSet(consents)),
		}
	case len(consents) > 0:
		return Decision{
			Verdict: controlv1.Verdict_VERDICT_ASK,
			Reason:  fmt.Sprintf("%s asks a person whenever %s is set", c.Entry.Name, strings.Join(consents, " or ")),
		}
	default:
		return Decision{Verdict: controlv1.Verdict_VERDICT_ALLOW, Reason: c.Entry.Name + " runs without asking"}
	}
}

// earlier says in a reason to ask how many of the targets other commands of the same act had.
func (c *Call) earlier() string {
	if c.Before == 0 {
		return ""
	}
	return fmt.Sprintf(" together with %d that agents have acted on before because of the same message", c.Before)
}

// alsoSet says in a reason to ask which arguments are set that would have a person asked on their own.
func alsoSet(consents []string) string {
	if len(consents) == 0 {
		return ""
	}
	return "; it has " + strings.Join(consents, " and ") + " set"
}
