package report

import (
	"encoding/json"
	"math"
	"strconv"

	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/internal/verify"
	"github.com/perfmq/perfmq/pkg/result"
)

type jsonInterval struct {
	SampleType    string       `json:"sampleType"`
	Warmup        bool         `json:"warmup"`
	Time          int64        `json:"time"` // end of the interval, ms since the epoch
	Sent          *uint64      `json:"sent,omitempty"`
	Delayed       *uint64      `json:"delayed,omitempty"`
	Completed     *uint64      `json:"completed,omitempty"`
	Received      *uint64      `json:"received,omitempty"`
	DelaySendTime *jsonLatency `json:"delaySendTime,omitempty"`
	SendTime      *jsonLatency `json:"sendTime,omitempty"`
	TransferTime  *jsonLatency `json:"transferTime,omitempty"`

	ResponseTime *jsonLatency `json:"responseTime,omitempty"`
	B2CTime      *jsonLatency `json:"b2cTime,omitempty"`
	S2CTime      *jsonLatency `json:"s2cTime,omitempty"`
	CommitTime   *jsonLatency `json:"commitTime,omitempty"` // from asking for a commit to its confirmation
	Lateness     *jsonLatency `json:"lateness,omitempty"`   // of delayed messages, beyond their delay
	Step         string       `json:"step,omitempty"`       // if there are several
	Phase        string       `json:"phase"`
	Elapsed      float64      `json:"elapsedSeconds"`  // from the start of the load
	Length       float64      `json:"intervalSeconds"` // the length for the rates
	InFlight     uint64       `json:"inFlight"`
	Workers      int          `json:"workers"`
	Counts       jsonTotals   `json:"counts"` // of the interval; all intervals add up to the totals
	// Leftover has the latencies of messages that were due in the warm-up and ended in this later interval.
	Leftover  *jsonLatencies `json:"leftover,omitempty"`
	Saturated []string       `json:"saturated,omitempty"` // workers that never waited in the interval
	jsonCounts
	// Verified has the totals of the verification up to Time, not those of the interval.
	Verified *verify.Progress `json:"verified,omitempty"`
	Health   jsonHealth       `json:"health"`
	Depth    *uint64          `json:"depth,omitempty"` // messages at the broker, at all destinations together
	// BrokerSide is what the broker and its host used.
	BrokerSide *result.BrokerUse `json:"brokerSide,omitempty"`
}

type jsonSummary struct {
	SampleType string `json:"sampleType"`
	Time       int64  `json:"time"`
	Result     string `json:"result"`
	jsonFigures
	Start         int64   `json:"start"` // of the load, ms since the epoch
	Reason        string  `json:"reason"`
	TotalExpected *uint64 `json:"totalExpected,omitempty"`
	TotalMissing  *uint64 `json:"totalMissing,omitempty"`
	jsonEnds
	ProtocolCounters map[string]uint64 `json:"protocolCounters,omitempty"`
	Verification     *verify.Result    `json:"verification,omitempty"`

	// Measured counts the messages that were due after the warm-up.
	Measured jsonTotals `json:"measured"`
	Health   jsonHealth `json:"health"`
	Protocol string     `json:"protocol"`
	Consumer string     `json:"consumerProtocol,omitempty"` // if it is another one
	// Client is "native", or the client library that spoke the protocol.
	Client         string   `json:"client"`
	ConsumerClient string   `json:"consumerClient,omitempty"` // if it is another one
	Destinations   []string `json:"destinations"`
	// Saturated lists the workers that the tester limited, with the number of full seconds of load.
	Saturated  []jsonSaturation   `json:"saturated,omitempty"`
	Thresholds []result.Threshold `json:"thresholds,omitempty"`
	Marks      []result.Mark      `json:"marks,omitempty"`
	Problems   []string           `json:"problems"`
	Warnings   []string           `json:"warnings"`
	LeftBehind []string           `json:"leftBehind"`
	Scenario   string             `json:"scenario,omitempty"`
	Labels     map[string]string  `json:"labels,omitempty"`
	Steps      []jsonStep         `json:"steps,omitempty"` // if there are several
	Commands   []jsonCommand      `json:"commands,omitempty"`
	Groups     []jsonGroup        `json:"groups,omitempty"` // of a scenario, if there are several
	// Brokers has the product and version that each broker reported.
	Brokers []result.Broker `json:"brokers,omitempty"`
	Limit   *result.Limit   `json:"limit,omitempty"` // what bounded the rate
	jsonNumbers
	jsonDescribed
	// BrokerCount has the counts of the brokers.
	BrokerCount *result.BrokerCount `json:"brokerCount,omitempty"`
	// BrokerSide is what the broker and its host used.
	BrokerSide []result.BrokerSide `json:"brokerSide,omitempty"`
}

