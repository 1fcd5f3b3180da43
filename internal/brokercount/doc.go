// Package brokercount compares a run with the counters of its broker: a [Watch] asks each second, beside the load, how
// many messages destinations have, got and were relieved of, and reports at the end how much these counts have grown.
// A [driver.Inspector] answers: a driver that can ask its broker, the embedded broker, or [Open] of a management URL
// (Jolokia of Artemis and ActiveMQ Classic, RabbitMQ's management plugin, the control of a perfmq broker).
//
// Nothing here disturbs a load: each question is bounded in time, a broker that does not answer is told once, and one
// that will never answer is not asked again.
package brokercount
