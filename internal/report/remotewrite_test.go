package report

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/exp/api/remote"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/perfmq/perfmq/internal/listen"
	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/result"
)

// point is a sample; NaN stands for the end of a series.
type point struct {
	value float64
	at    int64 // ms
}

// received is a request of remote write.
type received struct {
	*http.Request
	at     time.Time
	series map[string][]point // by "name label=value ..."
}

// receiver is a told receiver, in place of the network. Answers are its answers in order, the last for all others.
type receiver struct {
	t       *testing.T
	answers []answer
	got     []received
}

// answer writes an answer, or returns why none comes.
type answer func(http.ResponseWriter, *http.Request) error

// status answers with a status; more are headers.
func status(code int, body string, headers ...string) answer {
	return func(w http.ResponseWriter, _ *http.Request) error {
		for i := 0; i+1 < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body) // a 204 refuses even an empty one
		return nil
	}
}

// silence never answers.
func silence(_ http.ResponseWriter, r *http.Request) error {
	<-r.Context().Done()
	return r.Context().Err()
}

func (f *receiver) RoundTrip(r *http.Request) (*http.Response, error) {
	remote.SnappyDecodeMiddleware(slog.New(slog.DiscardHandler))(http.HandlerFunc(func(_ http.ResponseWriter, plain *http.Request) {
		f.got = append(f.got, f.read(r, musttest.Get(io.ReadAll(plain.Body))(f.t)))
	})).ServeHTTP(httptest.NewRecorder(), r.Clone(r.Context()))
	next := f.answers[0]
	if len(f.answers) > 1 {
		f.answers = f.answers[1:]
	}
	w := httptest.NewRecorder()
	if err := next(w, r); err != nil {
		return nil, err
	}
	return w.Result(), nil
}

// fields calls f for each field of a message.
func (f *receiver) fields(b []byte, each func(n protowire.Number, text []byte, number uint64)) {
	for len(b) > 0 {
		n, kind, size := protowire.ConsumeTag(b)
		require.Positive(f.t, size)
		b = b[size:]
		var text []byte
		var number uint64
		switch kind {
		case protowire.BytesType:
			text, size = protowire.ConsumeBytes(b)
		case protowire.Fixed64Type:
			number, size = protowire.ConsumeFixed64(b)
		default:
			number, size = protowire.ConsumeVarint(b)
		}
		require.Positive(f.t, size)
		b = b[size:]
		each(n, text, number)
	}
}

func (f *receiver) read(r *http.Request, body []byte) received {
	got := received{Request: r, at: time.Now(), series: map[string][]point{}}
	f.fields(body, func(n protowire.Number, message []byte, _ uint64) {
		require.EqualValues(f.t, 1, n)
		var labels, names []string
		var points []point
		f.fields(message, func(n protowire.Number, message []byte, _ uint64) {
			var texts [3]string
			var p point
			f.fields(message, func(n protowire.Number, text []byte, number uint64) {
				texts[n] = string(text)
				if n == 1 {
					p.value = math.Float64frombits(number)
					if number == 0x7ff0000000000002 {
						p.value = math.NaN()
					}
				}
				p.at = int64(number) //nolint:gosec // a time
			})
			if n == 2 {
				points = append(points, p)
				return
			}
			names = append(names, texts[1])
			labels = append(labels, strings.TrimPrefix(texts[1]+"="+texts[2], "__name__="))
		})
		require.True(f.t, slices.IsSorted(names), names)
		got.series[strings.Join(labels, " ")] = points
	})
	return got
}

// points returns the samples of a series in a request.
func (r *received) points(t *testing.T, name string) []point {
	t.Helper()
	before, labels, _ := strings.Cut(name, " ")
	all := append(strings.Fields(labels), "instance=host", "job=perfmq", "run=42")
	slices.Sort(all)
	key := "perfmq_" + before + " " + strings.Join(all, " ")
	require.Contains(t, r.series, key, slices.Sorted(maps.Keys(r.series)))
	return r.series[key]
}

// writing returns a reporter that writes to a receiver, and what it says.
func writing(t *testing.T, url, secret string, f *receiver) (p *Prometheus, said func() string) {
	t.Helper()
	f.t = t
	var text string
	w := musttest.Get(NewRemoteWrite(&Receiver{
		URL: url, Secret: secret, Headers: []string{"X-Scope-OrgID=team"}, Version: "1.2.3", Every: 5 * time.Second,
		Instance: "host", Say: func(s string) { text += s },
	}))(t)
	transport := w.client.Transport.(*remoteTransport)
	transport.RegisterProtocol("http", f)
	transport.RegisterProtocol("https", f)
	p = musttest.Get(NewPrometheus("", "1.2.3", listen.Web{}, nil))(t)
	p.WriteTo(w)
	run := clientRun()
	run.ID = 42
	require.NoError(t, p.Start(run))
	return p, func() string { return text }
}

