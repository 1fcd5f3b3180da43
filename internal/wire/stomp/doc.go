// Package stomp is the syntax of STOMP 1.2 that both sides of a connection share: the escapes of headers,
// header lines, numbers, heart-beats and frames, as bytes. It has no connection, and reads no clock.
// References are to the specification of STOMP 1.2, https://stomp.github.io/stomp-specification-1.2.html, unless
// another is named.
//
// # Writing
//
// Everything is appended to a []byte of the caller's. A header is written with its escapes, so that a text never ends
// its line or frame. [Carries] tells beforehand.
//
// # Reading
//
// A [Reader] reads frames in place, for clients and servers. It limits the size of lines, heads and bodies before it
// takes memory for them. [CutHeader], [ParseNumber] and [Unescape] return parts of their input, and allocate
// nothing but texts with escapes in them.
package stomp
