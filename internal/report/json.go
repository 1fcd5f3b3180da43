package report

import (
	"bytes"
	"cmp"
	"encoding/json"
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
	if j.err = j.write(j.file.append, j.interval(s)); j.err == nil {
		j.intervals++
	} else if j.OnError != nil {
		j.OnError(j.err)
	}
	return nil
}

func (j *JSON) interval(s *stats.Snapshot) *object {
	has, span := j.sides(), s.To.Sub(s.From)
	o := new(object)
	o.add("sampleType", "interval").add("warmup", s.Phase == stats.Warmup).add("time", s.To.UnixMilli())
	o.addIf(has.sends, "sent", rate(s.Delta[result.Sent], span)).addIf(has.sends, "delayed",
		rate(s.Delta[result.Blocked], span))
	o.addIf(has.sends, "completed", rate(s.Delta[result.Completed], span))
	o.addIf(has.receives, "received", rate(s.Delta[result.Received], span))
	o.addAll(latencyKeys("", &s.Latencies))
	o.addIf(j.run.Several() && s.Step != "", "step", s.Step).add("phase", s.Phase.String())
	o.add("elapsedSeconds", s.Elapsed.Seconds()).add("intervalSeconds", s.Seconds())
	o.add("inFlight", s.InFlight).add("workers", s.Workers).add("counts", has.totals(&s.Delta, true))
	o.addIf(s.Leftover != result.Latencies{}, "leftover", latencyKeys("", &s.Leftover))
	o.addAll(ownCounts(&s.Delta))
	o.addIf(s.Verified != nil, "verified", s.Verified).add("health", health(&s.Health))
	depth := depthOf(s.Depths)
	return o.addIf(depth != nil, "depth", depth).addIf(s.Side != nil, "brokerSide", s.Side)
}

// Summary appends the object that ends the array.
func (j *JSON) Summary(s *stats.Summary) error { return j.write(j.file.last, j.summary(s)) }

func (j *JSON) summary(s *stats.Summary) *object {
	outcome := "fail"
	if s.Success {
		outcome = "success"
	}
	findings := append([]result.Finding{}, s.Findings...)
	if j.err != nil {
		findings = append(findings, missingFrom("intervals are missing from interval", j.intervals+1, j.err))
	}
	has, run := j.sides(), &j.run
	o := new(object)
	o.add("sampleType", "summary").add("time", s.End.UnixMilli()).add("result", outcome)
	o.addAll(has.figures(&s.Total, &s.Latencies, &s.Minimum))
	o.add("start", s.Start.UnixMilli()).add("reason", s.Reason)
	o.addIf(s.ExpectedKnown, "totalExpected", s.Expected).addIf(s.ExpectedKnown, "totalMissing", s.Missing)
	o.addAll(has.ends(&s.Total)).addIf(len(s.Protocol) > 0, "protocolCounters", countersByName(s.Protocol))
	o.addIf(s.Verification != nil, "verification", s.Verification).add("measured", has.totals(&s.Measured, false))
	o.add("health", health(&s.Health))
	o.add("protocol", run.Protocol)
	o.addIf(run.ConsumerProtocol != "" && run.ConsumerProtocol != run.Protocol, "consumerProtocol", run.ConsumerProtocol)
	o.add("client", run.Client)
	o.addIf(run.ConsumerClient != "" && run.ConsumerClient != run.Client, "consumerClient", run.ConsumerClient)
	o.add("destinations", notNil(run.Destinations))
	o.addIf(len(s.Thresholds) > 0, "thresholds", Thresholds(s.Thresholds)).addIf(len(s.Marks) > 0, "marks", s.Marks)
	o.add("problems", notNil(s.Problems()))
	o.add("warnings", notNil(result.Texts(findings, result.Warning))).add("leftBehind", notNil(s.LeftBehind))
	o.addIf(run.Scenario != "", "scenario", run.Scenario).addIf(len(run.Labels) > 0, "labels", run.Labels)
	steps, groups := has.steps(s.Steps), jsonGroups(s.Groups)
	o.addIf(len(steps) > 0, "steps", steps).addIf(len(s.Commands) > 0, "commands", jsonCommands(s.Commands))
	o.addIf(len(groups) > 0, "groups", groups).addIf(len(s.Brokers) > 0, "brokers", s.Brokers)
	o.addIf(s.Limit.Kind != "", "limit", limit(&s.Limit))
	o.addAll(has.numbers(s, findings))
	if h := j.head; h != nil {
		o.add("runId", strconv.FormatInt(run.ID, 10)).addIf(h.Plan != nil, "config", h.Plan)
		o.add("versions", h.Versions).add("host", h.Host)
	}
	side := brokerSide(s.Side)
	return o.addIf(s.BrokerCount != nil, "brokerCount", brokerCount(s.BrokerCount)).addIf(side != nil, "brokerSide", side)
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

func notNil(texts []string) []string {
	if texts == nil {
		return []string{}
	}
	return texts
}
