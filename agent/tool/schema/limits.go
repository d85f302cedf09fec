package schema

// Limits are what the providers behind a profile take. They are the only place where such a number stands: printers and
// lints read them here.
//
// Checked on 2026-11-27 against the providers' SDK code, their guides as quoted that year, and public reports of refused
// requests. Versions move: change the table, not the code around it.
type Limits struct {
	// Name and Key are regular expressions that the name of a tool and the name of an argument have to match.
	Name, Key string
	// Tools is how many one request may carry.
	Tools int
	// Keywords are all that may occur in a schema.
	Keywords []string
	// Properties and Enums are how many properties, and values of enums, a schema may have in all.
	Properties, Enums int
	// Names is how many characters the names of properties and definitions and the values of enums may have together.
	Names int
	// LongEnum and LongEnumText: the values of an enum with more than LongEnum of them may have that many characters.
	LongEnum, LongEnumText int
	// Nesting is how many levels of objects and lists there may be, the root included.
	Nesting int
	// Length is the largest number that minLength and maxLength may have.
	Length uint64

	// Closed objects say that they take no other properties. Elsewhere the keyword is refused by some (Gemini behind a
	// gateway) and keeps nobody from anything: the decoder refuses what is not listed.
	Closed bool
	// Required lists every property; one that may be left out takes null.
	Required bool
	// Definitions stand under $defs and are referred to with nothing beside $ref.
	Definitions bool
	// Pairs are lists of {key, value} in place of objects with keys of the caller's choice.
	Pairs bool
	// Typed says that every schema needs a type or anyOf, and that nothing stands beside anyOf.
	Typed bool
	// TextEnums allows enums only on strings.
	TextEnums bool
	// Anchored patterns begin with ^, end with $ and have no groups.
	Anchored bool

	// Bounds of what is written out where it stands: the level from which objects are left open, so that what is inside
	// stays within Nesting; how often a message may stand within itself; and values.
	Depth, Again, Values int
}

// LimitsOf are the limits of a profile; those of ProfilePortable for one that is not known.
func LimitsOf(profile Profile) Limits {
	const name, key = `^[a-zA-Z_][a-zA-Z0-9_-]{0,63}$`, `^[a-zA-Z0-9_.-]{1,64}$`
	l := Limits{
		Name: name, Key: key, Tools: 128, Properties: 5000, Enums: 1000, Names: 120_000, LongEnum: 250, LongEnumText: 15_000,
		Nesting: 10, Length: 1 << 31, Depth: 8, Again: 3, Values: 400,
		Keywords: []string{
			"type", "description", "properties", "required", "additionalProperties", "items", "enum", "pattern", "minimum",
			"maximum", "minLength", "maxLength", "minItems", "maxItems",
		},
	}
	switch profile {
	case ProfileStrict:
		l.Closed, l.Required, l.Definitions, l.Pairs = true, true, true, true
		// minLength and maxLength are neither in the documented list nor among those that the SDK refuses.
		l.Keywords = []string{
			"type", "description", "properties", "required", "additionalProperties", "items", "enum", "pattern", "minimum",
			"maximum", "exclusiveMinimum", "exclusiveMaximum", "minItems", "maxItems", "anyOf", "$defs", "$ref",
		}
	case ProfileGemini:
		l.Pairs, l.Typed, l.TextEnums, l.Depth = true, true, true, 7
		l.Keywords = []string{
			"type", "description", "properties", "required", "items", "enum", "pattern", "minimum", "maximum", "minLength",
			"maxLength", "minItems", "maxItems", "anyOf", "nullable",
		}
	case ProfileLocal:
		// Ollama hands the model nothing but type, description, enum, items, properties and required, and servers with
		// grammars fail on lengths from 2,000, on item counts (some), and on patterns that are not anchored. So sizes
		// and bounds are words; a simple pattern stays, because a grammar keeps a model to it.
		l.Pairs, l.Anchored, l.Depth, l.Again, l.Values, l.Length = true, true, 7, 2, 200, 1999
		l.Keywords = []string{"type", "description", "properties", "required", "items", "enum", "pattern"}
	case ProfilePortable:
	}
	return l
}
