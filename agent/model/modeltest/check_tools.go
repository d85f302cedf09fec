package modeltest

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// maxTools is the most tools a provider takes.
const maxTools = 128

// checkTools fills in the tools and refuses what some provider refuses.
func (h *Handler) checkTools(received *Received) *refused {
	raw, found := received.Fields["tools"]
	if !found {
		return nil
	}
	if h.config.NoTools {
		return badRequest("tools", "this model does not support tools")
	}
	var list []map[string]json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		return badRequest("tools", "Invalid type for 'tools': expected an array of objects.")
	}
	switch {
	case len(list) == 0:
		return badRequest("tools", "Invalid 'tools': empty array. Expected an array with minimum length 1.")
	case len(list) > maxTools:
		return badRequest("tools", "Invalid 'tools': array too long. Expected an array with maximum length %d, "+
			"but got an array with length %d instead.", maxTools, len(list))
	}
	for i, fields := range list {
		at := fmt.Sprintf("tools[%d]", i)
		tool, refusal := h.tool(at, fields)
		if refusal != nil {
			return refusal
		}
		if _, twice := received.Tool(tool.Name); twice {
			return badRequest(at, "Duplicate tool name '%s': tool names must be unique.", tool.Name)
		}
		received.Tools = append(received.Tools, tool)
	}
	strict := slices.ContainsFunc(received.Tools, func(t Tool) bool { return t.Strict })
	if strict && string(received.Fields["parallel_tool_calls"]) != "false" {
		return badRequest("parallel_tool_calls", "strict schemas need 'parallel_tool_calls' to be false.")
	}
	return checkChoice(received)
}

// checkChoice demands that a chosen tool is offered.
func checkChoice(received *Received) *refused {
	raw, found := received.Fields["tool_choice"]
	if !found || slices.Contains([]string{`"auto"`, `"none"`, `"required"`}, string(raw)) {
		return nil
	}
	var choice struct {
		Type     string
		Function struct{ Name string }
	}
	if json.Unmarshal(raw, &choice) != nil || choice.Type != "function" {
		return badRequest("tool_choice", "Invalid value for 'tool_choice'")
	}
	if _, offered := received.Tool(choice.Function.Name); !offered {
		return badRequest("tool_choice", "Tool choice '%s' not found in 'tools' parameter.", choice.Function.Name)
	}
	return nil
}

// tool reads one tool and checks it by itself.
func (h *Handler) tool(at string, fields map[string]json.RawMessage) (Tool, *refused) {
	var tool Tool
	var function map[string]json.RawMessage
	if string(fields["type"]) != `"function"` || len(fields) != 2 || json.Unmarshal(fields["function"], &function) != nil {
		return tool, badRequest(at, "Missing or unknown parameters in '%s'.", at)
	}
	for name, raw := range function {
		var err error
		switch name {
		case "name":
			err = json.Unmarshal(raw, &tool.Name)
		case "description":
			err = json.Unmarshal(raw, &tool.Description)
		case "strict":
			err = json.Unmarshal(raw, &tool.Strict)
		case "parameters":
			tool.Parameters = raw
		default:
			err = errors.New("unknown parameter")
		}
		if err != nil {
			return tool, badRequest(at+".function."+name, "Invalid '%s.function.%s': %v", at, name, err)
		}
	}
	if !legalName().MatchString(tool.Name) {
		return tool, badRequest(at+".function.name", "Invalid '%s.function.name': string does not match pattern. "+
			"Expected a string that matches the pattern '%s'.", at, legalName())
	}
	if problem := h.checkParameters(tool); problem != "" {
		refusal := badRequest(at+".function.parameters", "Invalid schema for function '%s': %s", tool.Name, problem)
		refusal.code = "invalid_function_parameters"
		return tool, refusal
	}
	return tool, nil
}

// schema returns the compiled parameters of a tool, nil if it has none.
func (h *Handler) schema(tool Tool) (*jsonschema.Schema, error) {
	if tool.Parameters == nil {
		return nil, nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if schema, found := h.schemas[string(tool.Parameters)]; found {
		return schema, nil
	}
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(string(tool.Parameters)))
	if err != nil {
		return nil, fmt.Errorf("read schema: %w", err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("parameters.json", doc); err != nil {
		return nil, fmt.Errorf("read schema: %w", err)
	}
	schema, err := compiler.Compile("parameters.json")
	if err != nil {
		return nil, fmt.Errorf("compile schema: %w", err)
	}
	h.schemas[string(tool.Parameters)] = schema
	return schema, nil
}

// checkCalls demands that the script calls only tools that are offered, with arguments that they take.
func (h *Handler) checkCalls(received *Received, calls []Call) error {
	var errs []error
	for _, call := range calls {
		tool, offered := received.Tool(call.Name)
		if !offered {
			errs = append(errs, fmt.Errorf("it calls %s, which is not offered", call.Name))
			continue
		}
		schema, err := h.schema(tool)
		if err != nil || schema == nil {
			continue // refused before, or without parameters
		}
		doc, err := jsonschema.UnmarshalJSON(strings.NewReader(call.Arguments))
		if err != nil {
			errs = append(errs, fmt.Errorf("arguments of %s: %w", call.Name, err))
		} else if err := schema.Validate(doc); err != nil {
			errs = append(errs, fmt.Errorf("arguments of %s: %s: %w", call.Name, call.Arguments, err))
		}
	}
	return errors.Join(errs...)
}
