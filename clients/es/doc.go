// Package es holds no Go code: it is the TypeScript that the browser clients share. Its tests hold the tables of cases
// that TypeScript and Go have in common to what Go does.
package es
