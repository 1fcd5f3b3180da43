package report

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode"

	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/internal/words"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/result"
)

// JSON writes a file of one array with an object per interval and one for the summary, as `artemis perf --json` does:
// the same keys in the same order (blocked is "delayed" in intervals), rates in whole messages per second, latencies in
// microseconds with the mean as text. Keys that only perfmq has follow; their counts are counts, not rates. The last
// keys are the row of an interval, and the details of a run: its result, as --result writes them.
//
// A regular file is valid JSON at every moment. After an interval that cannot be written, no more follow: OnError gets
// the error, the summary is still written if there is room for it, with a finding, and Close returns the error.
type JSON struct {
	recorder
	file  *recordFile
	comma string // between the records
}

// NewJSON creates the file, or empties an existing one.
func NewJSON(path string, options ResultOptions) (*JSON, error) {
	file, err := createFile("JSON", path, "\n]\n", forOwner)
	if err != nil {
		return nil, err
	}
	return &JSON{recorder: recorder{ResultOptions: options}, file: file}, nil
}

// NewJSONStream writes the array of [NewJSON] to w, such as standard output, and does not close it.
func NewJSONStream(name string, w io.Writer, options ResultOptions) *JSON {
	return &JSON{
		recorder: recorder{ResultOptions: options},
		file:     &recordFile{what: "JSON to " + name, stream: w, tail: "\n]\n"},
	}
}

// Start begins the array.
func (j *JSON) Start(run stats.Run) error {
	j.start(run)
	j.comma = "\n"
	return j.file.begin("[")
}

// Interval appends an object to the array.
func (j *JSON) Interval(s *stats.Snapshot) error {
	return j.record(func() error { return j.write(j.file.append, j.interval(s)) })
}

func (j *JSON) interval(s *stats.Snapshot) *object {
	sends, receives, span := j.run.Producing, j.run.Consuming, s.To.Sub(s.From)
	o := new(object)
	o.add("sampleType", "interval").add("warmup", s.Phase == result.Warmup).add("time", s.To.UnixMilli())
	o.addIf(sends, "sent", rate(s.Get(result.Sent), span)).addIf(sends, "delayed", rate(s.Get(result.Blocked), span))
	o.addIf(sends, "completed", rate(s.Get(result.Completed), span))
	o.addIf(receives, "received", rate(s.Get(result.Received), span)).addLatencies("", &s.Latencies)
	o.addIf(j.run.Several() && s.Step != "", "step", s.Step).add("phase", s.Phase)
	o.add("elapsedSeconds", float64(s.Elapsed)/1e6).add("intervalSeconds", span.Seconds())
	counts := new(object)
	counts.addIf(sends, "sent", s.Get(result.Sent)).addIf(sends, "blocked", s.Get(result.Blocked))
	counts.addIf(sends, "completed", s.Get(result.Completed)).addIf(receives, "received", s.Get(result.Received))
	o.add("counts", counts)
	if s.Leftover != nil {
		o.add("leftover", new(object).addLatencies("", s.Leftover))
	}
	return o.addCounts(&s.Counts).add("row", s.Bare())
}

// Summary appends the object that ends the array.
func (j *JSON) Summary(s *stats.Summary) error { return j.write(j.file.last, j.summary(s)) }

func (j *JSON) summary(s *stats.Summary) *object {
	sends, receives, total := j.run.Producing, j.run.Consuming, s.Total.Values()
	o := new(object).add("sampleType", "summary").add("time", s.End/1000)
	o.add("result", words.Outcome(s.Outcome.Success))
	o.addIf(sends, "totalSent", total[result.Sent]).addIf(sends, "totalBlocked", total[result.Blocked])
	o.addIf(sends, "totalCompleted", total[result.Completed]).addIf(receives, "totalReceived", total[result.Received])
	o.addLatencies("total ", &s.Latencies)
	o.add("start", s.Start/1000).add("reason", s.Outcome.Reason)
	o.addIf(s.Expected != nil, "totalExpected", s.Expected).addIf(s.Missing != nil, "totalMissing", s.Missing)
	o.addIf(sends, "totalRejected", total[result.Rejected]).addIf(sends, "totalReleased", total[result.Released])
	o.addIf(sends, "totalModified", total[result.Modified]).addIf(sends, "totalFailed", total[result.Failed])
	o.addIf(sends, "totalUnconfirmed", total[result.Unconfirmed])
	details := j.whole(s, "intervals are missing from interval")
	o.addIf(total[result.Resent] > 0, "totalResent", total[result.Resent]).addCounts(&details.Total)
	o.add("problems", append([]string{}, details.Outcome.Problems...))
	o.add("warnings", append([]string{}, details.Outcome.Warnings...))
	return o.add("leftBehind", append([]string{}, s.Outcome.LeftBehind...)).add("details", details)
}

// Close ends the array of a pipe, and closes the file.
func (j *JSON) Close() error { return cmp.Or(j.err, j.file.close()) }

