package words

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/perfmq/perfmq/pkg/result"
)

const (
	ownMachine  = "give perfmq a machine of its own"
	moreWorkers = "try more producers, consumers or connections"
)

// bounds are the reasons why the rate of a load was not higher, as the waits of its workers show it.
//
//nolint:gochecknoglobals // a table that never changes
var bounds = []struct {
	name, kind string // how stats asks for it, and [result.Limit.Kind]
	text, hint string // the evidence, a format of [fmt.Sprintf], and a remedy
}{
	{"reached", result.LimitNone, "the rate was reached", ""},
	{
		"unknown", result.LimitUnknown,
		"the measured part was too short, or its workers cannot tell what they wait for", "",
	},
	{"stored", result.LimitUnknown, "consumers had received all, and waited %s of the time", ""},
	{"slot", result.LimitMaxPending, "producers waited for answers %s of the time", "try a larger --max-pending"},
	{
		"answer", result.LimitMaxPending,
		"each send waited for its answer, %s of the time", "try to send asynchronously, or more --producers",
	},
	{
		"client", result.LimitMaxPending,
		"producers waited for answers %s of the time: the client has at most %s of a %s in flight", "",
	},
	{
		"credit", result.LimitCredit, "producers waited for it %s of the time",
		"look for a full queue, address or disk, or give producers more credit",
	},
	{
		"socket", result.LimitSocket, "producers waited %s of the time to write",
		"look at the network, and for a slow broker",
	},
	{"silent", result.LimitBroker, "it answered nothing", ""},
	{"silence", result.LimitBroker, "it answered nothing for %s of the time while producers waited", ""},
	{
		"late", result.LimitBroker,
		"with all messages in flight, its answers took %s on average, %.0f times the shortest (%s)", "",
	},
	{"send", result.LimitBroker, "producers waited in Send %s of the time", ""},
	{"backlog", result.LimitBroker, "its backlog grew by %.0f msg/s while consumers waited", ""},
	{
		"delivery", result.LimitBroker,
		"old messages waited in it while consumers waited, %s of the time", "try more --credit or --consumers",
	},
	{"input", result.LimitProducers, "consumers waited for messages %s of the time", ""},
	{"work", result.LimitConsumers, "their work took %s of their time%s", "try more --consumers"},
	{"pace", result.LimitConsumers, "they receive no more than their rate%s", "raise --consumer-rate"},
	{"worker", result.LimitWorker, "%s never waited in %s of %s", moreWorkers},
	{"lateness", result.LimitWorker, "it sent late, though it waited for due times only", moreWorkers},
	{"processors", result.LimitProcessors, "it used %.2f of its %d cores", "use more hosts, or larger messages"},
	{"machine", result.LimitMachine, "others took %s of its processors", ownMachine},
	{"pause", result.LimitMachine, "perfmq was paused for up to %s", ownMachine},
}

// NewLimit returns the limit of a rate by the name of its bound. The values fill the bound's text.
func NewLimit(bound string, share float64, values ...any) result.Limit {
	i := 0
	for bounds[i].name != bound {
		i++
	}
	b := &bounds[i]
	return result.Limit{Kind: b.kind, Share: share, Text: fmt.Sprintf(b.text, values...), Hint: b.hint}
}

// LimitTitle names the kind of a limit.
func LimitTitle(kind string) string {
	return cmp.Or(map[string]string{
		result.LimitCredit: "the broker's credit", result.LimitBroker: "the broker", result.LimitConsumers: "the consumers",
		result.LimitProducers: "the producers", result.LimitMachine: "the machine", result.LimitSocket: "the network buffer",
		result.LimitWorker: "one worker of perfmq", result.LimitProcessors: "perfmq's processors",
	}[kind], kind)
}

// Limit returns a limit as one line of text without a label.
func Limit(l *result.Limit) string {
	title := LimitTitle(l.Kind)
	if l.Kind == result.LimitNone {
		return title + ": " + l.Text
	}
	return title + " (" + strings.TrimSuffix(l.Text+"; "+l.Hint, "; ") + ")"
}
