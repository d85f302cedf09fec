package modeltest

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"time"
)

const eventStream = "text/event-stream; charset=utf-8"

// writeReply sends a reply that is prepared.
func writeReply(ctx context.Context, w http.ResponseWriter, to *Received, reply Reply) {
	for name, value := range reply.Header {
		w.Header().Set(name, value)
	}
	switch {
	case reply.Body != "":
		writeBody(ctx, w, reply)
	case reply.Status != 0 && reply.Status != http.StatusOK:
		(&refused{status: reply.Status, message: reply.Error, code: reply.Code}).write(w)
	case !to.Stream || reply.Whole:
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(completion(to, reply))
	default:
		w.Header().Set("Content-Type", eventStream)
		w.Header().Set("Cache-Control", "no-cache")
		stream(ctx, newPieces(ctx, w, reply), reply, events(to, reply))
	}
}

func writeBody(ctx context.Context, w http.ResponseWriter, reply Reply) {
	if reply.ContentType != "" {
		w.Header().Set("Content-Type", reply.ContentType)
	}
	if reply.Status != 0 {
		w.WriteHeader(reply.Status)
	}
	out := newPieces(ctx, w, reply)
	if out.write(reply.Body) {
		out.end(reply.CutAfter > 0)
	}
}

// stream sends events one by one.
func stream(ctx context.Context, out *pieces, reply Reply, events []string) {
	for i, event := range events {
		if reply.Hold != nil && reply.HoldAtByte == 0 && i == reply.HoldAfter && !(out.flush() && out.hold()) {
			return
		}
		if reply.CutAfter > 0 && i == reply.CutAfter {
			out.end(true)
			return
		}
		if !pause(ctx, reply.PaceMillis) || !out.write("data: "+event+"\n\n") {
			return
		}
	}
	out.end(reply.CutAfter > 0 && len(events) <= reply.CutAfter)
}

// pause waits, and says whether somebody still listens.
func pause(ctx context.Context, millis int) bool {
	if millis <= 0 {
		return true
	}
	timer := time.NewTimer(time.Duration(millis) * time.Millisecond)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// events returns the documents of a stream.
func events(to *Received, reply Reply) []string {
	out := reply.Chunks
	if out == nil {
		out = chunks(to, reply)
	}
	if !reply.NoDone {
		out = append(out, "[DONE]")
	}
	return out
}

// chunks returns the documents of a stream as OpenAI sends them.
func chunks(to *Received, reply Reply) []string {
	var out []string
	add := func(choices []any, usage any) {
		doc := envelope(to, "chat.completion.chunk")
		doc["choices"] = choices
		if usage != nil {
			doc["usage"] = usage
		}
		out = append(out, encode(doc))
	}
	delta := func(members map[string]any, finish any) {
		add([]any{map[string]any{"index": 0, "delta": members, "finish_reason": finish}}, nil)
	}
	delta(map[string]any{"role": "assistant", "content": ""}, nil)
	for _, text := range []struct{ name, value string }{
		{"reasoning_content", reply.Reasoning}, {"content", reply.Text}, {"refusal", reply.Refusal},
	} {
		for _, piece := range cut(text.value, reply.Piece) {
			delta(map[string]any{text.name: piece}, nil)
		}
	}
	for i, call := range reply.Calls {
		first := callDoc(call)
		first["index"] = i
		function, _ := first["function"].(map[string]any)
		function["arguments"] = ""
		delta(map[string]any{"tool_calls": []any{first}}, nil)
		for _, piece := range cut(call.Arguments, reply.Piece) {
			delta(map[string]any{"tool_calls": []any{
				map[string]any{"index": i, "function": map[string]any{"arguments": piece}},
			}}, nil)
		}
	}
	delta(map[string]any{}, reply.Finish)
	var options struct {
		IncludeUsage bool `json:"include_usage"`
	}
	if json.Unmarshal(to.Fields["stream_options"], &options) == nil && options.IncludeUsage && !reply.NoUsage {
		add([]any{}, usage(to, reply))
	}
	return out
}

// completion returns the document of an answer that is not streamed.
func completion(to *Received, reply Reply) map[string]any {
	message := map[string]any{"role": "assistant", "content": reply.Text, "refusal": nil}
	if reply.Reasoning != "" {
		message["reasoning_content"] = reply.Reasoning
	}
	if reply.Refusal != "" {
		message["refusal"] = reply.Refusal
	}
	var calls []any
	for _, call := range reply.Calls {
		calls = append(calls, callDoc(call))
	}
	if len(calls) > 0 {
		message["tool_calls"] = calls
	}
	doc := envelope(to, "chat.completion")
	doc["choices"] = []any{map[string]any{"index": 0, "message": message, "finish_reason": reply.Finish}}
	if !reply.NoUsage {
		doc["usage"] = usage(to, reply)
	}
	return doc
}

// callDoc returns the document of a call.
func callDoc(call Call) map[string]any {
	doc := make(map[string]any)
	if len(call.Extra) > 0 {
		dec := json.NewDecoder(bytes.NewReader(call.Extra))
		dec.UseNumber()
		_ = dec.Decode(&doc) // extras that are no object are not sent
	}
	function, ok := doc["function"].(map[string]any)
	if !ok {
		function = make(map[string]any)
	}
	function["name"], function["arguments"] = call.Name, call.Arguments
	doc["id"], doc["type"], doc["function"] = call.ID, "function", function
	return doc
}

func envelope(to *Received, object string) map[string]any {
	return map[string]any{
		"id": "chatcmpl-" + encode(to.Number), "object": object, "created": 1700000000, "model": to.Model,
	}
}

func usage(to *Received, reply Reply) map[string]any {
	prompt, completion := reply.Prompt, reply.Completion
	if prompt == 0 {
		prompt = len(to.Body)/4 + 1
	}
	if completion == 0 {
		completion = len(reply.Text)/4 + 1
		for _, call := range reply.Calls {
			completion += len(call.Name+call.Arguments) / 4
		}
	}
	return map[string]any{
		"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion,
	}
}

// cut returns text in pieces of n characters.
func cut(text string, n int) []string {
	var out []string
	for runes := []rune(text); len(runes) > 0; runes = runes[min(n, len(runes)):] {
		out = append(out, string(runes[:min(n, len(runes))]))
	}
	return out
}

func encode(v any) string {
	out, _ := json.Marshal(v) // strings, numbers and maps of them
	return string(out)
}
