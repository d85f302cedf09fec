// Package result prints typed results as the compact JSON that a model reads: in the order of the contract, without
// what is empty, with enums by their short names, and never more than a limit.
//
// Text in a result comes from outside: page titles, addresses, device names. It stays inside JSON strings, characters
// that cannot be seen are written as escapes, and the whole is put between two marks that the text cannot know (Seal).
package result
