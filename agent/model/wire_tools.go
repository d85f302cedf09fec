package model

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
)

// writtenTools is the member of a request with its tools, and a comma; nothing if there are none. Those that were written down last
// are not written down again. A nil Repairer remembers nothing.
func (r *Repairer) writtenTools(tools []Tool) ([]byte, error) {
	if len(tools) == 0 {
		return nil, nil
	}
	if r != nil && slices.EqualFunc(r.tools, tools, equalTools) {
		return r.toolWire, nil
	}
	all := make([]wireTool, 0, len(tools))
	for _, tool := range tools {
		parameters := tool.Parameters
		if len(parameters) == 0 {
			parameters = json.RawMessage(`{"type":"object","properties":{}}`)
		}
		if !json.Valid(parameters) {
			return nil, fmt.Errorf("the parameters of tool %q are not JSON", tool.Name)
		}
		all = append(all, wireTool{Type: "function", Function: wireFunction{
			Name: tool.Name, Description: clean(tool.Description), Parameters: parameters, Strict: tool.Strict,
		}})
	}
	raw, err := marshal(all)
	if err != nil {
		return nil, err
	}
	wire := slices.Concat([]byte(`"tools":`), raw, []byte(`,`))
	if r != nil {
		r.tools, r.toolWire = slices.Clone(tools), wire
		for i := range r.tools {
			r.tools[i].Parameters = bytes.Clone(r.tools[i].Parameters) // they are the caller's, who may change them
		}
	}
	return wire, nil
}

func equalTools(a, b Tool) bool {
	return a.Name == b.Name && a.Description == b.Description && a.Strict == b.Strict && bytes.Equal(a.Parameters, b.Parameters)
}

// toolsSize is how many bytes are kept of tools.
func (r *Repairer) toolsSize() int {
	size := cap(r.toolWire)
	for i := range r.tools {
		size += toolSize + len(r.tools[i].Description) + len(r.tools[i].Parameters)
	}
	return size
}

// toolSize is about what a tool takes beside its description and parameters.
const toolSize = 96
