// Package amqp is the syntax of AMQP 1.0: types, frames, performatives, message sections, SASL frames and transactions
// as bytes. It has no connection, session, link or timer, and reads no clock: their rules are for its users. References
// are to the OASIS standard: Types, Transport, Messaging, Transactions, Security.
//
// # Reading
//
// A [FrameReader] returns frames in place, within the buffer of its input. [ParseBody] takes the performative off a
// frame's body, and the Decode method of the type that its Kind tells reads the fields; [Message.Decode] reads a
// payload. All are built on [Decoder], a cursor over encoded values with sticky errors. Transfers, dispositions, flows
// and messages are read without an allocation: bytes that are returned are within the frame, valid until the next frame
// is read. Short texts of the performatives that are sent once (names, addresses, capabilities) are copied.
//
// # Writing
//
// Everything is appended to a []byte of the caller's: AppendFrame methods append a frame of the one kind, AppendX
// functions an encoded value. Fields that have their default are left out. [Template] is a message that is encoded
// once, with places for the few bytes that change.
//
// # Values that may be absent
//
// A field whose null means the same as some value is a plain field with that value. Others are an [Opt], or a []byte or
// pointer that is nil. A mandatory field that is null or missing is an error.
//
// # Untrusted input
//
// Every input gives a value or an error: a *[DecodeError] around one of the sentinels, or a *[FrameError]. A size is
// compared with the bytes that are there, and a count with the size, before either is believed; a frame is refused by
// its head. Nested values are skipped by their size and decoded on request, one level at a time. So memory is at most a
// small multiple of the bytes that have arrived. Texts are not checked to be UTF-8 or ASCII, and must be escaped before
// they are printed; [Error] does so itself. The order of frames is not checked either.
package amqp
