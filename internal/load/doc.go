// Package load makes the load: it decides when each message is sent and records the times of its events.
//
// A [Producer] drives one driver.Producer. It owns a pool of slots, as many as messages may be in flight: a slot is the
// leave to send, the name of the message until it completes, and the index of its times. Two loops share this pool:
//
//   - the closed loop (no schedule) sends whenever a slot is free;
//   - the open loop sends message n of its group [Schedule.At](n) after the start of the step, whatever happened to the
//     messages before. If it is behind, it sends at once all messages due, each keeping its own intended time. So a
//     stall of the broker shows in send delay and response time instead of vanishing (coordinated omission).
//
// A [Mix] of several kinds of messages determines the kind of each message: the shares are exact over each producer.
//
// A [Consumer] drives one driver.Consumer and records the messages received.
//
// With a verify.Ledger the messages of a producer are numbered, and with a verify.Checker those of a consumer are
// checked; load calls them and knows nothing else of verification.
//
// The path of a message allocates nothing, takes only locks of its own worker (recorder, checker, slots), and reads the
// clock once to send, once when it completes and once when it is received; the open loop once more to see whether the
// message is due, and again each time it had to wait.
package load
