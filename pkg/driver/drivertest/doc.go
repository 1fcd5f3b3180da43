// Package drivertest is the conformance suite: the duties of every perfmq driver, tested on a real broker.
//
// A driver's test is a call of [Run] with the driver's factory and a URL:
//
//	func TestConformance(t *testing.T) {
//		broker := startBroker(t)
//		drivertest.Run(t, drivertest.Config{
//			Factory: stomp.Factory(), URL: broker.URL, User: "admin", Password: "admin", Inspect: inspect,
//		})
//	}
//
// # Reading the suite
//
// checks.go has the table of all checks; each file after it has one theme: sending, receiving, destinations, headers
// (the parts of a message beside the body), transactions, lifecycle, faults, optional (the optional interfaces of a
// driver), cost. A check is made for each kind of destination that the protocol has, as Done/slots=1/queue and
// Done/slots=1/topic.
//
// # Model
//
// The suite plays the engine: it owns the slots, checks each call of Done against them, and names every message by its
// time property, so that a lost, doubled or damaged message is reported by name. Each wait has a deadline and reports
// the missing event. The suite assumes no time or order that the protocols do not guarantee.
//
// A TCP proxy in front of the broker makes the faults of the network, or [Config.Path] where the protocol does not go
// through a proxy. [Config.Inspect] receives, by another way than the driver's, the parts of a message that a consumer
// does not see: whether it is persistent, the user's properties.
//
// The driver must refuse a feature that the protocol lacks ([driver.KindCapabilities]) with ClassUnsupported. A feature
// that only this broker lacks ([Config.Lacks]) must end in an error or in sends that are not accepted. No driver may
// ignore a setting silently.
//
// Each wait for something that does not come takes [Config.Timeout].
//
// Most checks wait most of the time, so several are made at once, each with destinations of its own; those that count
// what belongs to the whole process or broker follow one by one.
//
// When everything is closed, no goroutine may be left that was not there before: the suite looks after the checks that
// it made together, and after each of the others. It looks at all goroutines of the process: do not run the suite in
// parallel with other tests.
//
// # Mutants
//
// The suite is tested itself: mutants_test.go has drivers with one fault each, and for each fault the check that must
// fail and the text of its failure. Every check has such a mutant, and so has every sentence of package driver that
// obliges a driver: testdata/contract.txt. The features are the fields of [driver.KindCapabilities]: a field without a
// check fails the tests of the suite.
package drivertest
