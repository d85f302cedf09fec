package model

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
)

const (
	// DefaultBaseURL is where requests go unless the configuration says otherwise.
	DefaultBaseURL = "https://api.openai.com/v1"
	// DefaultIdleTimeout is how long a provider may be silent.
	DefaultIdleTimeout = 120 * time.Second
)

var (
	// ErrIdle says that the provider was silent for longer than the idle timeout.
	ErrIdle = errors.New("the model provider went silent")
	// ErrNothingToAnswer says that a history does not end with a message that a model could answer.
	ErrNothingToAnswer = errors.New("the history has nothing for the model to answer")
)

// Config says which model to ask, and where.
type Config struct {
	// BaseURL ends in the version path of the API, like https://host/v1; a final slash makes no difference.
	BaseURL string
	// Key is sent as a bearer token to BaseURL's origin and nowhere else. Empty for servers that want none.
	Key string
	// Model is asked unless a request names another.
	Model string
	// HTTPClient sends the requests; its Timeout, if any, bounds a whole answer. The default reads no proxy from the
	// environment.
	HTTPClient *http.Client
	// IdleTimeout bounds the silence of the provider, before and within an answer. There is no bound on a whole
	// answer but the caller's context.
	IdleTimeout time.Duration
	Switches    Switches
}

// Format prints the configuration without the key, whatever the verb.
func (c Config) Format(state fmt.State, _ rune) { writeIdentity(state, c.BaseURL, c.Model) }

// LogValue logs the configuration without the key.
func (c Config) LogValue() slog.Value { return logIdentity(c.BaseURL, c.Model) }

// MarshalJSON leaves the key out.
func (c Config) MarshalJSON() ([]byte, error) {
	return marshal(map[string]string{"base_url": c.BaseURL, "model": c.Model})
}

// Client asks one provider. It is safe for concurrent use.
type Client struct {
	completions openai.ChatCompletionService
	http        *http.Client
	baseURL     string
	key         string
	model       string
	idleTimeout time.Duration
	switches    Switches
}

// New returns a client. It connects to nothing, and reads nothing but its argument.
func New(config Config) (*Client, error) {
	base, err := parseBaseURL(config.BaseURL)
	if err != nil {
		return nil, fmt.Errorf("parse model base URL: %w", err)
	}
	key := strings.TrimSpace(config.Key)
	if strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, errors.New("read model key: it has characters that no key has")
	}
	if err := config.Switches.check(); err != nil {
		return nil, err
	}
	c := &Client{
		baseURL:     base,
		key:         key,
		model:       config.Model,
		idleTimeout: config.IdleTimeout,
		switches:    config.Switches,
	}
	if c.idleTimeout <= 0 {
		c.idleTimeout = DefaultIdleTimeout
	}
	if c.switches.MaxTokensField == "" {
		c.switches.MaxTokensField = "max_tokens"
		if base == DefaultBaseURL {
			c.switches.MaxTokensField = "max_completion_tokens"
		}
	}
	client := config.HTTPClient
	if client == nil {
		client = &http.Client{Transport: plainTransport()}
	}
	c.http = client
	guarded := *client
	guarded.CheckRedirect = redirected
	// The service, unlike openai.NewClient, takes nothing from the environment: neither keys nor addresses nor headers.
	c.completions = openai.NewChatCompletionService(
		option.WithBaseURL(base),
		option.WithAPIKey(key),
		option.WithHTTPClient(&guarded),
	)
	return c, nil
}

// plainTransport is the standard transport without the environment's proxy.
func plainTransport() http.RoundTripper {
	standard, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return &http.Transport{}
	}
	transport := standard.Clone()
	transport.Proxy = nil
	return transport
}

// parseBaseURL returns raw in its plain form, without a final slash.
func parseBaseURL(raw string) (string, error) {
	if raw == "" {
		return DefaultBaseURL, nil
	}
	base, err := url.Parse(strings.TrimSpace(raw))
	switch {
	case err != nil:
		return "", errors.New("not a URL") // the parser's error repeats what may hold a password
	case base.Scheme != "http" && base.Scheme != "https":
		return "", errors.New("must begin with http:// or https://")
	case base.Host == "":
		return "", errors.New("has no host")
	case base.User != nil:
		return "", errors.New("must not hold credentials")
	case base.RawQuery != "" || base.Fragment != "" || base.ForceQuery:
		return "", errors.New("must not have a query or fragment")
	}
	plain := strings.TrimRight(base.String(), "/")
	return strings.TrimSuffix(plain, "/chat/completions"), nil // people paste the endpoint
}

// Format prints the client without the key, whatever the verb.
func (c *Client) Format(state fmt.State, _ rune) { writeIdentity(state, c.baseURL, c.model) }

// LogValue logs the client without the key.
func (c *Client) LogValue() slog.Value { return logIdentity(c.baseURL, c.model) }

func writeIdentity(out io.Writer, baseURL, model string) {
	_, _ = fmt.Fprintf(out, "model %q at %s", model, redactURL(baseURL))
}

func logIdentity(baseURL, model string) slog.Value {
	return slog.GroupValue(slog.String("base_url", redactURL(baseURL)), slog.String("model", model))
}

func redactURL(raw string) string {
	base, err := url.Parse(raw)
	if err != nil {
		return "(not a URL)"
	}
	return base.Redacted()
}

// Complete sends a request and returns the answer, pieces of which go to sink as they arrive.
//
// Refused connections, 408, 409, 429 and 5xx are tried again twice, as Retry-After says, before the answer begins and
// never after. An error with [Turn.CutOff] set came while the answer was read: [ErrCutOff], which may wrap [ErrIdle] or
// the context's error, an [*APIError], or that the answer is malformed or too long; the turn has what arrived. With any
// other error the turn is empty and the answer had not begun.
func (c *Client) Complete(ctx context.Context, request Request, sink Sink) (Turn, error) {
	request.Messages = request.Known.Repair(request.Messages)
	body, err := c.body(request)
	if err != nil {
		return Turn{}, fmt.Errorf("%w: %w", errRequest, err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watch := newWatch(c.idleTimeout, cancel)
	defer watch.stop()
	response, err := c.send(ctx, body, watch)
	if err != nil {
		return Turn{}, fmt.Errorf("ask model: %w", c.explain(ctx, err))
	}
	defer func() { _ = response.Body.Close() }()
	reader := answer{sink: sink, taken: request.Known.callIDs(request.Messages), fresh: freshID}
	turn, err := reader.read(&watchedBody{body: response.Body, watch: watch}, response.Header.Get("Content-Type"))
	c.mark(turn.Calls)
	if err != nil {
		return turn, fmt.Errorf("read model answer: %w", c.explain(ctx, err))
	}
	return turn, nil
}

func callIDs(messages []Message) map[string]bool {
	ids := make(map[string]bool)
	for _, message := range messages {
		for _, call := range message.Calls {
			ids[call.ID] = true
		}
	}
	return ids
}
