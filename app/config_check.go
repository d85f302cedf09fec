package app

import (
	"log/slog"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"throwbar.dev/throwbar/agent/model"
	"throwbar.dev/throwbar/agent/tool"
	"throwbar.dev/throwbar/agent/tool/schema"
	"throwbar.dev/throwbar/catalog"
	"throwbar.dev/throwbar/gen"
	configv1 "throwbar.dev/throwbar/gen/go/throwbar/config/v1"
)

// check looks at what no rule of a single field says, and returns the models with their keys.
func (p *parse) check(config *configv1.Config, env func(string) string, log *slog.Logger) []ModelConfig {
	var models []ModelConfig
	lines := make(map[string]int)
	for _, m := range config.GetModels() {
		p.unique(lines, "model", m.GetName(), p.line(m, "name"))
		models = append(models, p.model(m, env, log))
	}
	agents := make(map[string]int)
	for _, a := range config.GetAgents() {
		p.unique(agents, "agent", a.GetName(), p.line(a, "name"))
		p.agentModels(a, lines)
	}
	p.agentTools(config.GetAgents())
	return models
}

// agentModels looks at the models that an agent names, by the lines of those that the file has.
func (p *parse) agentModels(a *configv1.AgentDefinition, lines map[string]int) {
	for i, name := range a.GetModels() {
		if lines[name] == 0 {
			p.problem(p.line(a, "models"), "the agent %s names the model %s, which the file does not have", a.GetName(), name)
		}
		if slices.Contains(a.GetModels()[:i], name) {
			p.problem(p.line(a, "models"), "the agent %s names the model %s twice", a.GetName(), name)
		}
	}
}

// agentTools looks at the tools that agents name: one that does not exist would be told only to whoever starts the agent.
func (p *parse) agentTools(agents []*configv1.AgentDefinition) {
	if len(agents) == 0 {
		return
	}
	catalogue, err := catalog.New(gen.Descriptors)
	if err != nil { // not reachable: they are the program's own
		p.problem(1, "%v", err)
		return
	}
	tools, err := tool.NewSet(catalogue)
	if err != nil { // not reachable either
		p.problem(1, "%v", err)
		return
	}
	for _, a := range agents {
		for i, name := range a.GetTools() {
			if slices.Contains(a.GetTools()[:i], name) {
				p.problem(p.line(a, "tools"), "the agent %s names the tool %s twice", a.GetName(), name)
			}
		}
		if err := tools.Check(tools.Listed(a.GetTools())); err != nil && len(a.GetTools()) > 0 {
			p.problem(p.line(a, "tools"), "the agent %s: %s", a.GetName(), withoutKeys(err.Error()))
		}
	}
}

// unique notes a name, which may be there once. That there is none at all is said by its rule.
func (p *parse) unique(lines map[string]int, what, name string, line int) {
	if name == "" {
		return
	}
	if lines[name] > 0 {
		p.problem(line, "a second %s with the name %s: line %d has the first", what, name, lines[name])
		return
	}
	lines[name] = line
}

// model is one model as the program uses it.
func (p *parse) model(m *configv1.Model, env func(string) string, log *slog.Logger) ModelConfig {
	out := ModelConfig{
		Name: m.GetName(), Model: m.GetModel(), BaseURL: strings.TrimSpace(m.GetBaseUrl()), Profile: profileOf(m.GetProfile()),
		Context: int(m.GetContextTokens()), Output: int(m.GetMaxOutputTokens()), Effort: m.GetEffort(), Prompted: m.GetPrompted(),
		Switches: switchesOf(m.GetSwitches()), IdleTimeout: m.GetIdleTimeout().AsDuration(),
	}
	if m.GetIdleTimeout() == nil {
		out.IdleTimeout = 0
	}
	out.Key = p.key(m, env, log)
	for _, wrong := range out.wrong() {
		line := p.line(m, wrong.field)
		if wrong.field == "key" {
			line = p.line(m, keyField(m))
		}
		p.problem(line, "the model %s: %v", m.GetName(), wrong.err)
	}
	if out.BaseURL == "" && m.GetKeyFile() == "" && m.GetKeyEnv() == "" && !p.unread(m) {
		p.problem(p.line(m, "name"), "the model %s has no key: name its file with key_file or its variable with key_env, or set "+
			"base_url for a server that wants none", m.GetName())
	}
	out.warn(log)
	if out.Context > 0 && out.Output >= out.Context {
		p.problem(p.line(m, "max_output_tokens"), "the model %s may answer with more tokens than it reads: max_output_tokens has to be "+
			"less than context_tokens", m.GetName())
	}
	return out
}