// TestRemoteWriteValues: a receiver gets the values of each moment, at its time; vanished series end, and all end after
// the final values.
func TestRemoteWriteValues(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &receiver{answers: []answer{status(204, "")}}
		begin := time.Now()
		p, said := writing(t, "https://me:secret@receiver.example/push?tenant=1", "", f)
		time.Sleep(time.Second) //nolint:forbidigo // in a bubble
		first := stats.Counters{result.Sent: 1000, result.Completed: 900, result.Received: 800}
		require.NoError(t, p.Interval(snapshot(stats.Warmup, 0, first, openLoop())))
		time.Sleep(5 * time.Second) //nolint:forbidigo // in a bubble
		second := stats.Counters{result.Sent: 2500, result.Completed: 2400, result.Received: 2300}
		require.NoError(t, p.Interval(snapshot(stats.Measure, 1, second, openLoop())))
		time.Sleep(5 * time.Second) //nolint:forbidigo // in a bubble
		require.NoError(t, p.Summary(brokenRun()))
		require.NoError(t, p.Close())
		require.Empty(t, said())

		require.Len(t, f.got, 4)
		ms := func(after time.Duration) int64 { return begin.Add(after).UnixMilli() }
		end := ms(11 * time.Second)
		for i, want := range []point{{0, ms(0)}, {1000, ms(5 * time.Second)}, {2500, ms(10 * time.Second)}, {1_216_053, end}} {
			require.Equal(t, want, f.got[i].points(t, "messages_sent_total")[0])
		}
		// Histograms: what checkHistograms knows of openLoop, once in the warm-up and once later.
		for _, phase := range []string{"warmup", "measure"} {
			i := map[string]int{"warmup": 1, "measure": 2}[phase]
			require.InDelta(t, 20, f.got[i].points(t, "response_seconds_count phase="+phase)[0].value, 0)
			require.InDelta(t, 10.5, f.got[i].points(t, "response_seconds_sum phase="+phase)[0].value, 1e-9)
			for le, n := range map[string]float64{"1e-05": 0, "0.1": 1, "1.0": 19, "100.0": 20, "+Inf": 20} {
				require.InDelta(t, n, f.got[i].points(t, "response_seconds_bucket le="+le+" phase="+phase)[0].value, 0, le)
			}
		}
		gone := f.got[2].points(t, "response_seconds_bucket le=1.0 phase=warmup")
		require.True(t, len(gone) == 1 && math.IsNaN(gone[0].value) && gone[0].at == ms(10*time.Second), "%v", gone)
		require.Equal(t, 1.0, f.got[3].points(t, "phase phase=ended")[0].value)
		require.Equal(t, 3.0, f.got[3].points(t, "remote_writes_total state=written")[0].value)
		for name, points := range f.got[3].series {
			require.Len(t, points, 2, name)
			require.Equal(t, end, points[0].at)
			require.True(t, math.IsNaN(points[1].value) && points[1].at == end+60_000, "%v", points)
		}
		for _, r := range f.got {
			require.Equal(t, "https://receiver.example/push?tenant=1", r.URL.String())
			user, password, _ := r.BasicAuth()
			require.Equal(t, "me secret", user+" "+password)
			for name, want := range map[string]string{
				"Content-Encoding": "snappy", "Content-Type": "application/x-protobuf", "User-Agent": "perfmq/1.2.3",
				"X-Prometheus-Remote-Write-Version": "0.1.0", "X-Scope-OrgID": "team",
			} {
				require.Contains(t, r.Header.Get(name), want)
			}
		}
	})
}