// jsonLatencies are latencies under the keys of an interval.
type jsonLatencies struct {
	DelaySendTime *jsonLatency `json:"delaySendTime,omitempty"`
	SendTime      *jsonLatency `json:"sendTime,omitempty"`
	TransferTime  *jsonLatency `json:"transferTime,omitempty"`
	ResponseTime  *jsonLatency `json:"responseTime,omitempty"`
	B2CTime       *jsonLatency `json:"b2cTime,omitempty"`
	S2CTime       *jsonLatency `json:"s2cTime,omitempty"`
	CommitTime    *jsonLatency `json:"commitTime,omitempty"`
	Lateness      *jsonLatency `json:"lateness,omitempty"`
}

// jsonTotals are numbers of messages and of waits. Keys that do not apply to the run's role are missing.
type jsonTotals struct {
	Sent      *uint64 `json:"sent,omitempty"`
	Blocked   *uint64 `json:"blocked,omitempty"`
	NoLeave   *uint64 `json:"noLeave,omitempty"` // part of blocked: waits for the broker's credit
	Completed *uint64 `json:"completed,omitempty"`
	Received  *uint64 `json:"received,omitempty"`
	Socket    *uint64 `json:"socketWaits,omitempty"` // waits for the network to take more, not part of blocked
}

type jsonSaturation struct {
	Worker     string `json:"worker"`
	Seconds    int    `json:"seconds"`
	Connection int    `json:"connectionSeconds"` // part of seconds: it was the connection of the worker
	Crowded    int    `json:"crowdedSeconds"`    // part of seconds: others kept the machine's processors busy
	Of         int    `json:"of"`
}

// jsonCounts are the counters that only perfmq has, of an interval or of the run.
type jsonCounts struct {
	// Failures counts the messages that did not complete, by state and class: {"failed": {"timeout": 10}}.
	Failures          map[string]map[string]uint64 `json:"failures"`
	Redelivered       uint64                       `json:"redelivered"`
	Foreign           uint64                       `json:"foreign"`
	Unstamped         uint64                       `json:"unstamped"`
	NegativeTransfers uint64                       `json:"negativeTransfers"`
	OutOfRange        uint64                       `json:"outOfRange"`
	NegativeAges      uint64                       `json:"negativeAges,omitempty"`
	Unsent            uint64                       `json:"unsent,omitempty"` // part of failed
	Paused            uint64                       `json:"paused,omitempty"` // latencies with a pause of the tester
	Commits           uint64                       `json:"commits,omitempty"`
	CommitsFailed     uint64                       `json:"commitsFailed,omitempty"`
	Delayed           uint64                       `json:"receivedDelayed,omitempty"`  // with a requested delay
	Early             uint64                       `json:"receivedEarly,omitempty"`    // part of them, too early
	ConsumerReleased  uint64                       `json:"consumerReleased,omitempty"` // given back on purpose
	ConsumerRejected  uint64                       `json:"consumerRejected,omitempty"` // part of received, on purpose
}

// jsonLowest is the lowest rate of a full measured second; missing if there were fewer than three of them.
type jsonLowest struct {
	PerSecond uint64  `json:"perSecond"`      // rounded
	Time      int64   `json:"time"`           // end of that second, ms since the epoch
	Elapsed   float64 `json:"elapsedSeconds"` // the same from the start of the load
}

// jsonLatency has null for each value if there are none.
type jsonLatency struct {
	Mean  *string `json:"mean"`
	P50   *int64  `json:"50"`
	P90   *int64  `json:"90"`
	P99   *int64  `json:"99"`
	P999  *int64  `json:"99.9"`
	P9999 *int64  `json:"99.99"`
	Max   *int64  `json:"max"`
	Count int64   `json:"count"`
	// Average is the mean as a number.
	Average *float64 `json:"meanMicroseconds"`
}

type jsonHealth struct {
	CPUSeconds float64 `json:"cpuSeconds"`
	CPUShare   float64 `json:"cpuShare"` // of all cores, 0 to 1
	Cores      int     `json:"cores"`
	LateSends  uint64  `json:"lateSends"`
	// LateCrowded and LatePaused are parts of LateSends: others kept the machine busy, or the tester stood still.
	LateCrowded uint64  `json:"lateSendsCrowded"`
	LatePaused  uint64  `json:"lateSendsPaused"`
	GCPauses    uint64  `json:"gcPauses"`
	GCPauseMax  float64 `json:"gcPauseMaxMicroseconds"`
	ClockStep   float64 `json:"clockStepMicroseconds"` // forward less backward
	Forward     float64 `json:"clockForwardMicroseconds"`
	Backward    float64 `json:"clockBackwardMicroseconds"`
	Pauses      uint64  `json:"pauses"` // times in which the tester stood still
	PauseMax    float64 `json:"pauseMaxMicroseconds"`
	MemoryPeak  uint64  `json:"memoryPeakBytes,omitempty"` // the most resident bytes; in the summary only
}

