// Package facility does what the agent itself can do: it sends messages to the agents of other conversations and reads
// what they answered, starts agents and collects their answers, and undoes commands.
//
// A facility is declared as a message of proto/throwbar/agent/v1/facility.proto and has one function here. Nothing else
// knows it: its tool, its grant and its documentation follow from the declaration.
//
// What a facility does it does once for a key: a call that is made again after a restart joins what it began.
package facility
