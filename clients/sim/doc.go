// Package sim is a simulated browser: windows, tabs and groups with realistic titles and addresses, which runs every
// browser command of the contract the way a real browser does. Demos, load tests and end-to-end tests use it, many in
// one process.
//
// What it shows is made from a seed: the same seed shows the same tabs. A tab whose host is unsaved.example asks
// before it goes away, as a page with unsaved text does, so that tests can see a close that is blocked.
package sim
