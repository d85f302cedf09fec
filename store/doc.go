// Package store is the database on two engines, one file of SQLite or a database of PostgreSQL: all migrations, the one
// writer and the pool of readers. The statements are in queries/, what sqlc makes of them in db/, and run on both. Tables
// belong to one owner by prefix: srv_ to the server, agt_ to the agent. Cores do not import this package; thin adapters
// do.
//
// Open takes an exclusive lock on the database, migrates, and starts nothing. Run is the writer; until it runs, writes
// wait.
//
// # Writing
//
// Every change is an op: a function over *db.Queries. Ops are applied in the order in which they were queued, all that
// are queued at a moment in one transaction (group commit), which is committed at the strictest level of its members
// before any of them is answered. If an op of a group fails, the group is rolled back and each of its ops is run again
// in a transaction of its own: so an op
//
//   - may run more than once, and has to set what it hands out, not add to it;
//   - returns the first error that it meets and does not go on after it: what it did is rolled back even so;
//   - never calls Write, waits for a device or a model, or uses queries other than those it was given.
//
// Share is for what the ops of a transaction write together, once, after the last of them.
//
// What you may not assume: that an op has a transaction to itself, that the context an op gets is ever cancelled (it
// carries the values of the caller's context only), or that Read already shows a write that was not yet answered.
//
// # Losing PostgreSQL
//
// The writer gets a lost connection back by itself, and finds out whether the last commit arrived. It answers with
// ErrUnavailable (nothing was written) or ErrUnknown (perhaps) only if the database stays away. What is written again
// after ErrUnknown has to be written under the same key, so that it is ErrConflict if it is there. Run ends with
// ErrLocked if another server has taken the database.
package store
