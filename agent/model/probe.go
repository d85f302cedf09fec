package model

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
)

// maxModelList bounds what is read of a provider's list of models.
const maxModelList = 4 << 20

// Describe returns the name of the model at its provider, and the host of that.
func (c *Client) Describe() (model, host string) {
	base, err := url.Parse(c.baseURL)
	if err != nil { // not reachable: it was parsed before
		return c.model, ""
	}
	return c.model, base.Host
}

// Describe is that of what it speaks through.
func (p *Prompted) Describe() (model, host string) {
	if d, ok := p.inner.(interface{ Describe() (string, string) }); ok {
		return d.Describe()
	}
	return "", ""
}

// Probe asks the provider which models it has, without asking a model anything. It returns their names; none if the
// provider has no such list, and then it is not known whether it takes the key. A refusal is an [*APIError].
func (c *Client) Probe(ctx context.Context) ([]string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.baseURL+"/models", nil)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errRequest, err)
	}
	request.Header.Set("Accept", "application/json")
	request.Header.Set("User-Agent", "throwbar")
	if c.key != "" {
		request.Header.Set("Authorization", "Bearer "+c.key)
	}
	client := *c.http
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse } // the key goes nowhere else
	response, err := client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("ask for models: %w", c.explain(ctx, err))
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxModelList))
	if err != nil {
		return nil, fmt.Errorf("read models: %w", c.explain(ctx, err))
	}
	switch {
	case response.StatusCode == http.StatusNotFound, response.StatusCode == http.StatusMethodNotAllowed,
		response.StatusCode == http.StatusNotImplemented:
		return nil, nil
	case response.StatusCode != http.StatusOK:
		return nil, c.explain(ctx, newAPIError(response.StatusCode, body[:min(len(body), maxErrorBody)]))
	}
	var names []string
	for _, element := range asObject(validUTF8(body)).list("data") {
		if name := asObject(element).text("id"); name != "" {
			names = append(names, name)
		}
	}
	return names, nil
}
