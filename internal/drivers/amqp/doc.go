// Package amqp is the AMQP 1.0 driver, on top of github.com/Azure/go-amqp.
//
// # Model
//
// A driver keeps one AMQP connection per [driver.Connection] key, counted by its users and closed by the last one. Each
// producer and each consumer has an AMQP session of its own with a single link on it: flow control of one never holds
// up another, and ending the session (rather than detaching the link) is what leaves a durable subscription in place.
//
// Below the library sits a net.Conn that gathers writes: the library writes each frame by itself, which costs a system
// call per frame; the gathering connection copies frames into a buffer that one goroutine writes out. A lone frame is
// written at once, a burst goes out as few large writes.
//
// # Sending
//
// Each slot has a goroutine, started when the slot is first used. It hands the message to the library, lets Send
// return, waits for that message's own disposition and calls Done: completion times are exact even when the broker
// settles out of order. Only one handover runs at a time, so all slots share one prepared message in which only the
// time and the body change. See [handover] for how the driver knows whether a message has left.
//
// # Outcomes
//
// The delivery states of AMQP 1.0, Messaging, section 3.4: accepted, rejected, released; modified counts as released.
// A link, session or connection that ends leaves what is in flight as unknown.
//
// # Settlement
//
// With settle=at-least-once (the default) messages are sent unsettled and completed by the broker's disposition, and
// received messages are accepted after they were delivered. With settle=at-most-once messages are sent settled; the
// broker answers nothing, and a send is completed when its bytes have been passed to the operating system (for
// encrypted connections: to the TLS layer and from there to the operating system). Whether they arrive is not known.
package amqp
