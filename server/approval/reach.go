package approval

import (
	"sync"

	optionv1 "throwbar.dev/throwbar/gen/go/throwbar/option/v1"
)

// Decider is a caller with a token who follows or decides approvals.
type Decider struct {
	Workspace, Token string

	Scope optionv1.Scope
}

// may says whether the decider may approve what a principal asks for: an owner anything, an operator what others ask for.
func (d Decider) may(principal string) bool {
	switch d.Scope {
	case optionv1.Scope_SCOPE_OWNER:
		return true
	case optionv1.Scope_SCOPE_OPERATOR:
		return d.Token != principal
	default:
		return false
	}
}

// Reach counts who follows the approvals.
type Reach struct {
	mu        sync.Mutex
	followers map[Decider]int // guarded by mu
}

// Join counts a follower in until leave is called.
func (r *Reach) Join(d Decider) (leave func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.followers == nil {
		r.followers = map[Decider]int{}
	}
	r.followers[d]++
	return sync.OnceFunc(func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.followers[d]--; r.followers[d] == 0 {
			delete(r.followers, d)
		}
	})
}

// Reachable says whether somebody follows now who may approve what a principal asks for.
func (r *Reach) Reachable(workspace, principal string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for d := range r.followers {
		if d.Workspace == workspace && d.may(principal) {
			return true
		}
	}
	return false
}
