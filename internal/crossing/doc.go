// Package crossing holds tests of messages between protocols on one broker: sent over AMQP and received over STOMP,
// the other way round, and the two that do not cross; whole runs of the command line within the process, and single
// messages looked at with the client libraries. And that runs, one after the other, leave nothing behind.
//
// # Contents that cross
//
// Between AMQP 1.0 and STOMP, on Artemis and on ActiveMQ Classic: bodies byte by byte, user properties as text, the
// property time and with it the latencies, texts (an AMQP string, a SEND frame without content-length) and bytes as
// such, the numbers of verification, persistence, priority and expiry.
//
// # Changes by the brokers
//
//   - Sent over STOMP, all properties are texts: an AMQP receiver finds the property time as a string of decimal
//     digits, where AMQP senders put a long. The AMQP driver reads both. A selector that compares time as a number
//     matches only messages sent over AMQP.
//   - Sent over AMQP, all properties arrive over STOMP as texts, as STOMP has nothing else.
//   - Artemis delivers texts with content-length over STOMP, ActiveMQ Classic without.
//   - RabbitMQ before 4 keeps AMQP's properties in one header that only its AMQP plug-in reads, and shows no headers
//     of STOMP as AMQP's: bodies cross, the properties time and perfmq_... do not, so that nothing can be measured or
//     verified.
package crossing
