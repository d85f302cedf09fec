package app

import (
	"fmt"
	"os"
	"strings"

	"throwbar.dev/throwbar/clients/cli"
)

const (
	maxKeyFile = 64 << 10

	noModel = "no model is set: set THROWBAR_MODEL with THROWBAR_MODEL_BASE_URL (and THROWBAR_MODEL_KEY_FILE), or with OPENAI_API_KEY, and start the server again"
)

// ModelConfig says which model the agent talks to.
type ModelConfig struct {
	Name    string // empty if none is set
	BaseURL string // the default provider's if empty
	Key     string
	Hint    string // one line that says what to set; empty if a model is set
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
