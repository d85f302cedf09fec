package modeltest

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
)

// Step is one step of a script.
type Step interface {
	reply(*Received) Reply
}

// Func is a step that computes its reply.
type Func func(*Received) Reply

func (f Func) reply(r *Received) Reply { return f(r) }

func (r Reply) reply(*Received) Reply { return r }

// Reply is what the server answers: text and calls, an error, or bytes as given. Its JSON form is what
// [Handler.Control] takes.
type Reply struct {
	Text      string `json:"text,omitempty"`
	Reasoning string `json:"reasoning,omitempty"`
	Refusal   string `json:"refusal,omitempty"`
	Calls     []Call `json:"calls,omitempty"`
	// Finish is stop or tool_calls unless set.
	Finish string `json:"finish,omitempty"`
	// Prompt and Completion are the token counts; estimated unless set.
	Prompt     int `json:"prompt,omitempty"`
	Completion int `json:"completion,omitempty"`

	// Status other than 0 and 200 makes the reply an error with Error and Code, in the form of OpenAI.
	Status int               `json:"status,omitempty"`
	Error  string            `json:"error,omitempty"`
	Code   string            `json:"code,omitempty"`
	Header map[string]string `json:"header,omitempty"`

	// Body replaces everything that would be sent, with ContentType.
	Body        string `json:"body,omitempty"`
	ContentType string `json:"content_type,omitempty"`
	// Chunks replaces the documents of the stream.
	Chunks []string `json:"chunks,omitempty"`

	// Piece is the number of characters in a delta, 8 unless set. Split, if set, is the number of bytes after which
	// the stream is flushed, wherever that is; otherwise it is flushed after each event.
	Piece int `json:"piece,omitempty"`
	Split int `json:"split,omitempty"`
	// PaceMillis is the pause before each event, for eyes.
	PaceMillis int `json:"pace_millis,omitempty"`
	// NoUsage and NoDone leave these parts of a stream out.
	NoUsage bool `json:"no_usage,omitempty"`
	NoDone  bool `json:"no_done,omitempty"`
	// Whole sends one document although a stream was asked for.
	Whole bool `json:"whole,omitempty"`
	// CutAfter, if set, is the number of events after which the connection breaks.
	CutAfter int `json:"cut_after,omitempty"`
	// Seed, if set, cuts the stream at random places instead, the same ones for the same seed.
	Seed uint64 `json:"seed,omitempty"`
	// CutAtByte, if set, is the number of bytes of the body after which the connection breaks; Reset breaks it by a reset
	// of TCP, which makes the client lose what it has not read, instead of an end in the middle.
	CutAtByte int  `json:"cut_at_byte,omitempty"`
	Reset     bool `json:"reset,omitempty"`
	// HoldAtByte, if set, is the number of bytes of the body after which Hold is waited for, instead of HoldAfter.
	HoldAtByte int `json:"hold_at_byte,omitempty"`
	// Hold, if set, stops the stream before event number HoldAfter until it can be received from or the client is gone.
	Hold      <-chan struct{} `json:"-"`
	HoldAfter int             `json:"hold_after,omitempty"`
	// Unchecked sends calls that the offered tools do not allow.
	Unchecked bool `json:"unchecked,omitempty"`
}

// Call is a tool call, sent or received.
type Call struct {
	// ID is made up unless set.
	ID   string `json:"id,omitempty"`
	Name string `json:"name"`
	// Arguments is a JSON text. In a reply a string "{{tool.key}}" in it becomes the list of all values of key in the
	// last result of tool, and "{{tool.key[0]}}" the first of them.
	Arguments string `json:"arguments,omitempty"`
	// Extra is an object of further members of the call. The request that has the call in its history must bring
	// them back unchanged.
	Extra json.RawMessage `json:"extra,omitempty"`
}

// Replay is a reply of the bytes of a stream, for fixtures. How they are cut, held and broken off say the other fields.
func Replay(body string) Reply { return Reply{Body: body, ContentType: eventStream} }

// Text is a reply of text.
func Text(text string) Reply { return Reply{Text: text} }

// Use is a reply that calls one tool. args are marshalled unless they are a string.
func Use(tool string, args any) Reply { return Reply{Calls: []Call{NewCall(tool, args)}} }

// NewCall is a call of a tool. args are marshalled unless they are a string.
func NewCall(tool string, args any) Call {
	if text, ok := args.(string); ok {
		return Call{Name: tool, Arguments: text}
	}
	text, err := json.Marshal(args)
	if err != nil {
		panic(fmt.Sprintf("modeltest: arguments of %s: %v", tool, err))
	}
	return Call{Name: tool, Arguments: string(text)}
}

// Fail is an error reply in the form of OpenAI.
func Fail(status int, message string) Reply { return Reply{Status: status, Error: message} }

// What a provider says to a request that is too long.
const (
	overflowCode = "context_length_exceeded"
	overflowText = "This model's maximum context length is 8192 tokens. Please reduce the length of the messages."
)

// Overflow is the reply to a request that is too long.
func Overflow() Reply {
	return Reply{Status: http.StatusBadRequest, Code: overflowCode, Error: overflowText}
}

// prepare fills in the ids and placeholders of a reply to a request.
func (r Reply) prepare(to *Received, nextID func() string) (Reply, error) {
	calls := make([]Call, len(r.Calls))
	var errs []error
	for i, call := range r.Calls {
		if call.ID == "" {
			call.ID = nextID()
		}
		expanded, err := expand(call.Arguments, to)
		if err != nil {
			errs = append(errs, fmt.Errorf("arguments of %s: %w", call.Name, err))
		}
		call.Arguments = expanded
		calls[i] = call
	}
	r.Calls = calls
	if r.Finish == "" {
		r.Finish = "stop"
		if len(calls) > 0 {
			r.Finish = "tool_calls"
		}
	}
	if r.Piece <= 0 {
		r.Piece = 8
	}
	return r, errors.Join(errs...)
}
