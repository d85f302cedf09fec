package modeltest

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// What a strict schema may hold at most, in all of it.
const (
	maxStrictProperties = 5000
	maxStrictDepth      = 10
	maxStrictEnum       = 1000
)

// checkParameters returns what is wrong with the parameters of a tool.
func (h *Handler) checkParameters(tool Tool) string {
	if tool.Parameters == nil {
		return ""
	}
	var root map[string]any
	if json.Unmarshal(tool.Parameters, &root) != nil || root["type"] != "object" {
		return "schema must be a JSON Schema of 'type: \"object\"', got something else."
	}
	for _, keyword := range []string{"anyOf", "oneOf", "allOf", "not", "enum", "const", "$ref", "if"} {
		if _, found := root[keyword]; found {
			return fmt.Sprintf("schema must have type 'object' and not have '%s' at the top level.", keyword)
		}
	}
	if _, ok := root["properties"].(map[string]any); !ok {
		return "object schema missing properties."
	}
	walk := &schemaWalk{strict: tool.Strict, gemini: h.config.Gemini}
	if problem := walk.schema("", root, 1); problem != "" {
		return problem
	}
	if tool.Strict && (walk.properties > maxStrictProperties || walk.values > maxStrictEnum) {
		return fmt.Sprintf("schema has %d properties and %d enum values, which is too many.", walk.properties, walk.values)
	}
	if _, err := h.schema(tool); err != nil {
		return err.Error()
	}
	return ""
}

// schemaWalk goes over a schema and its parts.
type schemaWalk struct {
	strict, gemini     bool
	properties, values int
}

// strictRefuses are the keywords that OpenAI's strict mode does not know.
func strictRefuses() []string {
	return []string{
		"oneOf", "allOf", "not", "if", "then", "else", "dependentRequired", "dependentSchemas", "dependencies",
		"patternProperties", "propertyNames", "minProperties", "maxProperties", "uniqueItems", "contains", "minContains",
		"maxContains", "prefixItems", "unevaluatedProperties", "unevaluatedItems", "contentEncoding", "contentMediaType",
	}
}

// geminiRefuses are the keywords that Gemini's subset of OpenAPI does not know.
func geminiRefuses() []string {
	return []string{
		"$schema", "$id", "$ref", "$defs", "definitions", "additionalProperties", "propertyNames", "patternProperties", "const",
		"exclusiveMinimum", "exclusiveMaximum", "oneOf", "allOf", "not", "if", "prefixItems", "uniqueItems", "contentEncoding",
	}
}

func (w *schemaWalk) schema(path string, schema map[string]any, depth int) string {
	if isType(schema, "array") {
		if _, ok := schema["items"].(map[string]any); !ok {
			return fmt.Sprintf("In context=(%s), array schema missing items.", path)
		}
	}
	if w.strict {
		if problem := w.strictly(path, schema, depth); problem != "" {
			return problem
		}
	}
	if w.gemini {
		if problem := geminily(path, schema); problem != "" {
			return problem
		}
	}
	return w.parts(path, schema, depth)
}

// parts goes on with the schemas inside of one.
func (w *schemaWalk) parts(path string, schema map[string]any, depth int) string {
	for _, keyword := range []string{"properties", "$defs", "definitions", "patternProperties"} {
		parts, _ := schema[keyword].(map[string]any)
		if keyword == "properties" {
			w.properties += len(parts)
		}
		for _, name := range slices.Sorted(maps.Keys(parts)) {
			if problem := w.part(path+"/"+name, parts[name], depth+1); problem != "" {
				return problem
			}
		}
	}
	for _, keyword := range []string{"items", "additionalProperties", "not"} {
		if problem := w.part(path+"/"+keyword, schema[keyword], depth+1); problem != "" {
			return problem
		}
	}
	for _, keyword := range []string{"anyOf", "oneOf", "allOf", "prefixItems"} {
		parts, _ := schema[keyword].([]any)
		for i, part := range parts {
			if problem := w.part(fmt.Sprintf("%s/%s/%d", path, keyword, i), part, depth); problem != "" {
				return problem
			}
		}
	}
	return ""
}

func (w *schemaWalk) part(path string, part any, depth int) string {
	if schema, ok := part.(map[string]any); ok {
		return w.schema(path, schema, depth)
	}
	return ""
}

// strictly demands what OpenAI's strict mode does.
func (w *schemaWalk) strictly(path string, schema map[string]any, depth int) string {
	values, _ := schema["enum"].([]any)
	w.values += len(values)
	if depth > maxStrictDepth {
		return fmt.Sprintf("In context=(%s), schema is nested deeper than %d levels.", path, maxStrictDepth)
	}
	for _, keyword := range strictRefuses() {
		if _, found := schema[keyword]; found {
			return fmt.Sprintf("In context=(%s), '%s' is not permitted.", path, keyword)
		}
	}
	if schema["format"] == "uri" {
		return fmt.Sprintf("In context=(%s), 'uri' is not a valid format.", path)
	}
	if _, found := schema["$ref"]; found && len(schema) > 1 {
		return fmt.Sprintf("In context=(%s), $ref cannot have keywords beside it.", path)
	}
	if !isType(schema, "object") {
		return ""
	}
	if schema["additionalProperties"] != false {
		return fmt.Sprintf("In context=(%s), 'additionalProperties' is required to be supplied and to be false.", path)
	}
	properties, _ := schema["properties"].(map[string]any)
	required, _ := schema["required"].([]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if !slices.Contains(required, any(name)) {
			return fmt.Sprintf("In context=(%s), 'required' is required to be supplied and to be an array "+
				"including every key in properties. Missing '%s'.", path, name)
		}
	}
	return ""
}

// geminily demands what Gemini's subset of OpenAPI does.
func geminily(path string, schema map[string]any) string {
	for _, keyword := range geminiRefuses() {
		if _, found := schema[keyword]; found {
			return fmt.Sprintf("Invalid JSON payload received. Unknown name \"%s\" at 'parameters%s': Cannot find field.", keyword, path)
		}
	}
	if _, list := schema["type"].([]any); list {
		return fmt.Sprintf("Proto field is not repeating, cannot start list at 'parameters%s.type'.", path)
	}
	if _, found := schema["anyOf"]; found && len(schema) > 1 {
		return fmt.Sprintf("at 'parameters%s': when using any_of, it must be the only field set.", path)
	}
	values, found := schema["enum"].([]any)
	if found && schema["type"] != "string" {
		return fmt.Sprintf("at 'parameters%s': only allowed for STRING type: enum.", path)
	}
	for _, value := range values {
		if text, ok := value.(string); !ok || text == "" {
			return fmt.Sprintf("Invalid value at 'parameters%s.enum' (TYPE_STRING)", path)
		}
	}
	return ""
}

func isType(schema map[string]any, name string) bool {
	list, _ := schema["type"].([]any)
	return schema["type"] == name || slices.Contains(list, any(name))
}
