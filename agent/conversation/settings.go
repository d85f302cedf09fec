package conversation

import (
	"fmt"
	"slices"
	"strings"

	"throwbar.dev/throwbar/agent/tool"
	"throwbar.dev/throwbar/agent/turn"
	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
)

// Limits bound what agents make of a message. Zero leaves a bound at its default.
type Limits struct {
	Wakes      int // how often agents may wake a conversation in a row before a person writes in it
	ChainWakes int // how many wakes may follow from one message of a person, over all conversations
	Turns      int // how many turns work at once; others wait
	Queue      int // how many messages wait in one conversation
	Depth      int // how deep agents may start agents
	Children   int // how many agents work at once below one conversation
}

// The defaults of Limits.
const (
	DefaultWakes      = 6
	DefaultChainWakes = 12
	DefaultTurns      = 64
	DefaultQueue      = 200
	DefaultDepth      = 3
	DefaultChildren   = 8
)

func (l Limits) withDefaults() Limits {
	for _, d := range []struct {
		of    *int
		value int
	}{{&l.Wakes, DefaultWakes}, {&l.ChainWakes, DefaultChainWakes}, {&l.Turns, DefaultTurns}, {&l.Queue, DefaultQueue},
		{&l.Depth, DefaultDepth}, {&l.Children, DefaultChildren}} {
		if *d.of == 0 {
			*d.of = d.value
		}
	}
	return l
}

// efforts are what a caller may ask for. Anything else is ignored.
func efforts() []string { return []string{"none", "low", "medium", "high", "max"} }

// choices are the models of a turn, and how hard they think: as the turn says, else as the conversation says, else all
// that are configured. Names that are not configured any more are left out.
func (b *Book) choices(c Conversation, of *agentv1.ModelChoice) (choices []turn.Choice, effort string) {
	names := of.GetModels()
	if len(names) == 0 {
		names = c.Settings.GetModel().GetModels()
	}
	for _, e := range []string{of.GetEffort(), c.Settings.GetModel().GetEffort()} {
		if effort == "" && slices.Contains(efforts(), e) {
			effort = e
		}
	}
	if len(names) == 0 {
		return b.config.Models, effort
	}
	for _, name := range names {
		if at := slices.IndexFunc(b.config.Models, func(m turn.Choice) bool { return m.Name == name }); at >= 0 {
			choices = append(choices, b.config.Models[at])
		}
	}
	return choices, effort
}

// hint says what to do if no model is left.
func (b *Book) hint(c Conversation, of *agentv1.ModelChoice) string {
	switch choices, _ := b.choices(c, of); {
	case len(b.config.Models) == 0:
		return b.config.Hint
	case len(choices) == 0:
		return "none of the models that this conversation names is configured: choose one of " + b.modelNames()
	default:
		return ""
	}
}

func (b *Book) modelNames() string {
	names := make([]string, len(b.config.Models))
	for i, m := range b.config.Models {
		names[i] = m.Name
	}
	return joined(names)
}

func joined(names []string) string { return strings.Join(names, ", ") }

// wakes is how often agents may wake a conversation in a row: as its settings say, else as the server does.
func (b *Book) wakes(s *agentv1.ConversationSettings) int {
	if own := s.GetWakes(); own != nil && own.Most != nil {
		return int(own.GetMost())
	}
	return b.limits().Wakes
}

// rebound gives a conversation another bound of wakes. Those that were since a person wrote in it count. What was held waits on.
func (b *Book) rebound(c *Conversation, settings *agentv1.ConversationSettings) {
	was := max(b.wakes(c.Settings)-c.Wakes, 0)
	if c.Wakes = max(b.wakes(settings)-was, 0); c.Wakes > 0 {
		c.Holds &^= HeldByWakes
	}
}

// checkChoice refuses names of models that are not configured.
func (b *Book) checkChoice(choice *agentv1.ModelChoice) error {
	for _, name := range choice.GetModels() {
		if !slices.ContainsFunc(b.config.Models, func(m turn.Choice) bool { return m.Name == name }) {
			if len(b.config.Models) == 0 {
				return errorf(NoModel, "%s", b.config.Hint)
			}
			return errorf(Invalid, "there is no model %q: choose one of %s", shown(name), b.modelNames())
		}
	}
	return nil
}

// checkSettings refuses what a conversation cannot have.
func (b *Book) checkSettings(s *agentv1.ConversationSettings) error {
	if err := b.checkChoice(s.GetModel()); err != nil {
		return err
	}
	if b.config.Check == nil || s.GetGrants() == nil {
		return nil
	}
	if err := b.config.Check(accessOf(s.GetGrants())); err != nil {
		return errorf(Invalid, "%s", err.Error())
	}
	return nil
}

// choiceOf is the choice of a model for a turn that messages begin: the last one that a message makes.
func choiceOf(letters []Letter) *agentv1.ModelChoice {
	for _, l := range slices.Backward(letters) {
		if l.Choice != nil {
			return l.Choice
		}
	}
	return nil
}

// accessOf is what grants give.
func accessOf(g *agentv1.Grants) tool.Access {
	return tool.Access{Only: g.GetOnly(), Extra: g.GetExtra(), Denied: g.GetDenied()}
}

// promptOf is what an agent is told of its conversation.
func promptOf(s *agentv1.ConversationSettings) string {
	prompt := strings.TrimSpace(s.GetPrompt())
	if dir := s.GetWorkingDirectory(); dir != "" {
		line := fmt.Sprintf("The work is about the folder %s.", tool.Line(dir))
		prompt = strings.TrimSpace(prompt + "\n\n" + line)
	}
	return prompt
}
