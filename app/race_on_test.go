//go:build race

package app_test

// races is how often a race is run: with the race detector on, which costs ten times the work, a part of them.
const races = 250
