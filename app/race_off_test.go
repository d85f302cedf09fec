//go:build !race

package app_test

// races is how often a race is run.
const races = 1000