// TestRemoteWriteFailures: failures of the receiver are repeated in time, its refusals are not, and each is counted.
func TestRemoteWriteFailures(t *testing.T) {
	t.Parallel()
	refused := func(http.ResponseWriter, *http.Request) error { return errors.New("connection refused") }
	const to = "to http://receiver.example/api/v1/write did not arrive"
	for name, c := range map[string]struct {
		answers                []answer
		written, retried, lost uint64
		said                   string        // begins so
		took                   time.Duration // of all, at least
		most                   time.Duration
	}{
		"repeated": {
			answers: []answer{status(500, "no"), refused, status(503, ""), status(200, "")},
			written: 3, retried: 3, took: 7 * time.Second, most: 8 * time.Second,
		},
		"retry after": {
			answers: []answer{status(429, "", "Retry-After", "6"), status(204, "")},
			written: 3, retried: 1, took: 7 * time.Second, most: 8 * time.Second,
		},
		"refused": {
			answers: []answer{
				status(400, "out of order\n\x1b[31m secret"), status(204, ""),
			},
			written: 2, lost: 1, took: 7 * time.Second, most: 7 * time.Second,
			said: "warning: 1 of 3 remote writes " + to + ": server returned HTTP status 400 Bad Request: out of order",
		},
		"redirect": {
			answers: []answer{status(307, "", "Location", "http://thief.example/")},
			lost:    3, took: 7 * time.Second, most: 7 * time.Second,
			said: "warning: 3 of 3 remote writes " + to + ", the final values among them: server returned HTTP status 307",
		},
		"away": {
			answers: []answer{refused},
			lost:    3, retried: 7, took: 17 * time.Second, most: 17 * time.Second,
			said: "warning: 3 of 3 remote writes " + to + ", the final values among them: Post \"http://receiver.example/api/v1/write\": connection refused",
		},
		"asks for a day": {
			answers: []answer{status(503, "later", "Retry-After", "86400")},
			lost:    3, retried: 1, took: 17 * time.Second, most: 17 * time.Second,
			said: "warning: 3 of 3 remote writes " + to + ", the final values among them: server returned HTTP status 503",
		},
		"silent": {
			answers: []answer{silence},
			lost:    3, retried: 1, took: 17 * time.Second, most: 17 * time.Second,
			said: "warning: 3 of 3 remote writes " + to + ", the final values among them: Post \"http://receiver.example/api/v1/write\": context deadline exceeded",
		},
		"long": { // the user's console cuts it
			answers: []answer{status(400, strings.Repeat("x", 1<<20)), status(500, strings.Repeat("x", 1<<19)), status(200, strings.Repeat("x", 1<<19))},
			written: 2, retried: 1, lost: 1, took: 7 * time.Second, most: 7 * time.Second,
			said: "warning: 1 of 3 ",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := &receiver{answers: c.answers}
				begin := time.Now()
				p, said := writing(t, "http://receiver.example", "secret", f)
				time.Sleep(7 * time.Second) //nolint:forbidigo // in a bubble
				require.NoError(t, p.Summary(brokenRun()))
				require.NoError(t, p.Close())
				took := time.Since(begin)
				require.True(t, c.took <= took && took <= c.most, took)
				w := p.remote
				require.Equal(t, c.written, w.written.Load())
				require.Equal(t, c.lost, w.lost.Load())
				if c.retried == 7 { // by chance
					require.Positive(t, w.retried.Load())
				} else {
					require.Equal(t, c.retried, w.retried.Load())
				}
				require.True(t, strings.HasPrefix(said(), c.said) && (c.said != "") == (said() != ""), said())
				require.Less(t, len(said()), 2<<20)
				var last int64
				for _, r := range f.got {
					require.Equal(t, "http://receiver.example/api/v1/write", r.URL.String())
					require.Equal(t, "Bearer secret", r.Header.Get("Authorization"))
					at := r.points(t, "workers")[0].at
					require.GreaterOrEqual(t, at, last, "in order")
					last = at
				}
			})
		})
	}
}

// TestRemoteWriteQueue: while the receiver is away, the oldest of many requests are lost; the others arrive later.
func TestRemoteWriteQueue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &receiver{}
		back := time.Now().Add(10 * time.Minute)
		f.answers = []answer{func(w http.ResponseWriter, r *http.Request) error {
			if time.Now().Before(back) {
				return context.DeadlineExceeded
			}
			return status(204, "")(w, r)
		}}
		p, said := writing(t, "http://receiver.example/", "", f)
		time.Sleep(11 * time.Minute) //nolint:forbidigo // in a bubble
		require.NoError(t, p.Close())
		const made = 11*60/5 + 2 // the first and the last too; the load of the last tick may come before it
		w := p.remote
		require.Contains(t, []uint64{made, made - 1}, w.written.Load()+w.lost.Load())
		require.InDelta(t, 10*60/5-maxUnwritten, w.lost.Load(), 2)
		require.Contains(t, said(), "did not arrive: Post \"http://receiver.example/api/v1/write\": ")
	})
}

// A run that did not begin writes nothing.
func TestRemoteWriteWithoutRun(t *testing.T) {
	t.Parallel()
	p := musttest.Get(NewPrometheus("", "1.2.3", listen.Web{}, nil))(t)
	p.WriteTo(musttest.Get(NewRemoteWrite(&Receiver{URL: "http://127.0.0.1:1"}))(t))
	require.NoError(t, p.Close())
	_, err := NewRemoteWrite(&Receiver{URL: "https://127.0.0.1:1", TLS: driver.TLS{CAFile: "missing.pem"}})
	require.Equal(t, driver.ClassTLS, driver.ClassOf(err))
}
