// Package bench measures the product beside a floor or a peer in the same run, so that what is printed is a ratio and
// not a property of the machine. Run it with `make bench`; timings are never judged in tests.
package bench
