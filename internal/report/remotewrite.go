package report

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/exp/api/remote"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/perfmq/perfmq/internal/words"
	"github.com/perfmq/perfmq/pkg/driver"
)

// Receiver is where and how the metrics of a run are written.
type Receiver struct {
	URL      string   // with or without user and password; without a path it is that of Prometheus
	Secret   string   // the password of the user or, without a user, a bearer token; empty for none
	Headers  []string // NAME=VALUE
	TLS      driver.TLS
	Version  string // of this program
	Every    time.Duration
	Instance string       // a label of all series
	Say      func(string) // tells the user at the end what was lost
}

// RemoteWrite writes the metrics of a run to a receiver of Prometheus remote write: one goroutine gathers them, another
// one writes. The run waits for neither until its end.
//
// It speaks version 1.0, which all receivers accept. Its message is encoded here: the type of it is in Prometheus's own
// module, which is large.
type RemoteWrite struct {
	Receiver
	to       string // the URL without its parts that may be secret
	api      *remote.API
	client   *http.Client
	gatherer prometheus.Gatherer
	run      string
	begun    time.Time
	last     int64           // when the last request was made, in milliseconds
	live     map[string]bool // the series in it, encoded

	ending chan struct{} // nil before start
	queue  chan writeRequest
	sent   chan struct{} // closed after the last request
	stop   context.CancelFunc

	written, retried, lost atomic.Uint64 // requests
	lostLast               bool
	why                    error // the latest failure
}

// Limits of writes.
const (
	answerPatience = 10 * time.Second // for an answer
	lastPatience   = 10 * time.Second // for all answers after the end of the run
	maxRetryPause  = 5 * time.Second  // unless the receiver asks for more
	maxUnwritten   = 60               // requests that wait; the oldest is lost
	maxAnswerBody  = 1 << 20          // bytes that are read

	staleNaN = 0x7ff0000000000002 // the value that ends a series
	// staleAfter is when the series end after the final values: alerts and dashboards have to see these once.
	staleAfter = time.Minute
)

