package model

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestAPIErrorTexts(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, body, message, code string
	}{
		{"openai", `{"error":{"message":"no such model","type":"invalid_request_error","param":null,"code":"model_not_found"}}`, "no such model", "model_not_found"},
		{"openai without code", `{"error":{"message":"bad","type":"invalid_request_error","code":null}}`, "bad", "invalid_request_error"},
		{"ollama", `{"error":"model not loaded"}`, "model not loaded", ""},
		{"gemini", `[{"error":{"code":400,"message":"API key not valid","status":"INVALID_ARGUMENT"}}]`, "API key not valid", "INVALID_ARGUMENT"},
		{"fastapi", `{"detail":"Not Found"}`, "Not Found", ""},
		{"fastapi list", `{"detail":[{"loc":["body"],"msg":"field required","type":"missing"}]}`, "field required", "missing"},
		{"mistral", `{"object":"error","message":{"detail":[{"msg":"Extra inputs"}]},"type":"invalid"}`, "Extra inputs", "invalid"},
		{"vllm", `{"object":"error","message":"too long","type":"BadRequestError","code":400}`, "too long", "BadRequestError"},
		{"openrouter", `{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"tool name invalid","provider_name":"X"}}}`, "Provider returned error: tool name invalid", ""},
		{"html", "<html><head><style>p{}</style><title>502 Bad Gateway</title></head><body><script>alert(1)</script><p>nginx &amp; co</p></body></html>", "502 Bad Gateway nginx & co", ""},
		{"text", "upstream\r\n connect\tfailed \x1b[31mred\u202e", "upstream connect failed [31mred", ""},
		{"empty", "", "bad request", ""},
		{"empty object", "{}", "bad request", ""},
		{"null", "null", "bad request", ""},
		{"number", "17", "17", ""},
		{"invalid utf-8", "a\xff\xfeb", "a\uFFFDb", ""},
		{"deep", strings.Repeat(`{"error":`, 50) + `"x"` + strings.Repeat("}", 50), "bad request", ""},
		{"unclosed tag", "<html", "bad request", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			e := newAPIError(400, []byte(tt.body))
			if e.Message != tt.message || e.Code != tt.code || e.Status != 400 {
				t.Errorf("got %+v", e)
			}
		})
	}
}

func TestAPIErrorIsShort(t *testing.T) {
	t.Parallel()
	e := newAPIError(500, []byte(strings.Repeat("é", 10_000)))
	if len(e.Message) > maxErrorText+len("…") || !utf8.ValidString(e.Message) || !strings.HasSuffix(e.Message, "é…") {
		t.Errorf("%d bytes", len(e.Message))
	}
}

func TestAPIErrorKinds(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		err                 APIError
		temporary, overflow bool
	}{
		{APIError{Status: 503}, true, false},
		{APIError{Status: 429}, true, false},
		{APIError{Status: 429, Code: "insufficient_quota"}, false, false},
		{APIError{Status: 501}, false, false},
		{APIError{Status: 400}, false, false},
		{APIError{Message: "overloaded", Midway: true}, false, false},
		{APIError{Status: 413}, false, true},
		{APIError{Status: 400, Code: "context_length_exceeded"}, false, true},
		{APIError{Status: 400, Message: "the request exceeds the available context size"}, false, true},
		{APIError{Status: 400, Message: "Prompt is too long: 200001 tokens"}, false, true},
		{APIError{Status: 400, Message: "The input token count (9) exceeds the maximum"}, false, true},
	} {
		if tt.err.Temporary() != tt.temporary || tt.err.Overflow() != tt.overflow {
			t.Errorf("%+v: temporary %v, overflow %v", tt.err, tt.err.Temporary(), tt.err.Overflow())
		}
	}
	var api *APIError
	if !errors.As(error(&APIError{Status: 400, Code: "c", Message: "m"}), &api) || api.Error() != "the model provider answered 400 (c): m" {
		t.Errorf("text %q", api.Error())
	}
}
