package policy_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"throwbar.dev/throwbar/catalog"
	"throwbar.dev/throwbar/gen"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	"throwbar.dev/throwbar/server/fault"
	"throwbar.dev/throwbar/server/policy"
)

const (
	allow = controlv1.Verdict_VERDICT_ALLOW
	ask   = controlv1.Verdict_VERDICT_ASK
	deny  = controlv1.Verdict_VERDICT_DENY

	interactive = controlv1.Origin_ORIGIN_INTERACTIVE
	background  = controlv1.Origin_ORIGIN_BACKGROUND
)

var errDisk = errors.New("disk")

// memory is a store that a test can break.
type memory struct {
	states  map[string]*policy.State
	fail    error
	unknown bool // what fails is written all the same
}

func (m *memory) Policies(context.Context) ([]policy.State, error) {
	var out []policy.State
	for _, s := range m.states {
		out = append(out, *s)
	}
	return out, nil
}

func (m *memory) write(workspace string, change func(*policy.State)) (uint64, error) {
	if m.fail != nil && !m.unknown {
		return 0, m.fail
	}
	s := m.states[workspace]
	if s == nil {
		s = &policy.State{Workspace: workspace}
		m.states[workspace] = s
	}
	s.Version++
	change(s)
	return s.Version, m.fail
}

func (m *memory) AddRule(_ context.Context, by policy.Change, r *controlv1.PolicyRule) (uint64, error) {
	return m.write(by.Workspace, func(s *policy.State) { s.Rules = append(s.Rules, proto.CloneOf(r)) })
}

func (m *memory) RemoveRule(_ context.Context, by policy.Change, r *controlv1.PolicyRule) (uint64, error) {
	return m.write(by.Workspace, func(s *policy.State) {
		var left []*controlv1.PolicyRule
		for _, other := range s.Rules {
			if other.GetRuleId() != r.GetRuleId() {
				left = append(left, other)
			}
		}
		s.Rules = left
	})
}

func (m *memory) SetSettings(_ context.Context, by policy.Change, p *controlv1.PolicySettings) (uint64, error) {
	return m.write(by.Workspace, func(s *policy.State) { s.Settings = p })
}

// bench is a book with what it stands on.
type bench struct {
	*policy.Book

	store *memory
	known *catalog.Catalogue
	now   time.Time
	tb    testing.TB
}

// catalogue is read once: it takes longer than all else that a test or a fuzzed input does here.
var catalogue = sync.OnceValues(func() (*catalog.Catalogue, error) { return catalog.New(gen.Descriptors) })

func newBench(tb testing.TB) *bench {
	tb.Helper()
	known, err := catalogue()
	if err != nil {
		tb.Fatal(err)
	}
	b := &bench{
		store: &memory{states: map[string]*policy.State{}}, known: known, now: time.UnixMilli(1_700_000_000_000), tb: tb,
	}
	b.restart()
	return b
}

func (b *bench) restart() {
	b.tb.Helper()
	n := 0
	var err error
	b.Book, err = policy.New(b.tb.Context(), policy.Config{
		Store: b.store, Catalogue: b.known, Now: func() time.Time { return b.now },
		NewID: func() string { n++; return fmt.Sprintf("rule-%04d-%d", n, len(b.store.states)) },
		Known: func(workspace, id string) error {
			if workspace != "w" || id != "laptop" && id != "work" {
				return fault.New(fault.NotFound, "there is no device %s", id)
			}
			return nil
		},
	})
	if err != nil {
		b.tb.Fatal(err)
	}
}

func (b *bench) add(r *controlv1.PolicyRule) string {
	b.tb.Helper()
	out, _, err := b.Add(b.tb.Context(), "w", "owner", r)
	if err != nil {
		b.tb.Fatal(err)
	}
	return out.GetRuleId()
}

// call is a call by its tool and arguments, from a laptop.
func (b *bench) call(tool, args string, targets int, urls ...string) policy.Call {
	b.tb.Helper()
	e, ok := b.known.Lookup(tool)
	if !ok {
		b.tb.Fatalf("there is no %s", tool)
	}
	m := e.New()
	if err := protojson.Unmarshal([]byte(args), m); err != nil {
		b.tb.Fatal(err)
	}
	return policy.Call{
		Workspace: "w", Conversation: "chat", Principal: "token", Device: "laptop", Origin: interactive, Entry: e, Args: m,
		Targets: targets, URLs: func() []string { return urls },
	}
}

// decide is what Decide and Explain say; they have to agree.
func (b *bench) decide(c policy.Call) policy.Decision {
	b.tb.Helper()
	d := b.Decide(c)
	explained, steps := b.Explain(c)
	last := &controlv1.PolicyStep{}
	for _, s := range steps {
		if s.GetMatched() {
			last = s
		}
	}
	if d != explained || last.GetVerdict() != d.Verdict || last.GetRuleId() != d.Rule {
		b.tb.Errorf("decided %+v, explained %+v by %v", d, explained, last)
	}
	return d
}

func args(pairs ...string) []*controlv1.ArgumentPattern {
	var out []*controlv1.ArgumentPattern
	for i := 0; i < len(pairs); i += 2 {
		out = append(out, &controlv1.ArgumentPattern{Path: pairs[i], Pattern: pairs[i+1]})
	}
	return out
}
