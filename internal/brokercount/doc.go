// Package brokercount holds a run against what its broker counts: a [Watch] asks each second, beside the load, how many
// messages destinations have, got and were relieved of, and what that has grown by at the end. Who answers is a
// [driver.Inspector]: a driver that can ask its broker, the embedded broker, or [Open] of a management URL (Jolokia of
// Artemis and ActiveMQ Classic, RabbitMQ's management plugin, the control of a perfmq broker).
//
// Nothing here disturbs a load: each question is bounded in time, a broker that does not answer is told once, and one
// that will never answer is not asked again.
package brokercount
