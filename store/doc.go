// Package store is the database: one file of SQLite, all migrations, the one writer and the pool of readers. The
// statements are in queries/, what sqlc makes of them in db/. Tables belong to one owner by prefix: srv_ to the server,
// agt_ to the agent. Cores do not import this package; thin adapters do.
//
// Open takes an exclusive lock on the folder, migrates, and starts nothing. Run is the writer; until it runs, writes
// wait.
//
// # Writing
//
// Every change is an op: a function over *db.Queries. Ops are applied in the order in which they were queued, all that
// are queued at a moment in one transaction (group commit), which is committed at the strictest level of its members
// before any of them is answered. If an op of a group fails, the group is rolled back and each of its ops is run again
// in a transaction of its own: so an op
//
//   - may run twice, and has to set what it hands out, not add to it;
//   - returns the first error that it meets and does not go on after it;
//   - never calls Write, waits for a device or a model, or uses queries other than those it was given.
//
// What you may not assume: that an op has a transaction to itself, that the context an op gets is ever cancelled (it
// carries the values of the caller's context only), or that Read already shows a write that was not yet answered.
package store
