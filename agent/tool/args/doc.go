// Package args decodes the arguments that a model wrote into the message that they are meant to be.
//
// Nothing is lost and nothing is guessed: an unknown or repeated key, a name that an enum does not have, a number that
// does not fit, all are errors, and all of them are reported at once, each with a JSON pointer, what was expected, and
// the nearest name. What can only be meant one way is mended and listed: a list or object written as text, one item
// where a list is wanted, null for what is left out. The rules of the contract are checked last, on the message.
package args
