package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"throwbar.dev/throwbar/agent/model"
	"throwbar.dev/throwbar/clients/cli"
)

// lookProviders asks the provider of each model that a server started here would use which models it has. It asks no model
// anything, so that it costs nothing.
func (d *doctor) lookProviders(ctx context.Context) (string, string) {
	if u, err := url.Parse(d.server); err == nil && !isLoopback(u.Hostname()) {
		return hopSkipped, "the server is on another machine, which knows its models"
	}
	settings, err := setModels(d.file, d.env, slog.New(slog.DiscardHandler))
	if err != nil {
		return hopFailed, wrongFile(err)
	}
	configs := settings.into(Config{}).models()
	if len(configs) == 0 {
		return hopSkipped, "neither this shell nor --config names a model"
	}
	states, details := make([]string, len(configs)), make([]string, len(configs))
	var wait sync.WaitGroup
	for i, m := range configs {
		wait.Go(func() { states[i], details[i] = lookProvider(ctx, m) })
	}
	wait.Wait()
	state := states[0] // the default is what most conversations use
	if state == hopOK && slices.ContainsFunc(states, func(s string) bool { return s != hopOK }) {
		state = hopWarning
	}
	return state, strings.Join(details, "; ")
}

// wrongFile says in one line what is wrong with a configuration file that has a list of problems.
func wrongFile(err error) string {
	var exit *cli.Exit
	if !errors.As(err, &exit) || len(exit.List) == 0 {
		return err.Error()
	}
	return fmt.Sprintf("%v, which `throwbar serve` lists; the first is %s", exit.Err, exit.List[0])
}

// lookProvider asks the provider of one model.
func lookProvider(ctx context.Context, m ModelConfig) (string, string) {
	client, err := m.client()
	if err != nil {
		return hopFailed, m.Name + ": " + err.Error()
	}
	name, host := client.Describe()
	names, err := client.Probe(ctx)
	var api *model.APIError
	switch {
	case errors.As(err, &api) && (api.Status == http.StatusUnauthorized || api.Status == http.StatusForbidden):
		return hopFailed, fmt.Sprintf("%s: %s does not take the key: %s", m.Name, host, api.Message)
	case errors.As(err, &api):
		return hopFailed, fmt.Sprintf("%s: %s answers %d: %s", m.Name, host, api.Status, api.Message)
	case err != nil:
		return hopFailed, fmt.Sprintf("%s: %s cannot be reached: %v", m.Name, host, err)
	case len(names) == 0 && pathless(m.BaseURL):
		return hopWarning, fmt.Sprintf("%s: %s has no list of models: base_url has no path, and most providers want that of their version, as in https://host/v1",
			m.Name, host)
	case len(names) == 0:
		return hopOK, fmt.Sprintf("%s: %s can be reached; it has no list of models, so whether it takes the key is not known", m.Name, host)
	case !slices.ContainsFunc(names, func(n string) bool { return strings.TrimPrefix(n, "models/") == name }):
		return hopWarning, fmt.Sprintf("%s: %s does not list the model %s", m.Name, host, name)
	}
	return hopOK, fmt.Sprintf("%s: %s has it", m.Name, host)
}

// pathless says whether an address is a host and nothing else.
func pathless(address string) bool {
	base, err := url.Parse(address)
	return err == nil && address != "" && strings.Trim(base.Path, "/") == ""
}
