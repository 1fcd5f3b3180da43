package report

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strconv"

	"github.com/perfmq/perfmq/internal/safetext"
	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/result"
)

// JSON writes a file of one array with an object per interval and one for the summary, as `artemis perf --json` does:
// the same keys in the same order (blocked is "delayed" in intervals), rates in whole messages per second, latencies in
// microseconds with the mean as text. Keys that only perfmq has follow; their counts are counts, not rates.
//
// A regular file is valid JSON at every moment, so that it can be read during the run and after a kill.
//
// After an interval that cannot be written, no more follow: OnError gets the error, the summary is still written and
// has a finding about it, and Close returns the error. A regular file has room for the summary from the start: blanks
// after its end, until then.
type JSON struct {
	// OnError, if not nil, is called at once with the error after which no more intervals are written.
	OnError func(error)

	file      *recordFile
	comma     string // between the records
	head      *result.Head
	run       stats.Run
	err       error // why the intervals end
	intervals int
}

// summaryRoom is the size of the room for the summary, in bytes: as much as a result keeps for its own.
const summaryRoom = 128 << 10

// NewJSON creates the file, or empties an existing one.
func NewJSON(path string) (*JSON, error) {
	file, err := createFile("JSON", path, "\n]\n", forOwner)
	if err != nil {
		return nil, err
	}
	if file.seek {
		file.room = summaryRoom
	}
	return &JSON{file: file}, nil
}

// Describe adds the plan and the versions of head to the summary.
func (j *JSON) Describe(head result.Head) *JSON {
	j.head = &head
	return j
}

// described returns the keys of the summary for plan, versions and host; empty without Describe.
func (j *JSON) described() (d jsonDescribed) {
	if j.head != nil {
		d = jsonDescribed{strconv.FormatInt(j.run.ID, 10), j.head.Plan, &j.head.Versions, &j.head.Host}
	}
	return d
}

// Start begins the array.
func (j *JSON) Start(run stats.Run) error {
	j.run = run
	j.comma = "\n"
	return j.file.begin("[")
}

// Interval appends an object to the array.
func (j *JSON) Interval(s *stats.Snapshot) error {
	if j.err != nil {
		return nil //nolint:nilerr // it was reported
	}
	perSecond := func(measured bool, delta uint64) *uint64 {
		return valueIf(measured, rate(delta, s.To.Sub(s.From)))
	}
	producing, step := j.run.Producing, ""
	if j.run.Several() {
		step = s.Step
	}
	if j.err = j.write(j.file.append, jsonInterval{
		SampleType:    "interval",
		Warmup:        s.Phase == stats.Warmup,
		Time:          s.To.UnixMilli(),
		Sent:          perSecond(producing, s.Delta.Sent),
		Delayed:       perSecond(producing, s.Delta.Blocked),
		Completed:     perSecond(producing, s.Delta.Completed),
		Received:      perSecond(j.run.Consuming, s.Delta.Received),
		DelaySendTime: toJSONLatency(s.Latencies.Delay),
		SendTime:      toJSONLatency(s.Latencies.Ack),
		TransferTime:  toJSONLatency(s.Latencies.Transfer),
		ResponseTime:  toJSONLatency(s.Latencies.Response),
		B2CTime:       toJSONLatency(s.Latencies.B2C),
		S2CTime:       toJSONLatency(s.Latencies.S2C),
		CommitTime:    toJSONLatency(s.Latencies.Commit),
		Lateness:      toJSONLatency(s.Latencies.Lateness),
		Step:          step,
		Phase:         s.Phase.String(),
		Elapsed:       s.Elapsed.Seconds(),
		Length:        s.Seconds(),
		InFlight:      s.InFlight,
		Workers:       s.Workers,
		Counts:        j.sides().totals(&s.Delta),
		Leftover:      toJSONLeftover(s.Leftover),
		Saturated:     s.Saturated,
		jsonCounts:    toJSONCounts(&s.Delta),
		Verified:      s.Verified,
		Health:        toJSONHealth(&s.Health),
		Depth:         depthOf(s.Depths),
		BrokerSide:    brokerUse(s.Side),
	}); j.err == nil {
		j.intervals++
	} else if j.OnError != nil {
		j.OnError(j.err)
	}
	return nil
}

// Summary appends the object that ends the array.
func (j *JSON) Summary(s *stats.Summary) error {
	result := "fail"
	if s.Success {
		result = "success"
	}
	ifOther := func(value, own string) string {
		if value == own {
			return ""
		}
		return value
	}
	has := j.sides()
	numbers, warnings := has.numbers(s), notNil(s.Warnings)
	if j.err != nil {
		f := missingFrom("intervals are missing from interval", j.intervals+1, j.err)
		numbers.Findings, warnings = append(numbers.Findings, f), append(slices.Clip(warnings), f.Text)
	}
	return j.write(j.file.last, jsonSummary{
		SampleType:       "summary",
		Time:             s.End.UnixMilli(),
		Result:           result,
		jsonFigures:      has.figures(&s.Total, &s.Latencies, &s.Minimum),
		Start:            s.Start.UnixMilli(),
		Reason:           s.Reason,
		TotalExpected:    valueIf(s.ExpectedKnown, s.Expected),
		TotalMissing:     valueIf(s.ExpectedKnown, s.Missing),
		jsonEnds:         has.ends(&s.Total),
		ProtocolCounters: countersByName(s.Protocol),
		Verification:     s.Verification,
		Measured:         has.measured(&s.Measured),
		Saturated:        toJSONSaturation(s.Saturation),
		Health:           toJSONHealth(&s.Health),
		Protocol:         j.run.Protocol,
		Consumer:         ifOther(j.run.ConsumerProtocol, j.run.Protocol),
		Client:           j.run.Client,
		ConsumerClient:   ifOther(j.run.ConsumerClient, j.run.Client),
		Destinations:     notNil(j.run.Destinations),
		Thresholds:       Thresholds(s.Thresholds),
		Marks:            marks(s.Marks),
		Problems:         notNil(s.Problems),
		Warnings:         warnings,
		LeftBehind:       notNil(s.LeftBehind),
		Scenario:         j.run.Scenario,
		Labels:           j.run.Labels,
		jsonNumbers:      numbers,
		jsonDescribed:    j.described(),
		Steps:            has.steps(s.Steps),
		Commands:         toJSONCommands(s.Commands),
		Groups:           toJSONGroups(s.Groups),
		Brokers:          brokers(s.Brokers),
		Limit:            limit(&s.Limit),
		BrokerCount:      brokerCount(s.BrokerCount),
		BrokerSide:       brokerSide(s.Side),
	})
}

func (j *JSON) sides() sides { return sides{j.run.Producing, j.run.Consuming} }

// Close ends the array of a pipe, and closes the file.
func (j *JSON) Close() error { return cmp.Or(j.err, j.file.close()) }

// write passes a record on as text. A record without a place leaves the comma to the next one.
func (j *JSON) write(to func(string) error, record any) error {
	var b bytes.Buffer
	b.WriteString(j.comma)
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false) // keeps "a -> b" in a problem legible
	if err := encoder.Encode(record); err != nil {
		return driver.Errorf(driver.ClassOther, "encode a record for the "+j.file.what, "", "%w", err)
	}
	err := to(string(safetext.JSON(bytes.TrimSuffix(b.Bytes(), []byte("\n")))))
	if err == nil {
		j.comma = ",\n"
	}
	return err
}

func valueIf(known bool, n uint64) *uint64 {
	if !known {
		return nil
	}
	return &n
}

func notNil(texts []string) []string {
	if texts == nil {
		return []string{}
	}
	return texts
}
