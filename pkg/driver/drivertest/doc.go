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
// time property, so that a message that is lost, doubled or damaged is known by name. Each wait has a deadline and
// reports what was missing. Nothing is expected of time or order that protocols do not give.
//
// Faults of the network are made by a TCP proxy in front of the broker, or by [Config.Path] where the protocol does not
// go through a proxy. The parts of a message that a consumer does not see (whether it is persistent, the user's
// properties) are looked at by [Config.Inspect], by another way than the driver's.
//
// The driver must refuse a feature that the protocol lacks ([driver.KindCapabilities]) with ClassUnsupported. A feature
// that only this broker lacks ([Config.Lacks]) must end in an error or in sends that are not accepted. To ignore a
// setting in silence is never right.
//
// After each check, when everything is closed, no goroutine may be left that was not there before. This looks at all
// goroutines of the process: do not run the suite in parallel with other tests.
//
// # Teeth
//
// The suite is tested itself: mutants_test.go has drivers with one thing wrong, and for each the check that must fail
// and the text of its failure. No check is without such a mutant.
package drivertest
