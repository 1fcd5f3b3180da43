// Package rendezvous lets the shards of a run meet. perfmq merge --rendezvous is the [Host], each load a [Member]: all
// begin at one moment, all end when one must, and the host gets a copy of each result while it grows.
//
//	member -> host: hello, connected, wait (a long poll, which is the sign of life), clock, file, bye
//
// Each is a POST of JSON with the token, and is answered within pollTime. The lines of a result travel as they are in
// its folder, so that the host has what a member that died had measured.
package rendezvous

import (
	"errors"
	"net/url"
	"time"

	"github.com/perfmq/perfmq/pkg/result"
)

// protocol is the version of the messages.
const protocol = 1

const (
	pollTime = 5 * time.Second        // of a long poll; listen lets a request take 10 seconds
	patience = 10 * time.Second       // without a sign of the other side before it is taken for dead
	lead     = 3 * time.Second        // from the decision to the start: members measure their clocks meanwhile
	retry    = 500 * time.Millisecond // after a failed request
	chunk    = 32 << 10               // bytes of a file in a request; listen lets a body have 64 KiB
	maxReply = 64 << 10
)

type hello struct {
	Protocol int          `json:"protocol"`
	Version  string       `json:"version"` // of perfmq
	Shard    result.Shard `json:"shard"`
	PlanHash string       `json:"planHash"`
	Host     string       `json:"host"`
	Aborts   []Abort      `json:"aborts,omitempty"`
}

// Abort is a threshold that ends the run, of a step or of the whole run. The plan in a result does not say which do.
type Abort struct {
	Step      string `json:"step,omitempty"`
	Threshold string `json:"threshold"`
}

type welcome struct {
	Session string `json:"session"`
	RunID   int64  `json:"runId,string"`
}

// state is what a member knows.
type state struct {
	Session string `json:"session"`
	Started bool   `json:"started,omitempty"` // it knows the start
	Ended   bool   `json:"ended,omitempty"`   // it knows why it must end
}

// news is what a member does not know yet. Start is in microseconds by the clock of the host.
type news struct {
	Start int64  `json:"start,omitempty"`
	End   string `json:"end,omitempty"`
}

// instant is when a request came and was answered, in microseconds.
type instant struct {
	Received int64 `json:"received"`
	Answered int64 `json:"answered"`
}

type part struct {
	Session string `json:"session"`
	Name    string `json:"name"`
	Offset  int64  `json:"offset"`
	Data    []byte `json:"data"`
}

// stored is the size of the file at the host.
type stored struct {
	Size int64 `json:"size"`
}

// Goodbye is how a member ended.
type Goodbye struct {
	Session string `json:"session"`
	Status  int    `json:"status"`          // of the process
	Early   string `json:"early,omitempty"` // why it ended before its plan did: the others are to end too
}

type nothing struct{}

// Refusal is an answer that is no success.
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
