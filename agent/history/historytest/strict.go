// Package historytest makes conversations for tests: random ones that look like those of people, what aborts and crashes
// leave of them, and worse; models that behave at random; and the check of the strictest provider.
package historytest

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"throwbar.dev/throwbar/agent/model"
	"throwbar.dev/throwbar/agent/model/modeltest"
)

// Provider is the strict double and a client of it in this process.
type Provider struct {
	*modeltest.Handler
	Client *model.Client
}

// NewProvider makes a provider that answers by a rule.
func NewProvider(config modeltest.Config) (*Provider, error) {
	handler := modeltest.NewHandler(config)
	client, err := model.New(model.Config{
		BaseURL: "http://model.test/v1", Key: modeltest.Key, Model: "test", HTTPClient: &http.Client{Transport: direct{handler}},
	})
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	return &Provider{Handler: handler, Client: client}, nil
}

// Strict sends a history to the strictest provider and returns its refusal. What only one provider knows of calls is left out:
// another would refuse it.
func Strict(messages []model.Message) error {
	p, err := NewProvider(modeltest.Config{Rule: modeltest.Text("ok")})
	if err != nil {
		return err
	}
	return p.Strict(messages)
}

// Strict is [Strict] with a provider that is there already.
func (p *Provider) Strict(messages []model.Message) error {
	plain := make([]model.Message, len(messages))
	for i, m := range messages {
		calls := m.Calls
		m.Calls = nil
		for _, call := range calls {
			call.Extra = nil
			m.Calls = append(m.Calls, call)
		}
		plain[i] = m
	}
	_, err := p.Client.Complete(context.Background(), model.Request{Messages: plain}, model.Sink{})
	for _, v := range p.TakeViolations() {
		err = errors.Join(err, errors.New(v.String()))
	}
	p.Reset()
	return err
}