// key reads the key of a model. What it is, no text says.
func (p *parse) key(m *configv1.Model, env func(string) string, log *slog.Logger) string {
	switch file, variable := m.GetKeyFile(), m.GetKeyEnv(); {
	case file != "" && variable != "":
		p.problem(p.line(m, "key_env"), "the model %s has key_file and key_env: leave one of them out", m.GetName())
	case variable != "":
		key := strings.TrimSpace(env(variable))
		if key == "" {
			p.problem(p.line(m, "key_env"), "the model %s: the variable %s is not set", m.GetName(), withoutKeys(variable))
		}
		return key
	case file != "":
		if !filepath.IsAbs(file) {
			file = filepath.Join(filepath.Dir(p.path), file)
		}
		return p.keyFile(m, file, log)
	}
	return ""
}

func (p *parse) keyFile(m *configv1.Model, file string, log *slog.Logger) string {
	key, err := readKey(file, m.GetName(), log)
	if err != nil {
		p.problem(p.line(m, "key_file"), "the model %s: %v", m.GetName(), err)
	}
	return key
}

// keyField is the field that says where the key of a model is.
func keyField(m *configv1.Model) string {
	if m.GetKeyEnv() != "" {
		return "key_env"
	}
	return "key_file"
}

// withoutKeys replaces what looks like a key: people put one where its file or its variable is asked for.
func withoutKeys(text string) string {
	return regexp.MustCompile(`[A-Za-z0-9_-]{20,}`).ReplaceAllStringFunc(text, func(word string) string {
		if strings.ContainsAny(word, "0123456789") && strings.ToUpper(word) != word {
			return "(what looks like a key)"
		}
		return word
	})
}

func profileOf(profile configv1.SchemaProfile) schema.Profile {
	switch profile {
	case configv1.SchemaProfile_SCHEMA_PROFILE_OPENAI_STRICT:
		return schema.ProfileStrict
	case configv1.SchemaProfile_SCHEMA_PROFILE_GEMINI:
		return schema.ProfileGemini
	case configv1.SchemaProfile_SCHEMA_PROFILE_LOCAL:
		return schema.ProfileLocal
	case configv1.SchemaProfile_SCHEMA_PROFILE_UNSPECIFIED, configv1.SchemaProfile_SCHEMA_PROFILE_PORTABLE:
	}
	return schema.ProfilePortable
}

func switchesOf(s *configv1.ProviderSwitches) model.Switches {
	out := model.Switches{
		MaxTokensField: s.GetMaxTokensField(), DeveloperRole: s.GetDeveloperRole(), ReasoningField: s.GetReasoningField(),
		NoImages: s.GetNoImages(), EffortField: s.GetEffortField(),
	}
	if s != nil {
		out.StreamOptions, out.ParallelToolCalls = toggle(s.StreamOptions), toggle(s.ParallelToolCalls)
	}
	switch s.GetReasoningEcho() {
	case configv1.ReasoningEcho_REASONING_ECHO_TOOL_TURNS:
		out.ReasoningEcho = model.EchoToolTurns
	case configv1.ReasoningEcho_REASONING_ECHO_ALWAYS:
		out.ReasoningEcho = model.EchoAlways
	case configv1.ReasoningEcho_REASONING_ECHO_UNSPECIFIED, configv1.ReasoningEcho_REASONING_ECHO_NONE:
	}
	return out
}

func toggle(set *bool) model.Toggle {
	switch {
	case set == nil:
		return model.Default
	case *set:
		return model.On
	}
	return model.Off
}
