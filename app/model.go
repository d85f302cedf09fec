package app

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
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

// wrongField is a field of a model that no client can be made of.
type wrongField struct {
	field string // as in the configuration file; key for its key
	err   error
}

// wrong says of which fields no client can be made.
func (m ModelConfig) wrong() []wrongField {
	var out []wrongField
	for _, part := range []struct {
		field string
		of    ModelConfig
	}{
		{"base_url", ModelConfig{BaseURL: m.BaseURL}}, {"switches", ModelConfig{Switches: m.Switches}}, {"key", ModelConfig{Key: m.Key}},
	} {
		if _, err := part.of.client(); err != nil {
			out = append(out, wrongField{part.field, err})
		}
	}
	return out
}

// warn says in the log if everybody on the way to the model can read its key.
func (m ModelConfig) warn(log *slog.Logger) {
	base, err := url.Parse(m.BaseURL)
	if err == nil && base.Scheme == "http" && m.Key != "" && !isLoopback(base.Hostname()) {
		log.Warn("everybody on the way to the model can read its key: use https", slog.String("model", m.Name), slog.String("host", base.Host))
	}
}

// readKey reads a file that holds nothing but a key. What it is, no text says, nor what looks like one in the name of the file.
func readKey(file, model string, log *slog.Logger) (string, error) {
	raw, info, err := readSmall(file, maxKeyFile)
	key := strings.TrimSpace(string(raw))
	switch {
	case err != nil:
		return "", errors.New(withoutKeys(err.Error()))
	case key == "":
		return "", fmt.Errorf("%s is empty", withoutKeys(file))
	case info.Mode().Perm()&0o077 != 0:
		log.Warn("others on this machine can read the key of a model: chmod 600 it", slog.String("file", file), slog.String("model", model))
	}
	return key, nil
}

// modelFromEnv reads the four variables that set the model, and nothing else of the environment. A key that was put
// there for the default provider is sent to no other.
func modelFromEnv(env func(string) string, log *slog.Logger) (ModelConfig, error) {
	m := ModelConfig{
		Name: env("THROWBAR_MODEL"), BaseURL: strings.TrimSpace(env("THROWBAR_MODEL_BASE_URL")),
	}
	path := env("THROWBAR_MODEL_KEY_FILE")
	if path != "" {
		var err error
		if m.Key, err = readKey(path, m.Name, log); err != nil {
			return ModelConfig{}, cli.Errorf(cli.Invalid, "THROWBAR_MODEL_KEY_FILE: %v", err)
		}
	}
	variable := "THROWBAR_MODEL_KEY_FILE"
	if m.Key == "" && m.BaseURL == "" {
		variable, m.Key = "OPENAI_API_KEY", strings.TrimSpace(env("OPENAI_API_KEY"))
	}
	if wrong := m.wrong(); len(wrong) > 0 {
		if wrong[0].field == "base_url" {
			variable = "THROWBAR_MODEL_BASE_URL"
		}
		return ModelConfig{}, cli.Errorf(cli.Invalid, "%s: %v", variable, wrong[0].err)
	}
	m.warn(log)
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
		s.env, err = modelFromEnv(env, log)
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
