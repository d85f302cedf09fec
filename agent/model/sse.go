package model

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// maxLine bounds a line, an event and a document of an answer.
const maxLine = 8 << 20

var errLongLine = fmt.Errorf("a line of the answer is longer than %d MiB", maxLine>>20)

// lines cuts a stream at LF, CR LF or a lone CR.
type lines struct {
	in *bufio.Reader
	// skipLF is set after a CR: a LF that follows belongs to it. It is not waited for, or a stream with lone CRs
	// would always be one line late.
	skipLF bool
}

// next returns the next line without its end. An error other than io.EOF comes with the beginning of the line that
// could not be read to its end; io.EOF with the last line, if that has no end.
func (l *lines) next() ([]byte, error) {
	var line []byte
	for {
		if _, err := l.in.Peek(1); err != nil {
			return line, err
		}
		piece, _ := l.in.Peek(l.in.Buffered())
		if l.skipLF {
			l.skipLF = false
			if piece[0] == '\n' {
				l.discard(1)
				continue
			}
		}
		end := bytes.IndexAny(piece, "\r\n")
		if end < 0 {
			end = len(piece)
		}
		if len(line)+end > maxLine {
			return line, errLongLine
		}
		line = append(line, piece[:end]...)
		if end == len(piece) {
			l.discard(end)
			continue
		}
		l.skipLF = piece[end] == '\r'
		l.discard(end + 1)
		return line, nil
	}
}

func (l *lines) discard(n int) {
	_, _ = l.in.Discard(n) // n bytes are buffered
}

// event is one server-sent event.
type event struct {
	name string
	data []byte
}

// events reads server-sent events, and forgives streams that do not separate them.
type events struct {
	lines   lines
	pending event
	hasData bool
	// mixed is set if the pending data is no single document, so that this is found out once.
	mixed bool
	// ended is the error that ended the stream, to be returned after the pending event.
	ended error
	// stray is the beginning of the first line that belongs to no event, to say what came instead.
	stray string
}

// next returns the next event. After the last one it returns what ended the stream, io.EOF at best.
func (e *events) next() (event, error) {
	for e.ended == nil {
		line, err := e.lines.next()
		if err != nil {
			e.ended = err
			if len(line) == 0 || !errors.Is(err, io.EOF) {
				break
			}
		}
		if len(line) == 0 {
			if ready, ok := e.take(); ok {
				return ready, nil
			}
			continue
		}
		ready, ok, err := e.field(line)
		if err != nil {
			e.ended = err
		}
		if ok {
			return ready, nil
		}
	}
	if ready, ok := e.take(); ok {
		return ready, nil // the last event often lacks its empty line
	}
	return event{}, e.ended
}

// take returns the pending event, if there is one.
func (e *events) take() (event, bool) {
	ready, ok := e.pending, e.hasData || e.pending.name != ""
	e.pending, e.hasData, e.mixed = event{}, false, false
	return ready, ok
}

// field takes one line of an event. It returns the pending event if the line shows that this one had ended.
func (e *events) field(line []byte) (event, bool, error) {
	name, value, colon := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch {
	case string(name) == "data":
		for bytes.HasPrefix(value, []byte("data:")) { // some servers write the name themselves, and so does their library
			value = bytes.TrimPrefix(value[len("data:"):], []byte(" "))
		}
	case string(name) == "event":
		e.pending.name = string(value)
		return event{}, false, nil
	case line[0] == '{': // a document without its field name
		value = line
	case colon && len(name) == 0, string(name) == "id", string(name) == "retry":
		return event{}, false, nil
	default:
		if e.stray == "" {
			e.stray = cut(clean(string(line)), 200)
		}
		return event{}, false, nil
	}
	if e.complete(value) {
		ready, ok := e.take()
		e.pending.data, e.hasData = bytes.Clone(value), true
		return ready, ok, nil
	}
	if len(e.pending.data)+len(value) >= maxLine {
		e.take()
		return event{}, false, errLongLine
	}
	if e.hasData {
		e.pending.data = append(e.pending.data, '\n')
	}
	e.pending.data = append(e.pending.data, value...)
	e.hasData = true
	return event{}, false, nil
}

// complete reports whether the pending data is a document and next begins another: some servers put no empty line
// between events.
func (e *events) complete(next []byte) bool {
	next = bytes.TrimLeft(next, jsonSpace)
	if e.mixed || !bytes.HasPrefix(next, []byte("{")) && !bytes.HasPrefix(next, []byte("[")) {
		return false // looked at first: the end of the pending data may be far from its last character
	}
	data := bytes.TrimRight(e.pending.data, jsonSpace)
	if !bytes.HasSuffix(data, []byte("}")) {
		return false
	}
	e.mixed = !json.Valid(data)
	return !e.mixed
}
