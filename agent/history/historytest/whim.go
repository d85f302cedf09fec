package historytest

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strings"
	"sync"

	"throwbar.dev/throwbar/agent/model/modeltest"
)

// whimRounds is after how many answers with calls the model says something: turns end.
const whimRounds = 4

// Whim is a model that does what comes to its mind: it answers, or calls one tool or several, also with wrong arguments, names
// that there are not and ids that it has used before, and now and then its answer breaks off. What it does follows from the
// seed and from what it is shown, so that a server that is started again meets the same model. Use it as the rule of a
// [modeltest.Config] over the world of agenttest.
func Whim(seed uint64) modeltest.Step {
	return modeltest.Func(func(r *modeltest.Received) modeltest.Reply {
		h := fnv.New64a()
		_, _ = fmt.Fprint(h, len(r.Messages), r.LastUser(), r.Round())
		random := rand.New(rand.NewPCG(seed, h.Sum64()))
		if len(r.Tools) == 0 || r.Round() >= whimRounds || random.IntN(5) == 0 {
			return modeltest.Text(fmt.Sprintf("That is all about %q.", lastLine(r.LastUser())))
		}
		reply := modeltest.Reply{Unchecked: true}
		for range 1 + random.IntN(3) {
			reply.Calls = append(reply.Calls, whimCall(random, r))
		}
		switch random.IntN(12) {
		case 0:
			reply.Text = "Let me look."
		case 1:
			reply.Calls[0].ID = "call_0"
		case 2:
			reply.CutAfter = 1 + random.IntN(4)
		case 3:
			reply.Reasoning = "Where could that be?"
		}
		return reply
	})
}

func lastLine(text string) string { return text[strings.LastIndexByte(text, '\n')+1:] }

// whimCall is a call that makes sense, mostly.
func whimCall(random *rand.Rand, r *modeltest.Received) modeltest.Call {
	switch random.IntN(12) {
	case 0:
		return modeltest.NewCall("closeTabs", `{"tabIds":7}`)
	case 1:
		return modeltest.NewCall("closeAllTabs", `{}`)
	case 2, 3:
		return modeltest.NewCall("listDevices", `{}`)
	case 4, 5, 6:
		return modeltest.NewCall("searchTabs", map[string]any{"query": pick(random, "page", "news", "holiday", "")})
	case 7, 8, 9:
		return modeltest.NewCall("openTab", map[string]any{"deviceId": "lap", "url": fmt.Sprintf("https://example.org/%d", random.IntN(1e6))})
	default:
		ids := []string{"lap_tbb-1"}
		for _, m := range r.Messages {
			if m.Role == "tool" {
				ids = append(ids, modeltest.Collect(m.Text, "tabId")...)
			}
		}
		args, err := json.Marshal(map[string]any{"tabIds": []string{pick(random, ids...)}})
		if err != nil {
			panic(err) // texts
		}
		return modeltest.NewCall("closeTabs", string(args))
	}
}

// Trap goes off when something was passed for the n-th time: put [Trap.Pass] where a turn can be stopped or a process can die,
// on every write, request, piece of an answer and command.
type Trap struct {
	// Off is called once, by whoever passes then.
	Off func()

	mu   sync.Mutex
	left int // guarded by mu
}

// NewTrap makes a trap that goes off at pass n, from one on.
func NewTrap(n int, off func()) *Trap { return &Trap{Off: off, left: n} }

// Pass is one pass.
func (t *Trap) Pass() {
	t.mu.Lock()
	t.left--
	now := t.left == 0
	t.mu.Unlock()
	if now {
		t.Off()
	}
}

// Passed says whether it went off.
func (t *Trap) Passed() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.left <= 0
}