// write passes a record on as text. A record without a place leaves the comma to the next one.
func (j *JSON) write(to func(string) error, record any) error {
	text, err := result.Encode(record, "")
	if err != nil {
		return driver.Errorf(driver.ClassOther, "encode a record for the "+j.file.what, "", "%w", err)
	}
	err = to(j.comma + strings.TrimSuffix(string(text), "\n"))
	if err == nil {
		j.comma = ",\n"
	}
	return err
}

// addLatencies adds latencies under the keys of `artemis perf`, each behind a prefix. One without values has null for
// each.
func (o *object) addLatencies(prefix string, all *result.Latencies) *object {
	for _, k := range printed() {
		l := all[k.Kind]
		if l == nil {
			continue
		}
		of := new(object)
		number := func(key string, value any) {
			if l.Count == 0 {
				value = nil
			}
			of.add(key, value)
		}
		number("mean", strconv.FormatFloat(l.Mean(), 'f', 2, 64))
		for _, p := range []float64{50, 90, 99, 99.9, 99.99} {
			number(strconv.FormatFloat(p, 'f', -1, 64), l.Percentile(p))
		}
		number("max", l.Max)
		of.add("count", l.Count)
		number("meanMicroseconds", math.Round(100*l.Mean())/100) // the mean as a number
		o.add(camelCase(prefix+k.Label), of)
	}
	return o
}

// addCounts adds the counters that only perfmq has. Rare ones are left out if they are 0.
func (o *object) addCounts(c *result.Counts) *object {
	failures := map[string]map[string]uint64{}
	if c.Producers != nil {
		failures = c.Producers.Failures
	}
	o.add("failures", failures)
	counts := c.Values()
	for _, k := range result.CounterTable() {
		o.addIf(k.Key != "" && (counts[k.Counter] > 0 || k.Counter <= result.OutOfRange), k.Key, counts[k.Counter])
	}
	return o
}

// object is a JSON object with its keys in order.
type object struct {
	text bytes.Buffer
	err  error
}

// add adds a key.
func (o *object) add(key string, value any) *object { return o.addIf(true, key, value) }

// addIf adds a key on a condition.
func (o *object) addIf(known bool, key string, value any) *object {
	if !known {
		return o
	}
	if o.text.Len() > 0 {
		o.text.WriteByte(',')
	}
	for i, part := range []any{key, value} {
		if i > 0 {
			o.text.WriteByte(':')
		}
		encoder := json.NewEncoder(&o.text)
		encoder.SetEscapeHTML(false) // keeps "a -> b" in a problem legible
		if err := encoder.Encode(part); err != nil {
			o.err = errors.Join(o.err, fmt.Errorf("%s: %w", key, err))
			return o
		}
		o.text.Truncate(o.text.Len() - 1) // the line feed
	}
	return o
}

// MarshalJSON returns the text.
func (o *object) MarshalJSON() ([]byte, error) { return []byte("{" + o.text.String() + "}"), o.err }

// printed returns the kinds of latencies in the order of the console and of JSON: `artemis perf` has the first.
func printed() (list []result.KindInfo) {
	for _, artemis := range []bool{true, false} {
		for _, k := range result.Kinds() {
			if k.Artemis == artemis {
				list = append(list, k)
			}
		}
	}
	return list
}

// camelCase returns the key of a label: "totalSendTime" of "total send time".
func camelCase(label string) string {
	words := strings.Fields(label)
	for i := range words[1:] {
		words[i+1] = string(unicode.ToUpper(rune(words[i+1][0]))) + words[i+1][1:]
	}
	return strings.Join(words, "")
}

// HDR writes a [result.HDRLog]: for each interval a line per latency that the run measures. Lines for b2c and s2c begin
// with the first message that has times of birth and storage. An interval without a value has its line too. Times
// follow the monotonic clock. An interval is in the file entirely or not at all. `artemis perf --hdr` writes the same
// without response, b2c and s2c, and with spaces in its tags, which log readers reject.
type HDR struct {
	file *recordFile
	log  result.HDRLog
}

// NewHDR creates the file, or empties an existing one.
func NewHDR(path string) (*HDR, error) {
	file, err := createFile("HDR", path, "", forAll)
	if err != nil {
		return nil, err
	}
	return &HDR{file: file}, nil
}

// Start writes the head of the log.
func (h *HDR) Start(run stats.Run) error { return h.write(h.file.begin)(h.log.Head(run.Start)) }

// Interval writes a line for each latency that is measured.
func (h *HDR) Interval(s *stats.Snapshot) error {
	return h.write(h.file.append)(h.log.Row(&s.Row))
}

// Summary writes nothing: the sum of the lines is the summary.
func (h *HDR) Summary(*stats.Summary) error { return nil }

// Close closes the file.
func (h *HDR) Close() error { return h.file.close() }

// write passes encoded text on as one record.
func (h *HDR) write(to func(string) error) func([]byte, error) error {
	return func(text []byte, err error) error {
		if err != nil {
			return driver.Errorf(driver.ClassOther, "fill the "+h.file.what, "", "%w", err)
		}
		return to(string(text))
	}
}
