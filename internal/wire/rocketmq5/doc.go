// Package rocketmq5 is the syntax of RocketMQ 5's proxy: frames of HTTP/2 (RFC 9113), messages and statuses of gRPC,
// and those protobuf messages and fields of apache.rocketmq.v2 (rocketmq-apis) that a producer or consumer needs:
// generated.go is made from the descriptors of RocketMQ's own client by the test in generate. It has no connection, no
// session and no policy, and reads no clock.
//
// # Writing
//
// Everything is appended to a []byte of the caller's. Fields that are zero or empty are left out.
//
// # Reading
//
// All lengths are checked, and what is returned are parts of the input. How large a frame or a message may be is for
// the reader of the connection to say, before it allocates memory; a block of headers has at most [MaxHeaders] bytes.
// Unknown fields are skipped, as protobuf wants it. Texts are not checked to be UTF-8, and must be escaped before they
// are printed.
package rocketmq5
