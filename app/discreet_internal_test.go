package app

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"

	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
)

// TestTheLogTakesSecretsOut (security 16): whatever a part hands to the log, of a message, a header, an address or a text.
func TestTheLogTakesSecretsOut(t *testing.T) {
	t.Parallel()
	const token = "thb_0123456789abcdefABCDEF-_0123456789abcdefABC"
	const word = "canary-of-a-field"
	address, err := url.Parse("http://h/path?token=" + token + "&x=" + word)
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address.String(), nil)
	if err != nil {
		t.Fatal(err)
	}
	header := http.Header{"Authorization": {"Bearer " + word + word}, "X-Else": {word}}
	message := &controlv1.CreateTokenResponse{Secret: word, Token: &controlv1.Token{Name: "laptop"}}
	for name, attr := range map[string]slog.Attr{
		"string":  slog.String("k", "got "+token+"!"),
		"bearer":  slog.String("k", "Authorization: Bearer "+word),
		"error":   slog.Any("k", fmt.Errorf("wrapped: %w", errors.New("bad "+token))),
		"message": slog.Any("k", message),
		"group":   slog.Group("g", slog.Any("k", message), slog.Group("h", slog.String("k", token))),
		"header":  slog.Any("k", header),
		"url":     slog.Any("k", address),
		"request": slog.Any("k", request),
		"struct":  slog.Any("k", struct{ A, B string }{"x", token}),
		"list":    slog.Any("k", []string{token}),
		"valuer":  slog.Any("k", valuer(token)),
		"key":     slog.String(token, "v"), //nolint:sloglint // it is what must not come through
	} {
		for how, write := range map[string]func(*slog.Logger){
			"attribute": func(l *slog.Logger) { l.LogAttrs(t.Context(), slog.LevelInfo, "said", attr) },
			"with":      func(l *slog.Logger) { l.With(attr).InfoContext(t.Context(), "said") },
			"in group":  func(l *slog.Logger) { l.WithGroup("outer").LogAttrs(t.Context(), slog.LevelInfo, "said", attr) },
			"message":   func(l *slog.Logger) { l.LogAttrs(t.Context(), slog.LevelInfo, fmt.Sprint("said ", token)) }, //nolint:sloglint // as above
		} {
			var text, asJSON bytes.Buffer
			write(slog.New(discreet{slog.NewTextHandler(&text, nil)}))
			write(slog.New(discreet{slog.NewJSONHandler(&asJSON, nil)}))
			out := text.String() + asJSON.String()
			if strings.Contains(out, token) || strings.Contains(out, token[4:]) || strings.Contains(out, word) || !strings.Contains(out, "said") {
				t.Errorf("%s, %s: %s", name, how, out)
			}
		}
	}
	var out bytes.Buffer
	slog.New(discreet{slog.NewTextHandler(&out, nil)}).Info("fine", slog.Any("error", errors.New("disk full")), slog.Int("n", 3), slog.Any("m", message))
	for _, want := range []string{`error="disk full"`, "n=3", "laptop", "[redacted]"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%s is missing in %s", want, out.String())
		}
	}
}

type valuer string

func (v valuer) LogValue() slog.Value { return slog.StringValue(string(v)) }
