// Package simulation runs the real server and real devices through lives of commands on a network, disks and clocks
// that fail as a seed says, in virtual time, and checks afterwards what the contract promises. All of it is test code;
// docs/simulation.md says what is real, what is simulated and what is checked.
package simulation
