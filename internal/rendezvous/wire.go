// Package rendezvous lets the shards of a run meet. perfmq merge --rendezvous is the [Host], each load a [Member]: all
// begin at one moment, all end when one must, and the host gets a copy of each result while it grows.
//
//	member -> host: report; host -> member: order
//
// Twice a second each member reports its state, by a POST of JSON with the token: that is its sign of life. The order
// in the answer has the start and the end, as soon as the host knows them, and the clock of the host. A report may have
// a part of a file: the lines of a result travel as they are in its folder, so that the host has the rows of a member
// that died.
package rendezvous

import (
	"errors"
	"net/url"
	"time"

	"github.com/perfmq/perfmq/internal/threshold"
	"github.com/perfmq/perfmq/pkg/result"
)

// protocol is the version of the messages.
const protocol = 2

const (
	interval  = 500 * time.Millisecond // between two reports, and after a failed one
	timeLimit = 5 * time.Second        // of a report
	patience  = 10 * time.Second       // without a sign of the other side before it is taken for dead
	lead      = 3 * time.Second        // from the decision to the start: members measure their clocks meanwhile
	chunk     = 32 << 10               // bytes of a file in a report; listen lets a body have 64 KiB
	maxReply  = 64 << 10
)

// report is the state of a member. It is the same at each call, but for parts of files.
type report struct {
	Protocol  int      `json:"protocol"`
	Who       Shard    `json:"who"`
	Session   string   `json:"session"`        // tells this process apart from another one of the same number
	RunID     int64    `json:"runId,string"`   // that it got; 0 before the first order
	Connected bool     `json:"connected"`      // to the broker
	Part      *part    `json:"part,omitempty"` // of a file
	Bye       *Goodbye `json:"bye,omitempty"`  // nothing follows
}

// Shard is what a load says of itself.
type Shard struct {
	Shard    result.Shard `json:"shard"`
	Version  string       `json:"version"` // of perfmq
	PlanHash string       `json:"planHash"`
	Host     string       `json:"host"`
	// Aborts are the thresholds that end the run. The plan in a result does not say which do.
	Aborts     []threshold.Abort `json:"aborts,omitempty"`
	ClockShift time.Duration     `json:"-"` // of this machine's clock, for tests
}

// part is a part of a file. Last is that of a file that grows no more.
type part struct {
	Name   string `json:"name"`
	Offset int64  `json:"offset"`
	Data   []byte `json:"data"`
	Last   bool   `json:"last,omitempty"`
}

// Goodbye is how a member ended.
type Goodbye struct {
	Status int    `json:"status"`          // of the process
	Early  string `json:"early,omitempty"` // why it ended before its plan did: the others are to end too
}

// order is the answer to a report. Times are in microseconds by the clock of the host.
type order struct {
	RunID    int64  `json:"runId,string"`
	Start    int64  `json:"start,omitempty"` // of the load; 0 before it is known
	End      string `json:"end,omitempty"`   // why all must end
	Size     int64  `json:"size,omitempty"`  // of the file of the part
	Received int64  `json:"received"`        // when the report came
	Answered int64  `json:"answered"`
}

// Refusal is an answer that is no order.
type Refusal struct {
	Status int    `json:"-"`
	Text   string `json:"error"`
	Hint   string `json:"hint,omitempty"`
}

// Error returns the reason.
func (r *Refusal) Error() string { return r.Text }

// CheckURL finds mistakes in the URL of a rendezvous.
func CheckURL(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil ||
		u.RawQuery != "" || u.Path != "" && u.Path != "/" {
		return errors.New("must be http://HOST:PORT or https://HOST:PORT")
	}
	return nil
}

// files are what a member hands over, in this order: a row comes before its histograms. Whole files come at the end.
func files() (growing, whole []string) {
	return []string{result.PlanFile, result.RowsFile, result.LatenciesFile, result.TraceFile},
		[]string{result.VerifyFile, result.ResultFile}
}
