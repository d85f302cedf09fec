package model

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
)

// send posts body and returns the response to it once that is a success.
func (c *Client) send(ctx context.Context, body []byte, watch *watch) (*http.Response, error) {
	var response *http.Response
	attempts := &attempts{watch: watch}
	options := append(quietHeaders(),
		option.WithHeader("Accept", "text/event-stream, application/json"),
		option.WithHeader("User-Agent", "throwbar"),
		option.WithMiddleware(attempts.try),
		option.WithResponseBodyInto(&response),
		// As an option the library sends it as it is. As its own parameter it would read and copy all of it once more.
		option.WithRequestBody("application/json", body),
	)
	_, err := c.completions.New(ctx, openai.ChatCompletionNewParams{}, options...)
	if attempts.refusal != nil {
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
	// refusal is the error that the last attempt was answered with.
	refusal *APIError
}

// try is the middleware around one attempt: it watches for silence, and reads refusals itself, because the library
// would read without bound, lose the status if the body has an odd form, and repeat some requests in vain.
func (a *attempts) try(request *http.Request, next option.MiddlewareNext) (*http.Response, error) {
	a.refusal = nil
	a.watch.start()
	defer a.watch.stop() // the pause before the next attempt is no silence
	response, err := next(request)
	if err != nil || response.StatusCode < 400 {
		return response, err
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
		if c.key != "" {
			api.Message = strings.ReplaceAll(api.Message, c.key, "(key)")
			api.Code = strings.ReplaceAll(api.Code, c.key, "(key)")
		}
		return err
	}
	if ctx.Err() == nil {
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