// jsonDescribed are the run as its messages name it, the plan under the names of the settings, the programs and the
// machine.
type jsonDescribed struct {
	RunID    string           `json:"runId,omitempty"`
	Config   json.RawMessage  `json:"config,omitempty"`
	Versions *result.Versions `json:"versions,omitempty"`
	Host     *result.Host     `json:"host,omitempty"`
}

func toJSONLatency(l *stats.Latency) *jsonLatency {
	if l == nil {
		return nil
	}
	if l.Count() == 0 {
		return &jsonLatency{}
	}
	percentile := func(p float64) *int64 {
		us := l.Percentile(p)
		return &us
	}
	average := math.Round(100*l.Mean()) / 100
	mean := strconv.FormatFloat(l.Mean(), 'f', 2, 64)
	return &jsonLatency{
		Mean:  &mean,
		P50:   percentile(50),
		P90:   percentile(90),
		P99:   percentile(99),
		P999:  percentile(99.9),
		P9999: percentile(99.99),
		Max:   percentile(100),
		Count: l.Count(), Average: &average,
	}
}

// toJSONLeftover returns nil without values, as in most intervals.
func toJSONLeftover(l stats.Latencies) *jsonLatencies {
	if l == (stats.Latencies{}) {
		return nil
	}
	return &jsonLatencies{
		DelaySendTime: toJSONLatency(l.Delay), SendTime: toJSONLatency(l.Ack), TransferTime: toJSONLatency(l.Transfer),
		ResponseTime: toJSONLatency(l.Response), B2CTime: toJSONLatency(l.B2C), S2CTime: toJSONLatency(l.S2C),
		CommitTime: toJSONLatency(l.Commit), Lateness: toJSONLatency(l.Lateness),
	}
}

// totals returns the counts of the sides that exist.
func (has sides) totals(c *stats.Counters) jsonTotals {
	producing := has.sends
	return jsonTotals{
		Sent: valueIf(producing, c.Sent), Blocked: valueIf(producing, c.Blocked), NoLeave: valueIf(producing, c.NoLeave),
		Completed: valueIf(producing, c.Completed), Received: valueIf(has.receives, c.Received),
		Socket: valueIf(producing, c.SocketWaits),
	}
}

// measured returns the counts of messages, without waits, which belong to no message.
func (has sides) measured(c *stats.Counters) jsonTotals {
	t := has.totals(c)
	t.Blocked, t.NoLeave, t.Socket = nil, nil, nil
	return t
}

func toJSONSaturation(list []stats.Saturation) (out []jsonSaturation) {
	for _, s := range list {
		out = append(out, jsonSaturation{s.Worker, s.Seconds, s.Connection, s.Crowded, s.Of})
	}
	return out
}

func toJSONCounts(c *stats.Counters) jsonCounts {
	return jsonCounts{
		Failures: failuresByClass(c), Redelivered: c.Redelivered, Foreign: c.Foreign, Unstamped: c.Unstamped,
		NegativeTransfers: c.NegativeTransfers, OutOfRange: c.OutOfRange,
		NegativeAges: c.NegativeAges, Unsent: c.Unsent, Paused: c.Paused,
		Commits: c.Commits, CommitsFailed: c.CommitsFailed,
		Delayed: c.Delayed, Early: c.Early,
		ConsumerReleased: c.ConsumerReleased, ConsumerRejected: c.ConsumerRejected,
	}
}

func toJSONLowest(measured bool, l *stats.Lowest) *jsonLowest {
	if !measured || !l.Known() {
		return nil
	}
	return &jsonLowest{PerSecond: uint64(math.Round(l.PerSecond)), Time: l.To.UnixMilli(), Elapsed: l.Elapsed.Seconds()}
}

func toJSONHealth(h *stats.Health) jsonHealth {
	return jsonHealth{
		CPUSeconds: h.CPU.Seconds(), CPUShare: cpuShare(h), Cores: h.Cores,
		LateSends: h.LateSends, LateCrowded: h.LateCrowded, LatePaused: h.LatePaused,
		GCPauses: h.GCPauses, GCPauseMax: microseconds(h.GCPauseMax),
		ClockStep: microseconds(h.ClockForward - h.ClockBackward),
		Forward:   microseconds(h.ClockForward), Backward: microseconds(h.ClockBackward),
		Pauses: h.Pauses, PauseMax: microseconds(h.PauseMax), MemoryPeak: h.MemoryPeak,
	}
}
