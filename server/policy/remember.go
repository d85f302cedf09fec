package policy

import (
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/timestamppb"

	"throwbar.dev/throwbar/catalog"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	optionv1 "throwbar.dev/throwbar/gen/go/throwbar/option/v1"
	"throwbar.dev/throwbar/server/fault"
)

const (
	// RememberFor is how long a remembered decision counts where nobody says.
	RememberFor = 30 * 24 * time.Hour

	maxArguments = 64
	maxPath      = 256
	maxPattern   = 8192
)

// Memory is a decision that is to be remembered.
type Memory struct {
	Call     Call   // with the arguments that run
	Decider  string // id of the token that decided
	Approval string
	Ask      *controlv1.Remember
}

// Remembered makes an allow rule of an approved call. It covers exactly the call's arguments, but where Ask has
// patterns, each of which has to match this call: for whoever asked, on this device unless Ask says any, for as many
// targets as this call has. The rule has its id and times; whoever stores it tells the book by Learned.
func (b *Book) Remembered(m Memory) (*controlv1.PolicyRule, error) {
	c, now := &m.Call, b.cfg.Now()
	given := m.Ask.GetArguments()
	for _, a := range given {
		if err := checkArgument(a, []*catalog.Entry{c.Entry}); err != nil {
			return nil, err
		}
	}
	exact, err := exactly(c, given)
	if err != nil {
		return nil, err
	}
	r := &controlv1.PolicyRule{
		RuleId: b.cfg.NewID(), Verdict: controlv1.Verdict_VERDICT_ALLOW, Tool: c.Entry.Name, DeviceId: c.Device,
		Principal: c.Principal, MaxTargets: uint32(min(max(c.count(), 1), catalog.CeilingMaxTargets)), ExpiresAt: m.Ask.GetExpiresAt(),
		CreatedAt: timestamppb.New(now), CreatedBy: m.Decider, ApprovalId: m.Approval,
	}
	for _, a := range slices.Concat(exact, given) {
		r.Arguments = append(r.Arguments, proto.CloneOf(a))
	}
	if m.Ask.GetAnyDevice() {
		r.DeviceId = ""
	}
	if m.Ask.GetConversationOnly() {
		if c.Conversation == "" {
			return nil, fault.New(fault.Invalid, "this command is of no conversation: remember it for the workspace")
		}
		r.ConversationId = c.Conversation
	}
	if r.GetExpiresAt() == nil {
		r.ExpiresAt = timestamppb.New(now.Add(RememberFor))
	}
	return r, b.fits(c, r, now)
}

// fits says whether a remembered rule is sound, and covers the call that it was made of.
func (b *Book) fits(c *Call, r *controlv1.PolicyRule, now time.Time) error {
	if len(r.GetArguments()) > maxArguments {
		return fault.New(fault.Invalid, "%s has too many arguments to remember: add a rule by hand", c.Entry.Name)
	}
	for _, a := range r.GetArguments() {
		if len(a.GetPattern()) > maxPattern || len(a.GetPath()) > maxPath {
			return fault.New(fault.Invalid, "%s of this command is too long to remember: give a pattern for it", a.GetPath())
		}
	}
	if err := b.check(c.Workspace, r, now); err != nil {
		return err
	}
	compiled, err := compile(r, 0)
	if err != nil {
		return fault.New(fault.Invalid, "%v", err)
	}
	if ok, not := compiled.covers(&lookup{Call: c, now: now}); !ok {
		return fault.New(fault.Invalid, "the rule would not cover this very command: %s", not.words(c))
	}
	return nil
}

// exactly are patterns that match a call's arguments and no others, without those whose place the given ones take.
func exactly(c *Call, given []*controlv1.ArgumentPattern) ([]*controlv1.ArgumentPattern, error) {
	if c.Args == nil {
		return nil, nil
	}
	if len(c.Args.GetUnknown()) > 0 {
		return nil, fault.New(fault.Invalid, "%s has arguments that this server does not know: they cannot be remembered", c.Entry.Name)
	}
	var out []*controlv1.ArgumentPattern
	err := eachExactly(c.Args, "", func(fd protoreflect.FieldDescriptor, path, value string) error {
		if replaced(fd, path, given) {
			return nil
		}
		if catalog.Sensitive(fd) && value != "" {
			return fault.New(fault.Invalid, "%s is sensitive, and no rule remembers it: give the pattern * for it", path)
		}
		out = append(out, &controlv1.ArgumentPattern{Path: path, Pattern: escaped(value)})
		return nil
	})
	return out, err
}

// replaced says whether a given pattern takes the place of the exact one. One for the addresses of tabs does so for
// what says which tabs.
func replaced(fd protoreflect.FieldDescriptor, path string, given []*controlv1.ArgumentPattern) bool {
	return slices.ContainsFunc(given, func(a *controlv1.ArgumentPattern) bool {
		if a.GetPath() == targetURL {
			kind := catalog.TargetOf(fd)
			return kind == optionv1.Target_TARGET_TAB || kind == optionv1.Target_TARGET_TAB_URL
		}
		base := strings.TrimSuffix(a.GetPath(), whole)
		return base == path || base+whole == path ||
			(fd.IsList() && strings.HasPrefix(base, strings.TrimSuffix(path, whole)+"."))
	})
}

// eachExactly visits every field of a message, set or not, and of the messages that are set in it.
func eachExactly(
	m protoreflect.Message, prefix string, visit func(fd protoreflect.FieldDescriptor, path, value string) error,
) error {
	for i := range m.Descriptor().Fields().Len() {
		fd := m.Descriptor().Fields().Get(i)
		path, value := prefix+fd.JSONName(), ""
		isSingle := !fd.IsList() && !fd.IsMap()
		switch {
		case m.Has(fd) && isSingle:
			value = scalar(fd, m.Get(fd))
		case m.Has(fd):
			if path += whole; hides(m.Descriptor(), []string{fd.JSONName()}) {
				return fault.New(fault.Invalid, "%s may hold something sensitive, and no rule remembers it", path)
			}
			value = jsonOf(m, fd)
		}
		if err := visit(fd, path, value); err != nil {
			return err
		}
		if isSingle && fd.Message() != nil && m.Has(fd) {
			if len(m.Get(fd).Message().GetUnknown()) > 0 {
				return fault.New(fault.Invalid, "%s has something that this server does not know: it cannot be remembered", path)
			}
			if err := eachExactly(m.Get(fd).Message(), path+".", visit); err != nil {
				return err
			}
		}
	}
	return nil
}
