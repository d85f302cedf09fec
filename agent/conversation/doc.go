// Package conversation keeps the agent's threads: their messages and events, which of them has a turn that runs, and the
// short handles by which people and agents name them.
//
// A conversation has one turn at a time. What happens in it is stored before it is told, with numbers that have no gaps;
// pieces of an answer are told and not stored. A turn that the end of the process cut off is brought to an end when its
// conversation is next looked at: calls without a result get one that says so.
package conversation