// NewRemoteWrite returns a writer to a receiver. It follows no redirects: they would take the secret elsewhere.
func NewRemoteWrite(to *Receiver) (*RemoteWrite, error) {
	u, err := url.Parse(to.URL)
	if err != nil {
		return nil, err
	}
	config, err := to.TLS.Config(u.Hostname())
	if err != nil {
		return nil, &driver.Error{Class: driver.ClassTLS, Op: "prepare remote write", Err: err}
	}
	t := &remoteTransport{&http.Transport{TLSClientConfig: config}, http.Header{"User-Agent": {"perfmq/" + to.Version}}}
	for _, pair := range to.Headers {
		name, value, _ := strings.Cut(pair, "=")
		t.header.Set(name, value)
	}
	if user := u.User; user != nil {
		password, _ := user.Password()
		(&http.Request{Header: t.header}).SetBasicAuth(user.Username(), cmp.Or(password, to.Secret))
	} else if to.Secret != "" {
		t.header.Set("Authorization", "Bearer "+to.Secret)
	}
	u.User, u.Path = nil, cmp.Or(strings.TrimSuffix(u.Path, "/"), "/api/v1/write")
	w := &RemoteWrite{Receiver: *to, client: &http.Client{
		Timeout: answerPatience, Transport: t,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	w.api, err = remote.NewAPI(u.String(), remote.WithAPIPath(""), remote.WithAPIHTTPClient(w.client),
		remote.WithAPIBackoff(remote.BackoffConfig{Min: maxRetryPause / 10, Max: maxRetryPause}))
	u.RawQuery = ""
	w.to = u.String()
	return w, err
}

// remoteTransport adds headers to requests, and bounds answers.
type remoteTransport struct {
	*http.Transport
	header http.Header
}

// RoundTrip implements [http.RoundTripper].
func (t *remoteTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	maps.Copy(r.Header, t.header)
	answer, err := t.Transport.RoundTrip(r)
	if err == nil {
		answer.Body = http.MaxBytesReader(nil, answer.Body, maxAnswerBody)
	}
	return answer, err
}

// start begins to write what g gathers.
func (w *RemoteWrite) start(g prometheus.Gatherer, run int64) {
	var ctx context.Context
	ctx, w.stop = context.WithCancel(context.Background())
	w.gatherer, w.run, w.begun = g, strconv.FormatInt(run, 10), time.Now()
	w.ending, w.queue, w.sent = make(chan struct{}), make(chan writeRequest, maxUnwritten), make(chan struct{})
	go w.gatherAll()
	go w.writeAll(ctx)
}

func (w *RemoteWrite) gatherAll() {
	defer close(w.queue)
	tick := time.NewTicker(w.Every)
	defer tick.Stop()
	w.gather(false)
	for last := false; !last; {
		select {
		case <-tick.C:
		case <-w.ending:
			last = true
		}
		w.gather(last)
	}
}

// gather makes a request of the present values. The last one also ends all series.
func (w *RemoteWrite) gather(last bool) {
	families, _ := w.gatherer.Gather()                                        // what can be gathered
	samples, _ := expfmt.ExtractSamples(&expfmt.DecodeOptions{}, families...) // of all kinds of ours
	at := max(w.begun.Add(time.Since(w.begun)).UnixMilli(), w.last+1)         // steps of the wall clock do not matter
	var r writeRequest
	live := map[string]bool{}
	for _, s := range samples {
		series := w.labels(s.Metric)
		live[series] = true
		delete(w.live, series)
		values := appendSample([]byte(series), math.Float64bits(float64(s.Value)), at)
		if last {
			values = appendSample(values, staleNaN, at+staleAfter.Milliseconds())
		}
		r = appendMessage(r, 1, values)
	}
	for series := range w.live { // it has vanished
		r = appendMessage(r, 1, appendSample([]byte(series), staleNaN, at))
	}
	w.last, w.live = at, live
	if len(w.queue) == cap(w.queue) { // the writer may take one of them meanwhile
		<-w.queue
		w.lost.Add(1)
	}
	w.queue <- r
}

// labels encodes the labels of a series, sorted, with those that a scrape would add.
func (w *RemoteWrite) labels(m model.Metric) string {
	m["job"], m["instance"], m["run"] = "perfmq", model.LabelValue(w.Instance), model.LabelValue(w.run)
	for _, name := range []model.LabelName{"le", "quantile"} {
		if v := string(m[name]); v != "" && !strings.ContainsAny(v, ".eI") { // 1.0, as OpenMetrics has it
			m[name] += ".0"
		}
	}
	var b []byte
	for _, name := range slices.Sorted(maps.Keys(m)) {
		if m[name] != "" { // it would be the same series without it
			b = appendMessage(b, 1, appendMessage(appendMessage(nil, 1, []byte(name)), 2, []byte(m[name])))
		}
	}
	return string(b)
}

// writeRequest is a WriteRequest of remote write 1.0 (prompb/remote.proto and types.proto of Prometheus), encoded.
// The client asks a message for its bytes by these methods.
type writeRequest []byte

// SizeVT returns the number of bytes.
func (r writeRequest) SizeVT() int { return len(r) }

// MarshalToSizedBufferVT copies the message.
func (r writeRequest) MarshalToSizedBufferVT(to []byte) (int, error) { return copy(to, r), nil }

func appendMessage(to []byte, field protowire.Number, message []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(to, field, protowire.BytesType), message)
}

func appendSample(series []byte, value uint64, at int64) []byte {
	s := protowire.AppendFixed64(protowire.AppendTag(nil, 1, protowire.Fixed64Type), value)
	s = protowire.AppendVarint(protowire.AppendTag(s, 2, protowire.VarintType), uint64(at)) //nolint:gosec // after 1970
	return appendMessage(series, 2, s)
}

// writeAll writes the requests in their order. The client repeats what failed by the network or the receiver's fault,
// and not what the receiver refuses.
func (w *RemoteWrite) writeAll(ctx context.Context) {
	defer close(w.sent)
	for r := range w.queue {
		_, err := w.api.Write(ctx, remote.WriteV1MessageType, r, remote.WithWriteRetryCallback(func(err error) {
			w.retried.Add(1)
			w.why = err
		}))
		if w.lostLast = err != nil; !w.lostLast {
			w.written.Add(1)
			continue
		}
		w.lost.Add(1)
		if ctx.Err() == nil { // else the run waits no longer
			w.why = err
		}
	}
}

// close writes the final values, and tells what was lost. It waits for at most lastPatience.
func (w *RemoteWrite) close() {
	if w.ending == nil { // no load was made
		return
	}
	close(w.ending)
	select {
	case <-w.sent:
	case <-time.After(lastPatience):
	}
	w.stop()
	<-w.sent
	w.client.CloseIdleConnections()
	if lost := w.lost.Load(); lost > 0 {
		final := map[bool]string{true: ", the final values among them"}[w.lostLast]
		why, all := cmp.Or(w.why, errors.New("no answer in time")), words.Plural(lost+w.written.Load(), "remote write")
		w.Say(fmt.Sprintf("warning: %d of %s to %s did not arrive%s: %v", lost, all, w.to, final, why))
	}
}
