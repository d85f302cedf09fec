package app

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"

	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"

	"throwbar.dev/throwbar/catalog"
)

// discreet is the last line of defence of logs: no part logs a message or a header, but should one ever do so, it goes
// out without its sensitive fields, and what looks like a token is taken out of any text.
type discreet struct{ slog.Handler }

// Handle passes a record on without its secrets.
func (d discreet) Handle(ctx context.Context, r slog.Record) error {
	clean := slog.NewRecord(r.Time, r.Level, withoutTokens(r.Message), r.PC)
	r.Attrs(func(a slog.Attr) bool {
		clean.AddAttrs(cleanAttr(a))
		return true
	})
	return d.Handler.Handle(ctx, clean)
}

// WithAttrs is a handler whose records have these too.
func (d discreet) WithAttrs(attrs []slog.Attr) slog.Handler {
	clean := make([]slog.Attr, 0, len(attrs))
	for _, a := range attrs {
		clean = append(clean, cleanAttr(a))
	}
	return discreet{d.Handler.WithAttrs(clean)}
}

// WithGroup is a handler whose records are in a group.
func (d discreet) WithGroup(name string) slog.Handler { return discreet{d.Handler.WithGroup(name)} }

func cleanAttr(a slog.Attr) slog.Attr {
	return slog.Attr{Key: withoutTokens(a.Key), Value: cleanValue(a.Value.Resolve())}
}

func cleanValue(v slog.Value) slog.Value {
	switch v.Kind() {
	case slog.KindString:
		return slog.StringValue(withoutTokens(v.String()))
	case slog.KindGroup:
		var clean []slog.Attr
		for _, a := range v.Group() {
			clean = append(clean, cleanAttr(a))
		}
		return slog.GroupValue(clean...)
	case slog.KindAny:
		return cleanAny(v.Any())
	default:
		return v
	}
}

// cleanAny writes a value out here, for what a handler makes of it cannot be looked into.
func cleanAny(value any) slog.Value {
	switch v := value.(type) {
	case nil:
		return slog.AnyValue(nil)
	case proto.Message:
		raw, err := prototext.Marshal(catalog.Redact(v))
		if err != nil {
			return slog.StringValue("a message that cannot be shown")
		}
		return slog.StringValue(withoutTokens(string(raw)))
	case http.Header:
		names := make([]string, 0, len(v))
		for name := range v {
			names = append(names, withoutTokens(name))
		}
		return slog.StringValue(fmt.Sprintf("headers %q", names))
	case *http.Request:
		return slog.StringValue(withoutTokens(v.Method + " " + v.URL.Path))
	case *url.URL:
		return slog.StringValue(withoutTokens(v.Path))
	case error:
		return slog.StringValue(withoutTokens(v.Error()))
	default:
		return slog.StringValue(withoutTokens(fmt.Sprint(value)))
	}
}

var (
	tokenLike  = regexp.MustCompile(`thb_[A-Za-z0-9_-]{8,}`)
	headerLike = regexp.MustCompile(`(?i)\b(bearer|basic)\s+[^\s",\]}]{8,}`)
)

// withoutTokens replaces what looks like a token of Throwbar, or like the value of a header that has one.
func withoutTokens(text string) string {
	return headerLike.ReplaceAllString(tokenLike.ReplaceAllString(text, catalog.Redacted), "$1 "+catalog.Redacted)
}
