package policy

import (
	"fmt"
	"slices"
	"time"

	"throwbar.dev/throwbar/catalog"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	optionv1 "throwbar.dev/throwbar/gen/go/throwbar/option/v1"
)

const (
	groupRead        = "read"
	groupReversible  = "reversible"
	groupDestructive = "destructive"
)

// rule is a compiled rule. It never changes.
type rule struct {
	*controlv1.PolicyRule

	version uint64 // of the policy that it came with
	rank    int    // of two rules that match the one with the higher rank decides
	expires time.Time
	args    []argument
}

func compile(r *controlv1.PolicyRule, version uint64) (*rule, error) {
	out := &rule{PolicyRule: r, version: version, rank: rank(r)}
	if r.GetExpiresAt() != nil {
		out.expires = r.GetExpiresAt().AsTime()
	}
	for _, a := range r.GetArguments() {
		arg, err := parseArgument(a.GetPath(), a.GetPattern())
		if err != nil {
			return nil, fmt.Errorf("pattern of %s: %w", a.GetPath(), err)
		}
		out.args = append(out.args, arg)
	}
	return out, nil
}

// layer is the level of a rule.
func layer(r *controlv1.PolicyRule) controlv1.Layer {
	switch {
	case r.GetFloor():
		return controlv1.Layer_LAYER_FLOOR
	case r.GetOrigin() != controlv1.Origin_ORIGIN_UNSPECIFIED:
		return controlv1.Layer_LAYER_ORIGIN
	case r.GetConversationId() != "":
		return controlv1.Layer_LAYER_CONVERSATION
	default:
		return controlv1.Layer_LAYER_WORKSPACE
	}
}

// rank orders rules: by layer, then by how exactly they say what they are about, then by strictness.
func rank(r *controlv1.PolicyRule) int {
	exact := 0
	for _, part := range []struct {
		given bool
		worth int // more than all that are worth less together
	}{
		{len(r.GetArguments()) > 0, 16},
		{r.GetDeviceId() != "", 4},
		{r.GetPrincipal() != "", 4},
		{r.GetTool() != "", 2},
		{r.GetGroup() != "", 1},
	} {
		if part.given {
			exact += part.worth
		}
	}
	return int(layer(r))<<16 | exact<<8 | int(r.GetVerdict())
}

// before says whether a rule is looked at before another one; of two that match the later one decides.
func (r *rule) before(other *rule) int {
	if r.rank != other.rank {
		return r.rank - other.rank
	}
	if r.version != other.version {
		return int(int64(r.version) - int64(other.version))
	}
	return slices.Compare([]byte(r.GetRuleId()), []byte(other.GetRuleId()))
}

// effect is the group that a command, query or facility belongs to by what it does.
func effect(e *catalog.Entry) string {
	strongest := e.Command.GetEffect()
	if e.Facility != nil {
		strongest = e.Facility.GetEffect()
	}
	switch strongest {
	case optionv1.Effect_EFFECT_READ:
		return groupRead
	case optionv1.Effect_EFFECT_REVERSIBLE:
		return groupReversible
	case optionv1.Effect_EFFECT_DESTRUCTIVE:
		return groupDestructive
	default: // a query
		return groupRead
	}
}

// lookup is a call with what is found out about it once.
type lookup struct {
	*Call

	now  time.Time
	urls []string
	read bool // urls were read

	looked, odd bool // arguments were looked through, and are strange

	asked bool     // asks was found out
	asks  []string // arguments that are set and have a person asked

	// What was found last: many rules ask for the same argument.
	path   string
	values []string
	found  bool
}

func (l *lookup) argument(a *argument) ([]string, bool) {
	if l.path != a.path {
		l.path = a.path
		l.values, l.found = a.values(l.Args)
	}
	return l.values, l.found
}

// strange says whether the arguments hold something, at any depth, that this server's contract does not have: no pattern
// can say anything of it, and a newer device may act on it.
func (l *lookup) strange() bool {
	if !l.looked {
		l.looked, l.odd = true, l.Args != nil && strange(l.Args)
	}
	return l.odd
}

