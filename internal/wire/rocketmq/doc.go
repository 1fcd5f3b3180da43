// Package rocketmq is the syntax of RocketMQ's remoting protocol that both sides of a connection share: frames with
// headers in the binary and the JSON codec, stored messages, batches, properties, compressed bodies, signatures and
// bodies in JSON, as bytes. It has no connection, no session and no policy, and reads no clock. There is no
// specification: references are to classes and methods of org.apache.rocketmq, release 5.5.0, whose names the
// constants have.
//
// # Writing
//
// Everything is appended to a []byte of the caller's and allocates nothing. A request is [BeginFrame], fields in the
// order of their keys, which is that of the signature, and [EndFrame]; the body follows. A [Writer] does the same in
// either codec, for servers, which answer in that of the request.
//
// # Reading
//
// [Frame.Parse], [Message.Cut], [CutBatched] and [CutProperty] check all lengths, return parts of their input and
// allocate nothing, but for the escapes of a remark in JSON. Fields in JSON are copied into memory that the Frame
// keeps. How large a frame may be is for the reader of the connection to say, before it allocates memory.
// A header has at most [MaxHeader] bytes and [MaxFields] fields, a body in JSON [MaxJSON] bytes, and a compressed
// body becomes no longer than the limit that [Inflater.Inflate] is given. Texts are not checked to be UTF-8, and must
// be escaped before they are printed.
package rocketmq
