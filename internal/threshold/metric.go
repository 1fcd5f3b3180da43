package threshold

import (
	"fmt"
	"strings"

	"github.com/perfmq/perfmq/pkg/result"
)

// Unit is the unit of the values of a metric.
type Unit uint8

// The units.
const (
	Messages  Unit = iota
	PerSecond      // messages per second
	Time           // microseconds
	Percent        // 0 to 100
	Count          // of something else than messages
	Decimal        // of processors, of a load average
	Bytes
	BytesPerSecond
)

// The features that metrics can need.
const (
	Producers                = result.ProducerRole
	Consumers                = result.ConsumerRole
	Rate                     = result.Rated
	Transactions             = result.Transacted // --commit-interval or --tx
	Delay                    = result.Delaying
	Openings                 = result.OpenerRole // a group of connections
	Requests                 = result.Requesting // the role requester
	Replies                  = result.Responding // the role responder
	Verification result.Role = 1 << iota         // --verify
	Reconnection                                 // --reconnect
	Stalls                                       // --stall-threshold
	Window                                       // --verify-window
)

// Metric is a value of a run that a threshold can be about.
type Metric struct {
	Name  string
	Unit  Unit
	Needs result.Role // what a run must have for a value, several joined by or
	Help  string
	// Group is the group of a scenario in a Name "group.GROUP.METRIC"; empty for all groups.
	Group string
}

const withWarmup = ", warm-up included"

// clause returns a sentence as a part of another.
func clause(sentence string) string {
	return strings.ToLower(sentence[:1]) + strings.TrimSuffix(sentence[1:], ".")
}

// Metrics returns all metrics, in the order in which they are listed. Counts and latencies are of the messages due
// after the warm-up, unless the help says otherwise; rates are of the time from the end of the warm-up to the end of
// the load.
func Metrics() (list []Metric) {
	for _, k := range result.CounterTable() {
		m := Metric{Name: k.Name, Needs: k.Role &^ Delay, Help: clause(k.Help)} // without a delay no message is early
		if k.WithWarmup {
			m.Help += withWarmup
		}
		if k.Role == Transactions || k.Role == Openings {
			m.Unit = Count
		}
		if m.Name != "" {
			list = append(list, m)
		}
	}
	average := func(of string) string { return "average rate of " + of + " within the measured time" }
	extreme := func(which, of string) string { return which + " rate of " + of + " of a full second" }
	list = append(list, []Metric{
		{"sent.avg", PerSecond, Producers, average("sends"), ""},
		{"completed.avg", PerSecond, Producers, average("completions"), ""},
		{"completed.min", PerSecond, Producers, extreme("lowest", "completions"), ""},
		{"completed.max", PerSecond, Producers, extreme("highest", "completions"), ""},
		{"received.avg", PerSecond, Consumers, average("deliveries"), ""},
		{"received.min", PerSecond, Consumers, extreme("lowest", "deliveries"), ""},
		{"received.max", PerSecond, Consumers, extreme("highest", "deliveries"), ""},
		{"connections.live", Count, Openings, "the most connections that were open at the end of a second", ""},
		{"missing", Messages, Producers | Consumers, "deliveries missing when the drain ended" + withWarmup, ""},
		{"rate.missed", Percent, Producers | Rate, "share of the due messages that were not sent", ""},
		{"stall.count", Count, Stalls, "stalls of --stall-threshold or longer, of any broker or group", ""},
		{"stall.max", Time, Stalls, "the longest of them", ""},
		{"outage.count", Count, Reconnection, "outages, with --reconnect", ""},
		{"outage.max", Time, Reconnection, "the longest of them; no value if one did not end", ""},
		{
			"recovery.max", Time, Reconnection, "longest time from the broker's return to the first of three seconds " +
				"at 90% of the rates before the outage", "",
		},
		{"in_doubt", Messages, Reconnection, "messages in doubt after an outage", ""},
	}...)
	for _, k := range result.Kinds() {
		for _, s := range result.Statistics() {
			list = append(list, Metric{
				Name: k.Name + "." + s.Name, Unit: Time, Needs: k.Role,
				Help: s.Help + ", " + clause(k.Help),
			})
		}
	}
	const verified = Verification | Consumers
	return append(list, []Metric{
		{
			"lost", Messages, verified | Producers,
			"messages completed but never received although consumers waited" + withWarmup, "",
		},
		{
			"left", Messages, verified | Producers,
			"messages completed but not received when the consumers ended" + withWarmup, "",
		},
		{
			"arrived_late", Messages, verified | Producers | Window,
			"messages received after the verification window, no longer counted as lost" + withWarmup, "",
		},
		{"duplicated", Messages, verified, "deliveries beyond the first of each message" + withWarmup, ""},
		{"out_of_order", Messages, verified, "messages received after a later one of their producer" + withWarmup, ""},
		{"damaged", Messages, verified, "deliveries that differ from the message sent" + withWarmup, ""},
		{"tester.cpu", Percent, 0, "processor time of perfmq, of all processors it may use" + withWarmup, ""},
		{
			BrokerPrefix + "cpu", Decimal, 0, "cores used by the broker's process on average, with --broker-pid or " +
				"--broker-metrics, which all broker.* need", "",
		},
		{BrokerPrefix + "memory", Bytes, 0, "the most resident memory of the broker's process", ""},
		{BrokerPrefix + "disk", Percent, 0, "share of the time in which the busiest disk of its host was busy", ""},
		{BrokerPrefix + "network", BytesPerSecond, 0, "bytes in and out of its host, without the loopback", ""},
		{BrokerPrefix + "loopback", BytesPerSecond, 0, "bytes over the loopback of its host", ""},
		{BrokerPrefix + "load", Decimal, 0, "the highest load average of the last minute of its host", ""},
	}...)
}

