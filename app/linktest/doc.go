// Package linktest has the tests of links under failure: one for each public failure of facts known before the first
// line was written (R1 to R18), named after it, over a whole server, real processes and a network that breaks.
package linktest
