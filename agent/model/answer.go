package model

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
)

// ErrCutOff says that an answer ended before the model did.
var ErrCutOff = errors.New("the answer was cut off")

var errBadChunk = errors.New("the answer has a part that is not JSON")

// answer reads the body of a successful response.
type answer struct {
	sink Sink
	// taken are the ids of calls that the history has, and are only read; fresh makes new ones.
	taken map[string]bool
	fresh func() string
	// limit bounds the body in bytes; maxBody if zero.
	limit int64
}

// read returns the turn that body holds. With an error, the turn is what arrived before it.
func (a answer) read(body io.Reader, contentType string) (Turn, error) {
	b := &builder{sink: a.sink}
	err := a.build(b, &bounded{from: body, left: cmp.Or(a.limit, maxBody)}, contentType)
	if err != nil {
		begun := b.size() > 0
		if api := (*APIError)(nil); errors.As(err, &api) {
			api.Midway = begun
		}
	}
	return b.turn(err != nil, a.taken, a.fresh), err
}

// maxBody bounds a whole answer. Every token comes in a document of its own, so that it is far more than maxTurn.
const maxBody = 256 << 20

// bounded reads up to a number of bytes.
type bounded struct {
	from io.Reader
	left int64
}

// Read reads from the body. After the bound it fails, so that it is not taken for the end.
func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errLongTurn
	}
	n, err := b.from.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}

func (a answer) build(b *builder, body io.Reader, contentType string) error {
	in := bufio.NewReaderSize(body, 16<<10)
	first, err := skipSpace(in)
	switch {
	case errors.Is(err, io.EOF):
		return &APIError{Message: "the answer is empty", Status: 200}
	case err != nil:
		return cutOff(err)
	}
	media, _, _ := mime.ParseMediaType(contentType)
	switch {
	case first == '<': // whatever its type: some gateways call their streams pages
		page, _ := io.ReadAll(io.LimitReader(in, maxErrorBody))
		return newAPIError(200, page)
	case first == '{' || first == '[':
		return documents(b, in)
	}
	return stream(b, in, media)
}

// skipSpace discards a byte order mark and white space, and returns the character that follows.
func skipSpace(in *bufio.Reader) (byte, error) {
	for {
		next, err := in.Peek(1)
		if err != nil {
			return 0, err
		}
		if next[0] == 0xEF {
			if mark, err := in.Peek(3); err == nil && string(mark) == "\uFEFF" {
				_, _ = in.Discard(len(mark))
				continue
			}
		}
		if bytes.IndexByte([]byte(jsonSpace), next[0]) < 0 {
			return next[0], nil
		}
		_, _ = in.Discard(1)
	}
}

// documents reads an answer that is one JSON document, whatever its content type says, or one after the other.
func documents(b *builder, in io.Reader) error {
	// One document is bounded like a line; the bound is renewed for each.
	limit := &io.LimitedReader{R: in, N: maxLine}
	dec := json.NewDecoder(limit)
	whole := false
	for {
		var raw json.RawMessage
		err := dec.Decode(&raw)
		switch {
		case errors.Is(err, io.EOF) && limit.N > 0, err != nil && (whole || b.firm):
			return ended(b, whole, nil)
		case err != nil && limit.N <= 0:
			return errLongLine
		case errors.Is(err, io.ErrUnexpectedEOF):
			return cutOff(err)
		case err != nil:
			if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
				return errBadChunk
			}
			return cutOff(err)
		}
		limit.N = maxLine
		doc := asObject(validUTF8(raw))
		if doc == nil {
			return newAPIError(200, raw)
		}
		before := b.chunks
		if err := b.chunk(doc); err != nil {
			return err
		}
		if b.chunks == before && !whole {
			return newAPIError(200, raw)
		}
		if len(doc.list("choices")) > 0 {
			whole = whole || asObject(doc.list("choices")[0]).has("message")
		}
	}
}

// stream reads an answer that is a stream of events.
func stream(b *builder, in *bufio.Reader, media string) error {
	source := &events{lines: lines{in: in}}
	for {
		next, err := source.next()
		if err != nil {
			return ended(b, false, strayed(b, source, media, err))
		}
		if next.name == "error" {
			return reported(next.data)
		}
		done, err := b.data(next.data)
		switch {
		case errors.Is(err, errBadChunk) && source.ended != nil:
			if errors.Is(source.ended, errLongTurn) {
				return errLongTurn
			}
			return cutOff(source.ended) // the tail of a line that never ended
		case err != nil:
			return err
		case done:
			return b.announced()
		}
	}
}

// announced judges an answer whose end was announced. Many gateways do that at the end of whatever they pass on: without a
// reason to stop, a call that has not ended was cut off, and what came instead of an answer is why there is none.
func (b *builder) announced() error {
	switch {
	case b.finish != "":
		return nil
	case b.stranger != nil:
		return b.stranger
	case b.calls.open():
		return ErrCutOff
	}
	return nil
}

// data takes the documents of one event, and reports whether the end of the stream was announced.
func (b *builder) data(data []byte) (bool, error) {
	data = validUTF8(data)
	var only fields
	if json.Unmarshal(data, &only) == nil { // as good as always
		return false, b.chunk(only)
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	for {
		rest := bytes.TrimLeft(data[dec.InputOffset():], jsonSpace)
		switch {
		case len(rest) == 0:
			return false, nil
		case bytes.HasPrefix(bytes.TrimPrefix(rest, []byte(`"`)), []byte("[DONE]")):
			return true, nil
		}
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			return false, errBadChunk
		}
		if doc := asObject(raw); doc != nil {
			if err := b.chunk(doc); err != nil {
				return false, err
			}
		}
	}
}

// reported is the error of an event named error.
func reported(data []byte) error {
	if doc := asObject(data); doc != nil {
		if err := embeddedError(doc); err != nil {
			return err
		}
		return midwayError(data)
	}
	e := &APIError{Message: string(data), Midway: true}
	e.tidy()
	return e
}

// strayed says what the body was if it was no stream of events at all.
func strayed(b *builder, source *events, media string, err error) error {
	if b.chunks > 0 || source.stray == "" || !errors.Is(err, io.EOF) {
		return err
	}
	if media == "" {
		media = "of unknown type"
	}
	return newAPIError(200, fmt.Appendf(nil, "the answer is %s and not a stream: %s", media, source.stray))
}

// ended judges the end of an answer that did not announce it: err is what ended it, nil if that was expected. A reason
// to stop tells that the model was done; without one, the answer was cut off.
func ended(b *builder, whole bool, err error) error {
	eof := err == nil || errors.Is(err, io.EOF)
	switch {
	case errors.Is(err, errLongLine), errors.Is(err, errLongTurn):
		return err
	case whole && eof:
		return nil
	case b.firm:
		return nil
	case b.finish != "" && eof && !b.calls.open():
		return nil // the reason came with content: only an orderly end is believed
	}
	if api := (*APIError)(nil); errors.As(err, &api) {
		return err
	}
	if eof && b.stranger != nil {
		return b.stranger
	}
	if err == nil {
		err = io.EOF
	}
	return cutOff(err)
}

// open reports whether a call has begun and not ended.
func (a *assembler) open() bool {
	for _, call := range a.calls {
		if !call.args.done() && !call.placeholder() {
			return true
		}
	}
	return false
}

func cutOff(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return ErrCutOff
	}
	return fmt.Errorf("%w: %w", ErrCutOff, err)
}
