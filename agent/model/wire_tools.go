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
	if r != nil && slices.EqualFunc(r.tools, tools, Tool.Equal) {
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
		r.tools, r.toolWire = OwnTools(tools), wire
	}
	return wire, nil
}

// Equal reports whether two tools are the same for a model.
func (t Tool) Equal(other Tool) bool {
	return t.Name == other.Name && t.Description == other.Description && t.Strict == other.Strict && bytes.Equal(t.Parameters, other.Parameters)
}

// OwnTools returns a copy of tools that shares nothing with them that anybody could change.
func OwnTools(tools []Tool) []Tool {
	out := slices.Clone(tools)
	for i := range out {
		out[i].Parameters = bytes.Clone(out[i].Parameters)
	}
	return out
}

// ToolsSize is about how many bytes tools take.
func ToolsSize(tools []Tool) int {
	size := 0
	for i := range tools {
		size += toolSize + len(tools[i].Description) + len(tools[i].Parameters)
	}
	return size
}

// toolSize is about what a tool takes beside its description and parameters.
const toolSize = 96
