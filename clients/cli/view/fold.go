package view

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

const (
	foldDepth   = 1
	mostDepth   = 100
	mostDevices = 3 // what each of them answered fits on a line
)

var errTooDeep = errors.New("too deep")

// Fold makes a short line of JSON text: single values as they are, lists and objects deeper down by their size. What is
// no JSON comes back as it is. What a few devices answered to one call is told of each: its size would say nothing.
func Fold(text string) string {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	line, err := fold(d, 0)
	if err != nil || d.More() {
		return strings.TrimSpace(text)
	}
	return line
}

func fold(d *json.Decoder, depth int) (string, error) {
	if depth > mostDepth {
		return "", errTooDeep
	}
	token, err := d.Token()
	if err != nil {
		return "", err
	}
	switch token {
	case json.Delim('{'):
		return foldObject(d, depth)
	case json.Delim('['):
		return foldList(d, depth)
	case nil:
		return "null", nil
	}
	return fmt.Sprint(token), nil
}

func foldObject(d *json.Decoder, depth int) (string, error) {
	var pairs []string
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return "", err
		}
		var value string
		if depth == 0 && key == "devices" {
			value, err = foldDevices(d)
		} else {
			value, err = fold(d, depth+1)
		}
		if err != nil {
			return "", err
		}
		pairs = append(pairs, fmt.Sprintf("%v=%s", key, value))
	}
	if _, err := d.Token(); err != nil {
		return "", err
	}
	if depth > foldDepth {
		return fmt.Sprintf("{%d}", len(pairs)), nil
	}
	return strings.Join(pairs, " "), nil
}

func foldList(d *json.Decoder, depth int) (string, error) {
	var items []string
	for d.More() {
		item, err := fold(d, depth+2)
		if err != nil {
			return "", err
		}
		items = append(items, item)
	}
	if _, err := d.Token(); err != nil {
		return "", err
	}
	if len(items) == 1 && !strings.HasPrefix(items[0], "{") {
		return items[0], nil
	}
	return fmt.Sprintf("[%d]", len(items)), nil
}

// foldDevices folds the answers of several devices, each with the name of its device before it. Lists of anything else,
// and long ones, are folded as every list is.
func foldDevices(d *json.Decoder) (string, error) {
	var raw json.RawMessage
	if err := d.Decode(&raw); err != nil {
		return "", err
	}
	var answers []map[string]json.RawMessage
	if json.Unmarshal(raw, &answers) != nil || len(answers) == 0 || len(answers) > mostDevices {
		return fold(reader(raw), foldDepth)
	}
	lines := make([]string, len(answers))
	for i, answer := range answers {
		var name string
		if json.Unmarshal(answer["deviceName"], &name) != nil || name == "" {
			return fold(reader(raw), foldDepth)
		}
		line, err := foldAnswer(answer)
		if err != nil {
			return "", err
		}
		lines[i] = strings.TrimSpace(name + ": " + line)
	}
	return "[" + strings.Join(lines, ", ") + "]", nil
}

// foldAnswer folds what one device answered, by the names of its values, without what says which device it is.
func foldAnswer(answer map[string]json.RawMessage) (string, error) {
	var pairs []string
	for _, key := range slices.Sorted(maps.Keys(answer)) {
		var refused struct{ Code, Message string }
		switch {
		case key == "deviceId" || key == "deviceName":
		case key == "error" && json.Unmarshal(answer[key], &refused) == nil && refused.Message != "":
			pairs = append(pairs, refused.Message)
		default:
			value, err := fold(reader(answer[key]), foldDepth+1)
			if err != nil {
				return "", err
			}
			pairs = append(pairs, key+"="+value)
		}
	}
	return strings.Join(pairs, " "), nil
}

func reader(raw json.RawMessage) *json.Decoder {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	return d
}
