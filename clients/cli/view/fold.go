package view

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

const (
	foldDepth = 1
	mostDepth = 100
)

var errTooDeep = errors.New("too deep")

// Fold makes a short line of JSON text: single values as they are, lists and objects deeper down by their size. What is
// no JSON comes back as it is.
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
		value, err := fold(d, depth+1)
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
