package app

import (
	"cmp"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"throwbar.dev/throwbar/agent/model"
	"throwbar.dev/throwbar/agent/tool/schema"
	"throwbar.dev/throwbar/agent/turn"
	"throwbar.dev/throwbar/clients/cli"
)

const (
	maxKeyFile = 64 << 10

	noModel = "no model is set: name some in a file (--config, see docs/configuration.md), or set THROWBAR_MODEL with THROWBAR_MODEL_BASE_URL (and THROWBAR_MODEL_KEY_FILE), or with OPENAI_API_KEY, and start the server again"
)

// ModelConfig says which model the agent talks to.
type ModelConfig struct {
	Name    string // by which it is chosen; empty if none is set
	Model   string // at its provider; Name if empty
	BaseURL string // the default provider's if empty
	Key     string // sent to BaseURL and nowhere else
	Hint    string // one line that says what to set; empty if a model is set

	Profile     schema.Profile // in which form tools are described
	Context     int            // tokens that it reads at most; DefaultContext if zero
	Output      int            // tokens that an answer may have; left to the provider if zero
	Effort      string         // where nobody else says
	Prompted    bool           // it cannot call tools
	Switches    model.Switches
	IdleTimeout time.Duration // how long the provider may be silent; the package's own if zero
}

// DefaultContext is how many tokens a model reads where nobody says.
const DefaultContext = 128_000

// Format prints the configuration without the key, whatever the verb.
func (m ModelConfig) Format(state fmt.State, _ rune) {
	_, _ = fmt.Fprintf(state, "model %q", m.Name)
}

// LogValue logs the configuration without the key.
func (m ModelConfig) LogValue() slog.Value { return slog.StringValue(m.Name) }

// MarshalJSON leaves the key out.
func (m ModelConfig) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]string{"name": m.Name, "model": m.Model, "baseUrl": m.BaseURL})
}

// client is what speaks with the model.
func (m ModelConfig) client() (*model.Client, error) {
	return model.New(model.Config{
		BaseURL: m.BaseURL, Key: m.Key, Model: cmp.Or(m.Model, m.Name), IdleTimeout: m.IdleTimeout, Switches: m.Switches,
	})
}

// choice is the model as turns use it.
func (m ModelConfig) choice() (turn.Choice, error) {
	client, err := m.client()
	if err != nil {
		return turn.Choice{}, fmt.Errorf("set up the model %s: %w", m.Name, err)
	}
	var speaks turn.Model = client
	if m.Prompted {
		speaks = model.NewPrompted(client)
	}
	return turn.Choice{
		Name: m.Name, Model: speaks, Profile: cmp.Or(m.Profile, schema.ProfilePortable), Context: cmp.Or(m.Context, DefaultContext),
		Output: m.Output, Images: !m.Switches.NoImages, Effort: m.Effort,
	}, nil
}

// choices are the models that the agent may ask, the default first. There are none if nothing names one.
func (c Config) choices() ([]turn.Choice, error) {
	var out []turn.Choice
	for _, m := range c.models() {
		choice, err := m.choice()
		if err != nil {
			return nil, err
		}
		out = append(out, choice)
	}
	return out, nil
}

// models are those that the configuration names: Models, or the one of Model.
func (c Config) models() []ModelConfig {
	if len(c.Models) == 0 && c.Model.Name != "" && c.Model.Hint == "" {
		return []ModelConfig{c.Model}
	}
	return c.Models
}

// modelFromEnv reads the four variables that set the model, and nothing else of the environment. A key that was put
// there for the default provider is sent to no other.
func modelFromEnv(env func(string) string) (ModelConfig, error) {
	m := ModelConfig{
		Name: env("THROWBAR_MODEL"), BaseURL: strings.TrimSpace(env("THROWBAR_MODEL_BASE_URL")),
	}
	if path := env("THROWBAR_MODEL_KEY_FILE"); path != "" {
		info, err := os.Stat(path)
		if err != nil {
			return ModelConfig{}, cli.Errorf(cli.Invalid, "THROWBAR_MODEL_KEY_FILE: %v", err)
		}
		if info.Size() > maxKeyFile {
			return ModelConfig{}, cli.Errorf(cli.Invalid, "THROWBAR_MODEL_KEY_FILE: %s is too large for a key", path)
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return ModelConfig{}, fmt.Errorf("read model key: %w", err)
		}
		m.Key = strings.TrimSpace(string(raw))
	}
	if m.Key == "" && m.BaseURL == "" {
		m.Key = env("OPENAI_API_KEY")
	}
	switch {
	case m.Name == "" && m.BaseURL == "" && m.Key == "":
		m.Hint = noModel
	case m.Name == "":
		m.Hint = "no model is set: set THROWBAR_MODEL to the model's name and start the server again"
	case m.BaseURL == "" && m.Key == "":
		m.Name = ""
		m.Hint = "the model has no key: set OPENAI_API_KEY or THROWBAR_MODEL_KEY_FILE, or THROWBAR_MODEL_BASE_URL for a server that wants none, and start the server again"
	}
	return m, nil
}

// modelSettings are the models that the file and the environment name.
type modelSettings struct {
	file *fileConfig // nil if there is none
	env  ModelConfig
}

// setModels reads the configuration file, if one is named, and the variables. Where the file names models, the variables
// are not looked at; that they are set nevertheless is said.
func setModels(path string, env func(string) string, log *slog.Logger) (modelSettings, error) {
	var s modelSettings
	var err error
	if path != "" {
		if s.file, err = readConfig(path, env, log); err != nil {
			return modelSettings{}, err
		}
	}
	if s.file == nil || len(s.file.models) == 0 {
		s.env, err = modelFromEnv(env)
		return s, err
	}
	for _, name := range []string{"THROWBAR_MODEL", "THROWBAR_MODEL_BASE_URL", "THROWBAR_MODEL_KEY_FILE"} {
		if env(name) != "" {
			log.Warn("the variable is set and not used: the models are those of the configuration file",
				slog.String("variable", name), slog.String("file", path))
		}
	}
	return s, nil
}

// hint says what to set if there is no model.
func (s modelSettings) hint() string { return s.env.Hint }

// into adds the settings to the configuration of a server.
func (s modelSettings) into(c Config) Config {
	c.Model = s.env
	if s.file != nil {
		c.Models, c.Definitions, c.AgentLimits = s.file.models, s.file.config.GetAgents(), s.file.config.GetAgentLimits()
	}
	return c
}