// consents are the arguments that are set and have a person asked.
func (l *lookup) consents() []string {
	if !l.asked {
		l.asked, l.asks = true, l.Entry.ConsentsIn(l.Args)
	}
	return l.asks
}

func (l *lookup) addresses() []string {
	if !l.read {
		l.read = true
		if l.URLs != nil {
			l.urls = l.URLs()
		}
	}
	return l.urls
}

// covers says whether a rule covers a call, and if not, why. Nothing here tells the value of an argument: a call's
// arguments may be sensitive, and whoever reads the reason may not be who sent them.
func (r *rule) covers(l *lookup) (bool, mismatch) {
	switch {
	case !r.expires.IsZero() && !l.now.Before(r.expires):
		return false, mismatch{what: "it has expired"}
	case r.GetConversationId() != "" && r.GetConversationId() != l.Conversation:
		return false, mismatch{what: "it is about another conversation"}
	case r.GetOrigin() != controlv1.Origin_ORIGIN_UNSPECIFIED && r.GetOrigin() != l.Origin:
		return false, mismatch{what: "it is about commands from elsewhere"}
	case r.GetDeviceId() != "" && r.GetDeviceId() != l.Device:
		return false, mismatch{what: "it is about another device"}
	case r.GetPrincipal() != "" && r.GetPrincipal() != l.Principal && r.GetPrincipal() != l.Conversation:
		return false, mismatch{what: "it is about another caller"}
	case r.GetVerdict() == controlv1.Verdict_VERDICT_ASK && l.Entry.Command == nil && effect(l.Entry) == groupRead:
		return false, mismatch{what: "nobody can be asked about what only reads"}
	case r.GetVerdict() == controlv1.Verdict_VERDICT_ALLOW && len(r.args) > 0 && l.strange():
		return false, mismatch{what: "there are arguments that this server does not know"}
	case r.GetVerdict() == controlv1.Verdict_VERDICT_ALLOW && l.count() > r.most(l.Entry):
		return false, mismatch{what: "it covers fewer targets", most: r.most(l.Entry)}
	}
	if path := r.unnamed(l); path != "" {
		return false, mismatch{what: "a person is asked whenever " + path + " is set, unless a pattern of the rule is for it"}
	}
	for i := range r.args {
		if !r.holds(&r.args[i], l) {
			return false, mismatch{what: "its pattern does not cover the argument", path: r.args[i].path}
		}
	}
	return true, mismatch{}
}

// unnamed is an argument of a call that has a person asked and that a rule which allows does not name; empty if there is
// none. What allows a command in general does not allow that.
func (r *rule) unnamed(l *lookup) string {
	if r.GetVerdict() != controlv1.Verdict_VERDICT_ALLOW {
		return ""
	}
	for _, path := range l.consents() {
		if !slices.ContainsFunc(r.args, func(a argument) bool { return a.names(path) }) {
			return path
		}
	}
	return ""
}

// mismatch is why a rule does not cover a call. It becomes words only where somebody asks.
type mismatch struct {
	what, path string
	most       int
}

// most is on how many targets a rule that allows covers a command.
func (r *rule) most(e *catalog.Entry) int {
	if n := int(r.GetMaxTargets()); n > 0 {
		return n
	}
	if e.Command == nil {
		return catalog.CeilingMaxTargets
	}
	return e.MaxTargets()
}

func (r *rule) holds(a *argument, l *lookup) bool {
	allows := r.GetVerdict() == controlv1.Verdict_VERDICT_ALLOW
	var values []string
	if a.path == targetURL {
		values = l.addresses()
		// Of a tab whose address is not known nobody can say that it matches.
		if len(values) == 0 || allows && len(values) < l.Targets {
			values = append(slices.Clip(values), "")
		}
	} else {
		var ok bool
		if values, ok = l.argument(a); !ok {
			return false
		}
	}
	if allows {
		return !slices.ContainsFunc(values, func(v string) bool { return !a.glob.match(v) })
	}
	return slices.ContainsFunc(values, a.glob.match)
}

func sortRules(rules []*rule) { slices.SortFunc(rules, (*rule).before) }
