//go:build !race

package linktest

// raced says that the race detector is on: it keeps shadows of all memory, so that a figure of bytes says nothing.
const raced = false
