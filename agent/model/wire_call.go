package model

import (
	"encoding/json"
	"fmt"
	"slices"
)

// originField is the member of Call.Extra that says which provider the call came from. It is never sent.
const originField = "throwbar_from"

// mark notes in the calls of an answer which provider wants their ids and further fields back as they are.
func (c *Client) mark(calls []Call) {
	for i := range calls {
		extra := asObject(calls[i].Extra)
		if extra == nil {
			if isPlainID(calls[i].ID) {
				continue
			}
			extra = fields{}
		}
		extra[originField], _ = marshal(c.baseURL) // a string
		calls[i].Extra, _ = marshal(extra)         // decoded before
	}
}

// isPlainID reports whether every provider takes the id of a call, whoever made it. Some refuse a request for an id of another
// length, some for one with other characters, and would refuse the conversation for ever.
func isPlainID(id string) bool {
	for i := range len(id) {
		if b := id[i]; b == '_' || b == '-' || !legalFirst(b) && (b < '0' || b > '9') {
			return false
		}
	}
	return len(id) == callIDLength
}

// ids are the ids under which the calls of other providers are sent to this one, by their own.
func (c *Client) ids(messages []Message) map[string]string {
	if !c.anyForeign(messages) {
		return nil
	}
	var own, foreign []string
	for _, m := range messages {
		for _, call := range m.Calls {
			if c.foreign(call) {
				foreign = append(foreign, call.ID)
			} else {
				own = append(own, call.ID)
			}
		}
	}
	taken := make(map[string]bool, len(own)+len(foreign))
	for _, id := range own {
		taken[id] = true
	}
	out := make(map[string]string, len(foreign))
	for _, id := range foreign {
		for n := 0; out[id] == "" || taken[out[id]]; n++ {
			out[id] = hashedID(id, n)
		}
		taken[out[id]] = true
	}
	return out
}

// anyForeign says whether one of the calls of messages is foreign.
func (c *Client) anyForeign(messages []Message) bool {
	for i := range messages {
		if slices.ContainsFunc(messages[i].Calls, c.foreign) {
			return true
		}
	}
	return false
}

// foreign says whether a call is another provider's, and has an id that this one may refuse.
func (c *Client) foreign(call Call) bool {
	if len(call.Extra) == 0 {
		return false
	}
	from := asObject(call.Extra).text(originField)
	return from != "" && from != c.baseURL && !isPlainID(call.ID)
}

// wireCall returns the wire form of a call, with the fields of its provider as they came.
func (c *Client) wireCall(call Call) (fields, error) {
	out := fields{}
	if len(call.Extra) > 0 {
		if err := json.Unmarshal(call.Extra, &out); err != nil {
			return nil, fmt.Errorf("read extra fields of call %q: %w", call.ID, err)
		}
		if from := out.text(originField); from != "" && from != c.baseURL {
			clear(out) // another provider's, which this one may refuse
		}
		delete(out, originField)
	}
	function := out.object("function")
	if function == nil {
		function = fields{}
	}
	for name, member := range map[string]struct {
		of    fields
		value any
	}{
		"id":        {out, call.ID},
		"type":      {out, "function"},
		"name":      {function, call.Name},
		"arguments": {function, call.Arguments},
	} {
		raw, err := marshal(member.value)
		if err != nil {
			return nil, err
		}
		member.of[name] = raw
	}
	raw, err := marshal(function)
	if err != nil {
		return nil, err
	}
	out["function"] = raw
	return out, nil
}
