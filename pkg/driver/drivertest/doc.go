// Package drivertest is the conformance suite: what every perfmq driver must do, tested on a real broker.
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
// (what travels beside the body), transactions, lifecycle, faults, optional (what a driver need not have), cost. A
// check is made for each kind of destination that the protocol has, as Done/slots=1/queue and Done/slots=1/topic.
//
// # Model
//
// The suite plays the engine: it owns the slots, checks each call of Done against them, and names every message by its
// time property, so that a message that is lost, doubled or damaged is known by name. Each wait has a deadline and says
// what was missing. Nothing is expected of time or order that protocols do not give.
//
// Faults of the network are made by a TCP proxy in front of the broker, or by [Config.Path] where the protocol does not
// go through a proxy. What a consumer does not see of a message (whether it is persistent, the user's properties) is
// looked at by [Config.Inspect], by another way than the driver's.
//
// What a protocol cannot do ([driver.KindCapabilities]), the driver must refuse with ClassUnsupported. What only this
// broker cannot do ([Config.Lacks]) must end in an error or in sends that are not accepted. To ignore a setting in
// silence is never right.
//
// After each check, when everything is closed, no goroutine may be left that was not there before. This looks at all
// goroutines of the process: do not run the suite in parallel with other tests.
//
// # Teeth
//
// The suite is tested itself: mutants_test.go has drivers with one thing wrong, and for each the check that must fail
// and what it must say. No check is without such a mutant.
package drivertest
