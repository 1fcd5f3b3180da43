// Package managedtest has told peers of managed brokers, none of which can be had in a test: small AMQP 1.0 brokers
// that behave as their vendors document, and misbehave at messages of known numbers. They count their actions.
//
// A peer shows that perfmq does what a vendor's documentation asks for, not that the vendor's broker is as documented.
// docs/managed-brokers.md has the sources.
package managedtest