// BrokerPrefix begins the names of the metrics of the broker's process and host, known at the end of a run or step.
// They cover the load and the drain, the warm-up included.
const BrokerPrefix = "broker."

// GroupPrefix begins the names of the metrics of one group: group.senders.completed.avg.
const GroupPrefix = "group."

// OfGroup reports whether the metric is known of each group, as GroupPrefix + GROUP + "." + Name.
func (m *Metric) OfGroup() bool {
	return m.Needs&(Verification|Reconnection) == 0 && m.Name != "missing" && m.Name != "tester.cpu" &&
		!strings.HasPrefix(m.Name, BrokerPrefix)
}

// Find returns the metric of a name, perhaps a group's.
func Find(name string) (Metric, bool) {
	list := Metrics()
	for _, m := range list {
		if m.Name == name {
			return m, true
		}
	}
	of, ok := strings.CutPrefix(name, GroupPrefix)
	var found Metric
	for _, m := range list { // "sent.avg" rather than a group that ends in ".sent"
		group, is := strings.CutSuffix(of, "."+m.Name)
		if ok && is && group != "" && m.OfGroup() && (found.Group == "" || len(group) < len(found.Group)) {
			found = m
			found.Name, found.Group = name, group
			found.Help += ", of the group " + group
		}
	}
	return found, found.Group != ""
}

// String returns the name of a unit in a list of metrics.
func (u Unit) String() string {
	return [...]string{"messages", "messages/s", "time", "percent", "count", "number", "bytes", "bytes/s"}[u]
}

// Format writes a value as it is written in a threshold.
func (u Unit) Format(v float64) string {
	switch u {
	case Time:
		switch {
		case v >= 1e6:
			return trim(v/1e6, 3) + "s"
		case v >= 1e3:
			return trim(v/1e3, 3) + "ms"
		default:
			return trim(v, 1) + "us"
		}
	case PerSecond:
		return trim(v, 1) + "/s"
	case Percent:
		return trim(v, 1) + "%"
	case Decimal:
		return trim(v, 2)
	case Bytes:
		return trim(v/1e6, 2) + "MB"
	case BytesPerSecond:
		return trim(v/1e6, 2) + "MB/s"
	default:
		return trim(v, 0)
	}
}

func trim(v float64, digits int) string {
	text := fmt.Sprintf("%.*f", digits, v)
	if strings.Contains(text, ".") {
		text = strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
	}
	return text
}
