// Package schema says in one model what a message accepts: the shape of its JSON, what each field is for, and every
// rule that the contract puts on it. Printers turn the model into the dialect of JSON Schema that a provider takes;
// Portable is the one that all of them take.
//
// The model is a graph: a message that occurs twice, or in itself, is one Object. A rule becomes a keyword where the
// model has one, a sentence where it has not, and neither where it says nothing about a value; Of lists which.
package schema

import "google.golang.org/protobuf/reflect/protoreflect"

// Kind is the JSON kind of a value.
type Kind int

// The kinds.
const (
	KindAny     Kind = iota // any JSON value
	KindObject              // a message
	KindMap                 // an object with keys of the caller's choice
	KindList                //
	KindString              //
	KindInteger             //
	KindNumber              //
	KindBoolean             //
)

// Node is one value.
type Node struct {
	Kind Kind
	// Text says what the value is for.
	Text string
	// Plain marks a text that says no more than the names of the message and the field do.
	Plain bool
	// Notes are the rules that no keyword of the model says, a sentence each.
	Notes []string

	Object *Object // KindObject
	Item   *Node   // KindList and KindMap
	Key    *Node   // KindMap; always a string

	// Enum are the only values allowed, as JSON.
	Enum []string
	// Least and Most bound a number.
	Least, Most *Bound
	// MinSize and MaxSize bound the characters of a string, the items of a list, the keys of a map.
	MinSize, MaxSize *uint64
	// Pattern is a regular expression in what all dialects share, unanchored.
	Pattern string
	// Unique forbids that an item of a list occurs twice.
	Unique bool
	// Paging marks page_size and page_token, which mean the same in every query: what they are for can be said once,
	// beside all tools.
	Paging bool
}

// Bound is one end of a range.
type Bound struct {
	Value     string // as JSON
	Exclusive bool
}

// Object is a message.
type Object struct {
	Name       protoreflect.FullName
	Text       string
	Properties []Property // in the order of their declaration
	Notes      []string   // rules about several fields
	Open       bool       // other properties are allowed too
}

// Property is one field.
type Property struct {
	Name     string
	Node     *Node
	Required bool
}

// Use is how a rule is told.
type Use int

// The uses.
const (
	Keyword  Use = iota + 1 // by a keyword that means the same
	Weaker                  // by a keyword that lets more pass
	Sentence                // in words
	Neither                 // not at all: it forbids nothing, or nothing that can be said
)

// Rule is a rule of the contract and how it is told.
type Rule struct {
	Field protoreflect.FullName
	Name  string // for example string.min_len
	Use   Use
}
