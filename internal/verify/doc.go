// Package verify finds out whether every message that was sent has arrived: once, in order and undamaged.
//
// # Model
//
// Each process that sends has a run number of its own, and numbers the messages of each of its producers 0, 1, 2, ...
// without gaps. These travel as a [driver.ID] with a checksum of themselves and of the body. So a producer is described
// by a few sets of numbers: sent is a prefix, and messages refused, unconfirmed or withheld are exceptions from it; the
// arrived messages are a set that ought to be the same. Everything reported is a comparison of such sets.
//
//	Ledger (producer) --> Sent ----\
//	                                Side --> file --\
//	Checker (consumer) -\          /                 Judge --> Result
//	Checker ------------- Tracker --> Received
//
// A [Checker] keeps successive numbers as one span; now and then it gives its spans to the [Tracker] of its
// subscription, which has the sets. [Judge] puts any number of sides together, each the knowledge of one process.
//
// # Exact, and bounded
//
// All counts are exact, and the same in whatever order the checkers' spans and the sides come together: of a message
// that came to two consumers it does not matter which is called the first. That is why a stream keeps the messages
// all of whose copies were marked as redelivered or came late.
//
// # Limits
//
// A message whose ID is damaged cannot be told from others, so it counts as damaged and its number as lost. A duplicate
// that the broker does not mark cannot be told from one that the producer's side caused, such as a proxy that sends
// twice. A message that has not arrived when the consumers end is lost only if they waited for it in vain, see
// [Received].Drained.
package verify
