package model

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
)

// send posts body and returns the response to it once that is a success.
func (c *Client) send(ctx context.Context, body parts, watch *watch) (*http.Response, error) {
	var response *http.Response
	attempts := &attempts{watch: watch, body: body}
	options := append(quietHeaders(),
		option.WithHeader("Accept", "text/event-stream, application/json"),
		option.WithHeader("User-Agent", "throwbar"),
		option.WithMiddleware(attempts.try),
		option.WithResponseBodyInto(&response),
		// Each attempt is given its body (attempts.try). The library would read and copy all of it once more as its own
		// parameter, and want it in one piece as an option.
		option.WithRequestBody("application/json", []byte(nil)),
	)
	_, err := c.completions.New(ctx, openai.ChatCompletionNewParams{}, options...)
	switch {
	case ctx.Err() != nil && err != nil:
		return nil, err // the caller gave up, perhaps in the pause after a refusal
	case attempts.refusal != nil:
		return nil, attempts.refusal
	}
	if err != nil {
		return nil, err
	}
	if response == nil {
		return nil, errors.New("no response")
	}
	return response, nil
}

// redirected decides about a redirect: only the same request to the same origin is sent on. The library would refuse another
// origin too, without a word that helps.
func redirected(request *http.Request, via []*http.Request) error {
	first := via[0]
	switch {
	case request.URL.Scheme != first.URL.Scheme || request.URL.Host != first.URL.Host:
		return fmt.Errorf("it redirects to another origin (%s), which gets neither the request nor the key: set base_url to the address that is meant",
			cut(oneLine(request.URL.Scheme+"://"+request.URL.Host), maxHost))
	case request.Method != first.Method:
		return errors.New("it redirects in a way that loses the request: set base_url to the address that is meant")
	case len(via) >= maxRedirects:
		return fmt.Errorf("it redirects more than %d times", maxRedirects)
	}
	return nil
}

const (
	maxRedirects = 10
	maxHost      = 200
)

// quietHeaders drops what the library tells about the machine it runs on.
func quietHeaders() []option.RequestOption {
	var options []option.RequestOption
	for _, name := range []string{
		"Lang", "Package-Version", "OS", "Arch", "Runtime", "Runtime-Version", "Retry-Count", "Timeout",
	} {
		options = append(options, option.WithHeaderDel("X-Stainless-"+name))
	}
	return options
}

// attempts looks at every attempt of one request.
type attempts struct {
	watch *watch
	body  parts
	// refusal is the error that the last attempt was answered with.
	refusal *APIError
}

// try is the middleware around one attempt: it watches for silence, and reads refusals itself, because the library
// would read without bound, lose the status if the body has an odd form, and repeat some requests in vain.
func (a *attempts) try(request *http.Request, next option.MiddlewareNext) (*http.Response, error) {
	a.refusal = nil
	request.Body, request.ContentLength, request.GetBody = a.body.open(), a.body.size(), func() (io.ReadCloser, error) { return a.body.open(), nil }
	a.watch.start()
	defer a.watch.stop() // the pause before the next attempt is no silence
	response, err := next(request)
	if err != nil {
		return response, err // both: a redirect that was refused is not to be tried again
	}
	encoding := response.Header.Get("Content-Encoding") // the transport removes that of what it decodes
	encoded := encoding != "" && !strings.EqualFold(encoding, "identity")
	if response.StatusCode < http.StatusMultipleChoices && !encoded { // a redirect without an address is no answer either
		return response, nil
	}
	if encoded {
		_ = response.Body.Close()
		response.Body = io.NopCloser(strings.NewReader("the answer is compressed with " + encoding + ", which was not asked for"))
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, maxErrorBody))
	_ = response.Body.Close()
	if err != nil && len(text) == 0 {
		return nil, fmt.Errorf("read refusal: %w", err)
	}
	a.refusal = newAPIError(response.StatusCode, text)
	response.Body = io.NopCloser(bytes.NewReader([]byte(`{"error":{}}`)))
	if a.refusal.deterministic() {
		response.Header.Set("X-Should-Retry", "false")
	}
	return response, nil
}

// explain replaces the symptom of a failure by its cause, and removes the key from a provider's words.
func (c *Client) explain(ctx context.Context, err error) error {
	if api := (*APIError)(nil); errors.As(err, &api) {
		api.Message, api.Code = withoutKey(api.Message, c.key), withoutKey(api.Code, c.key)
		if api.Status == http.StatusNotFound && !api.Midway && c.pathless() {
			api.Message += noPath
		}
		return err
	}
	if ctx.Err() == nil {
		// The words of whoever answered can be in errors of the transport too.
		if text := err.Error(); c.key != "" && strings.Contains(text, c.key) {
			said := errors.New(withoutKey(text, c.key))
			if errors.Is(err, ErrCutOff) {
				return fmt.Errorf("%w: %w", ErrCutOff, said)
			}
			return said
		}
		return err
	}
	reason := context.Cause(ctx)
	if reason != ctx.Err() && !errors.Is(reason, ErrIdle) {
		reason = fmt.Errorf("%w: %w", ctx.Err(), reason)
	}
	if errors.Is(err, ErrCutOff) {
		reason = fmt.Errorf("%w: %w", ErrCutOff, reason)
	}
	return reason
}

// noPath is what to do about an address that people take for the API's.
const noPath = " (base_url has no path: most providers want that of their version, as in https://host/v1)"

// pathless reports whether the base URL is a host and nothing else.
func (c *Client) pathless() bool {
	base, err := url.Parse(c.baseURL)
	return err == nil && base.Path == ""
}

// leastOfKey is how many characters of a key tell something of it.
const leastOfKey = 4

// withoutKey replaces a key in a text that was perhaps cut in the middle of one.
func withoutKey(text, key string) string {
	if key == "" {
		return text
	}
	text = strings.ReplaceAll(text, key, "(key)")
	whole, mark := strings.CutSuffix(text, "…")
	for n := min(len(key), len(whole)); n >= leastOfKey; n-- {
		if rest, found := strings.CutSuffix(whole, key[:n]); found {
			text = rest + "(key)"
			if mark {
				text += "…"
			}
			break
		}
	}
	return text
}

// watch cancels a request whose provider is silent for too long.
type watch struct {
	timeout time.Duration
	timer   *time.Timer
}

// newWatch returns a watch that is not running.
func newWatch(timeout time.Duration, cancel context.CancelCauseFunc) *watch {
	timer := time.AfterFunc(timeout, func() { cancel(fmt.Errorf("%w for %v", ErrIdle, timeout)) })
	timer.Stop()
	return &watch{timeout: timeout, timer: timer}
}

// start begins to wait for the provider; stop ends that. Only waiting counts, not the time in which the caller is
// busy with what arrived.
func (w *watch) start() { w.timer.Reset(w.timeout) }

func (w *watch) stop() { w.timer.Stop() }

// watchedBody waits for the body under the watch.
type watchedBody struct {
	body  io.Reader
	watch *watch
}

func (b *watchedBody) Read(p []byte) (int, error) {
	b.watch.start()
	defer b.watch.stop()
	return b.body.Read(p)
}
