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
		{APIError{Status: 429, Message: "Too many tokens, please wait before trying again."}, true, false},
		{APIError{Status: 429, Code: "rate_limit_exceeded", Message: "Request too large for m on tokens per min (TPM): Limit 10000, Requested 20000."}, false, true},
		{APIError{Status: 429, Code: "exceeded_current_quota_error", Message: "suspended"}, false, false},
		{APIError{Status: 500, Message: "the request exceeds the available context size"}, false, true},
		{APIError{Status: 400, Message: "max_tokens is too large: 100000. This model supports at most 16384 completion tokens"}, false, false},
	} {
		if tt.err.Temporary() != tt.temporary || tt.err.Overflow() != tt.overflow {
			t.Errorf("%+v: temporary %v, overflow %v", tt.err, tt.err.Temporary(), tt.err.Overflow())
		}
	}
	for _, message := range overflowMessages() {
		if e := (&APIError{Status: 400, Message: message}); !e.Overflow() || e.Temporary() || Another(e) {
			t.Errorf("%s: overflow %v, temporary %v, another %v", message, e.Overflow(), e.Temporary(), Another(e))
		}
	}
	var api *APIError
	if !errors.As(error(&APIError{Status: 400, Code: "c", Message: "m"}), &api) || api.Error() != "the model provider answered 400 (c): m" {
		t.Errorf("text %q", api.Error())
	}
}

// overflowMessages are what servers say of a request that is too long, in the words by which it can be told.
func overflowMessages() []string {
	return []string{
		"This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
		"Your input exceeds the context window of this model.",
		"input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000",
		"prompt is too long: 210000 tokens > 200000 maximum",
		"Prompt too long: 5152 tokens exceeds max_seq_len 2048",
		"The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
		"The decoder prompt (length 5000) is longer than the maximum model length of 4096.",
		"prompt (5000 tokens) is over max_model_len 4096",
		"request (5000 tokens) exceeds the available context size (4096 tokens), try increasing it",
		"Trying to keep the first 5000 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens.",
		"the input length exceeds the context length",
		"Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
		"`inputs` tokens + `max_new_tokens` must be <= 8193. Given: 8000 `inputs` tokens",
		"Input validation error: `inputs` must have less than 4096 tokens. Given: 5000",
		"This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
		"too many tokens: total number of tokens in the prompt cannot exceed 4081",
		"Input is too long for requested model.",
		"prompt token count of 130000 exceeds the limit of 128000",
		"Invalid request: Your request exceeded model token limit: 262144",
		"Prompt exceeds max length",
		"Range of input length should be [1, 129024]",
		"Input length 131393 exceeds the maximum allowed input length of 131040 tokens.",
	}
}
