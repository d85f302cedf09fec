package rpc

import (
	"encoding/json"

	"throwbar.dev/throwbar/server/fault"
)

// scanJSON looks through a message in JSON before it is decoded: how deep it is nested, how many values it has, and
// whether an object has a key twice, of which two readers would take different ones. What is no JSON is left to the
// decoder to tell.
func scanJSON(raw []byte) error {
	s := &jsonScan{raw: raw}
	for s.at < len(raw) {
		if err := s.step(); err != nil {
			return err
		}
	}
	return nil
}

type jsonScan struct {
	scan
	raw  []byte
	at   int
	open []jsonLevel
}

// jsonLevel is an object or a list that is open.
type jsonLevel struct {
	object bool
	key    bool // the next text is a key
	keys   map[string]struct{}
	first  string // the first key, for which no map is made
}

// step reads one token.
func (s *jsonScan) step() error {
	c := s.raw[s.at]
	s.at++
	switch c {
	case '{', '[':
		if len(s.open) == maxDepth {
			return tooDeep()
		}
		s.open = append(s.open, jsonLevel{object: c == '{', key: c == '{'})
		return s.count(1)
	case '}', ']':
		if len(s.open) > 0 {
			s.open = s.open[:len(s.open)-1]
		}
	case ',':
		if level := s.level(); level != nil && level.object {
			level.key = true
		}
		return s.count(1)
	case '"':
		return s.text()
	}
	return nil
}

func (s *jsonScan) level() *jsonLevel {
	if len(s.open) == 0 {
		return nil
	}
	return &s.open[len(s.open)-1]
}

// text reads to the end of a text, and remembers it if it is a key.
func (s *jsonScan) text() error {
	begin, escaped := s.at, false
	for s.at < len(s.raw) && s.raw[s.at] != '"' {
		if s.raw[s.at] == '\\' {
			escaped = true
			s.at++
		}
		s.at++
	}
	if s.at >= len(s.raw) {
		s.at = len(s.raw)
		return nil
	}
	text := s.raw[begin:s.at]
	s.at++
	level := s.level()
	if level == nil || !level.key {
		return nil
	}
	level.key = false
	key := string(text)
	if escaped {
		var plain string
		if json.Unmarshal(s.raw[begin-1:s.at], &plain) == nil {
			key = plain
		}
	}
	return level.add(key)
}

func (l *jsonLevel) add(key string) error {
	switch {
	case l.keys == nil && l.first == "":
		l.first = key
		if key != "" {
			return nil
		}
	case l.first == key:
		return twice(key)
	}
	if l.keys == nil {
		l.keys = map[string]struct{}{}
	}
	if _, there := l.keys[key]; there {
		return twice(key)
	}
	l.keys[key] = struct{}{}
	return nil
}

func twice(key string) error {
	if len(key) > 64 {
		key = key[:64]
	}
	return fault.New(fault.Invalid, "an object has the key %q twice", key)
}
