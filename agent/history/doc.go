// Package history decides what of a conversation a model is shown. It is pure: it reads and writes no store.
//
// For each request a turn calls [Fit]. What comes back is a history that the strictest provider takes: repaired
// ([model.Repair]), with neighbouring messages of the user joined, an end that asks for an answer, only images that the
// model can see and not too many of them, and, once the conversation is long, old results of tools cut in their middle.
// [Plan.Over] then says whether that is still more than the model should be asked to read.
//
// If it is, [Compactor.Compact] replaces the older part of the conversation by one message that sums it up. A compaction
// proves that it helped, by [Progress], or is tried once more without a model, or ends in [*TooLong], whose text tells the
// person what to do. It never loops. What it returns takes the place of the history for models:
//
//	turn.Entry{Restart: true, Messages: result.Messages, Events: {Compacted: result.Before, result.After}}
//
// The events of the conversation keep all that was said.
//
// [Asker] is both with the request between them, as a turn needs it: fit, compact if that is too long, ask, and if the
// provider still says that it is too long, compact at most once more.
//
// All sizes are tokens as an [Estimator] counts them, which is on the high side until the provider's own count is known,
// or bytes where that is said.
package history
