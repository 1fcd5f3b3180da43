package rendezvous

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/listen"
	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/internal/threshold"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/result"
)

const token = "a-token-of-the-test"

// pipes is a network inside a bubble of synctest.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), closed: make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8443} }

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case p.conns <- there:
		return here, nil
	case <-p.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// texts collects what a side says.
type texts struct {
	mu   sync.Mutex
	list []string
}

func (t *texts) say(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.list = append(t.list, text)
}

func (t *texts) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Join(t.list, "\n")
}

// place is a host with its network.
type place struct {
	*Host
	net    *pipes
	server *listen.HTTP
	said   texts
	ran    chan struct{} // closed when Run has ended
	stop   context.CancelFunc
}

func newHost(dir string, shards int) *Host {
	return &Host{
		Shards: shards, Token: token, Version: "1.2.3", Dir: dir, Timeout: time.Minute, Say: func(string) {},
		Turn: func([]threshold.Abort, func(int) bool) string { return "" },
	}
}

// open begins a host in the bubble.
func open(t *testing.T, shards int) *place {
	p := &place{Host: newHost(t.TempDir(), shards), net: newPipes(), ran: make(chan struct{})}
	p.Say = p.said.say
	p.Open()
	p.server = listen.Serve(p.net, p.Handler())
	ctx, stop := context.WithCancel(context.Background())
	p.stop = stop
	go func() { p.Run(ctx); close(p.ran) }()
	return p
}

func (p *place) close(t *testing.T) {
	p.stop()
	<-p.ran
	_ = p.server.Close()
	synctest.Wait()
}

// shard is a member with what it was told.
type shard struct {
	*Member
	halt chan string
	said texts
}

func (p *place) join(t *testing.T, number int, shift time.Duration) *shard {
	s := &shard{halt: make(chan string, 1)}
	o := Options{URL: "http://127.0.0.1:8443", Timeout: time.Minute, Token: token, TLS: &driver.TLS{}, dial: p.net.dial}
	of := Shard{
		Shard: result.Shard{Number: number, Of: p.Shards}, Version: "1.2.3", PlanHash: "hash", Host: fmt.Sprint("host-", number),
		ClockShift: shift,
	}
	s.Member = musttest.Get(Join(t.Context(), o, of, s.halt, s.said.say))(t)
	return s
}

// startAll lets the shards wait for the start.
func startAll(t *testing.T, shards ...*shard) (starts []time.Time, aheads []*result.Offset, errs []error) {
	starts, aheads, errs = make([]time.Time, len(shards)), make([]*result.Offset, len(shards)), make([]error, len(shards))
	var wait sync.WaitGroup
	for i, s := range shards {
		wait.Go(func() { starts[i], aheads[i], errs[i] = s.Start(t.Context()) })
	}
	wait.Wait()
	return starts, aheads, errs
}

// Three shards begin at one moment, each by its own clock, and their results arrive.
func TestMeet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := open(t, 3)
		defer p.close(t)
		shifts := []time.Duration{0, 5 * time.Second, -90 * time.Minute}
		var shards []*shard
		for i, shift := range shifts {
			s := p.join(t, i+1, shift)
			s.Dir = t.TempDir()
			shards = append(shards, s)
			require.Equal(t, p.runID, s.RunID)
			time.Sleep(7 * time.Second) //nolint:forbidigo // in a bubble
		}
		starts, aheads, errs := startAll(t, shards...)
		for i, shift := range shifts {
			require.NoError(t, errs[i])
			assert.Equal(t, starts[0].Add(shift).UnixMicro(), starts[i].UnixMicro())
			assert.Equal(t, shift.Microseconds(), int64(aheads[i].Ahead))
			assert.Less(t, aheads[i].Error, int64(200), "the drift of two seconds")
		}
		assert.Greater(t, time.Until(starts[0]), 2*time.Second)
		for i, s := range shards {
			rows := strings.Repeat("a row\n", 20000*(i+1)) // several requests
			require.NoError(t, os.WriteFile(filepath.Join(s.Dir, result.RowsFile), []byte(rows[:17]), 0o600))
			time.Sleep(2300 * time.Millisecond) //nolint:forbidigo // in a bubble
			of := filepath.Join(p.Dir, Folder(i+1))
			assert.Equal(t, rows[:17], string(musttest.Get(os.ReadFile(filepath.Join(of, result.RowsFile)))(t)))
			for _, name := range []string{result.LatenciesFile, result.ResultFile, result.VerifyFile} {
				require.NoError(t, os.WriteFile(filepath.Join(s.Dir, name), []byte(name+rows), 0o600))
			}
			require.NoError(t, os.WriteFile(filepath.Join(s.Dir, result.RowsFile), []byte(rows), 0o600))
			time.Sleep(1200 * time.Millisecond) //nolint:forbidigo // in a bubble
			assert.NoFileExists(t, filepath.Join(of, result.ResultFile), "it is not whole")
			require.NoError(t, s.Leave(t.Context(), Goodbye{Status: i}, true))
			assert.Equal(t, rows, string(musttest.Get(os.ReadFile(filepath.Join(of, result.RowsFile)))(t)))
			for _, name := range []string{result.LatenciesFile, result.ResultFile, result.VerifyFile} {
				assert.Equal(t, name+rows, string(musttest.Get(os.ReadFile(filepath.Join(of, name)))(t)))
			}
			assert.Empty(t, s.halt)
		}
		<-p.ran
		e := p.Result()
		assert.Len(t, e.Dirs, 3)
		assert.Empty(t, e.Problems)
		assert.Empty(t, p.end)
		assert.Contains(t, p.said.String(), "shard 3/3 (host-3) has ended with status 2")
	})
}

// One that dies is named, and the others are told to end. Afterwards it is given up.
func TestDies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := open(t, 2)
		defer p.close(t)
		shards := []*shard{p.join(t, 1, 0), p.join(t, 2, 0)}
		_, _, errs := startAll(t, shards...)
		require.Equal(t, []error{nil, nil}, errs)
		dead := shards[1]
		dead.closing() // as kill -9
		killed := time.Now()
		assert.Equal(t, "the rendezvous ends the run: shard 2/2 (host-2) died, or cannot be reached", <-shards[0].halt)
		assert.Less(t, time.Since(killed), patience+2*time.Second)
		_, err := dead.report(t.Context(), nil, nil)
		require.EqualError(t, err, "the rendezvous has given this shard up")
		require.NoError(t, shards[0].Leave(t.Context(), Goodbye{Status: 130}, true))
		<-p.ran
		e := p.Result()
		assert.Equal(t, []string{"shard 2/2 (host-2) died, or cannot be reached"}, e.Problems)
		assert.Equal(t, result.StatusFailed, e.Status)
		dead.http.CloseIdleConnections()
	})
}

// Shards that end early end the others, before the start and after it.
func TestEnds(t *testing.T) {
	for _, c := range []struct {
		name string
		act  func(t *testing.T, p *place, second *shard)
		halt string
		bad  []string
	}{
		{"interrupted", func(t *testing.T, _ *place, s *shard) {
			assert.NoError(t, s.Leave(t.Context(), Goodbye{Status: 130, Early: "was interrupted"}, true))
		}, "shard 2/2 (host-2) was interrupted", []string{"shard 2/2 (host-2) was interrupted"}},
		{"the host", func(t *testing.T, p *place, s *shard) {
			p.End("the rendezvous was interrupted")
			<-s.halt
			assert.NoError(t, s.Leave(t.Context(), Goodbye{Status: 130}, true))
		}, "the rendezvous was interrupted", nil},
		{"too late", func(t *testing.T, _ *place, s *shard) {
			<-s.halt
			assert.NoError(t, s.Leave(t.Context(), Goodbye{Status: 4}, true))
		}, "not all shards connected to the broker within 1m0s: shard 2/2 (host-2) did not", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := open(t, 2)
				defer p.close(t)
				first, second := p.join(t, 1, 0), p.join(t, 2, 0)
				go c.act(t, p, second)
				_, _, err := first.Start(t.Context())
				require.EqualError(t, err, "the run did not begin: "+c.halt)
				assert.Equal(t, "the rendezvous ends the run: "+c.halt, <-first.halt)
				assert.True(t, first.Ended())
				require.NoError(t, first.Leave(t.Context(), Goodbye{Status: 4}, true))
				<-p.ran
				e := p.Result()
				assert.Equal(t, c.bad, e.Problems)
				assert.Equal(t, c.halt, p.end)
				assert.Empty(t, e.Dirs)
			})
		})
	}
}

func TestMissing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := open(t, 20)
		defer p.close(t)
		s := p.join(t, 4, 0)
		_, _, err := s.Start(t.Context())
		want := "not all shards came within 1m0s: 1/20, 2/20, 3/20, 5/20, 6/20, 7/20, 8/20, 9/20, 10/20, 11/20 and 9 more missing"
		require.EqualError(t, err, "the run did not begin: "+want)
		require.NoError(t, s.Leave(t.Context(), Goodbye{Status: 4}, true))
		<-p.ran
		e := p.Result()
		assert.Len(t, e.Problems, 19)
		assert.Equal(t, result.StatusConnect, e.Status)
	})
}

// A load whose host is gone continues, and keeps its result.
func TestHostDies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := open(t, 1)
		s := p.join(t, 1, 0)
		s.Dir = t.TempDir()
		_, _, err := s.Start(t.Context())
		require.NoError(t, err)
		p.close(t)
		time.Sleep(time.Minute) //nolint:forbidigo // in a bubble
		assert.Equal(t, "warning: the rendezvous is lost: this load continues to its end; its result is in "+s.Dir, s.said.String())
		assert.Empty(t, s.halt)
		err = s.Leave(t.Context(), Goodbye{}, true)
		require.ErrorContains(t, err, "the rendezvous at 127.0.0.1:8443 was lost: ")
		assert.Contains(t, driver.HintOf(err), "perfmq merge DIR")
		assert.Nil(t, s.Clock(t.Context()))
	})
}

// Each case is refused, in the same words on both sides.
func TestRefused(t *testing.T) {
	t.Parallel()
	var said texts
	h := newHost(t.TempDir(), 3)
	h.Say = said.say
	h.Open()
	server := httptest.NewServer(h.Handler())
	defer server.Close()
	fine := Shard{Shard: result.Shard{Number: 1, Of: 3}, Version: "1.2.3", PlanHash: "hash", Host: "box"}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	join := func(token string, s Shard) error {
		o := Options{URL: server.URL, Timeout: time.Second, Token: token, TLS: &driver.TLS{}}
		m, err := Join(t.Context(), o, s, make(chan string, 1), said.say)
		if m != nil {
			m.closing()
			m.running.Wait()
		}
		h.Run(ended) // says what there is
		return err
	}
	require.NoError(t, join(token, fine))
	with := func(change func(*Shard)) Shard {
		s := fine
		s.Shard.Number = 2
		change(&s)
		return s
	}
	for _, c := range []struct {
		name, token string
		shard       Shard
		text, hint  string
	}{
		{"token", "another-token-of-a-test", with(func(*Shard) {}), "the token is wrong", "give both sides the same --token-file"},
		{"part of the token", token[:8], with(func(*Shard) {}), "the token is wrong", "give both sides the same --token-file"},
		{"no token", "", with(func(*Shard) {}), "the token is wrong", "give both sides the same --token-file"},
		{"count", token, with(func(s *Shard) { s.Shard.Of = 4 }), "the rendezvous waits for 3 shards, and this is 2/4", "--shards of the rendezvous is the COUNT of --shard"},
		{"number", token, with(func(s *Shard) { s.Shard.Number = 4 }), "the rendezvous waits for 3 shards, and this is 4/3", "--shards of the rendezvous is the COUNT of --shard"},
		{"twice", token, with(func(s *Shard) { s.Shard.Number = 1 }), "shard 1/3 is there already, from box", "give each load another --shard"},
		{"plan", token, with(func(s *Shard) { s.PlanHash = "other" }), "its plan is another than that of shard 1/3 (box)", "give all shards the settings of the whole run"},
		{"version", token, with(func(s *Shard) { s.Version = "1.2.4" }), "the rendezvous is perfmq 1.2.3, the shard perfmq 1.2.4", "use one version of perfmq everywhere"},
	} {
		err := join(c.token, c.shard)
		require.EqualError(t, err, "meet the other shards at "+server.URL+": "+c.text, c.name)
		assert.Equal(t, c.hint, driver.HintOf(err), c.name)
		assert.Contains(t, said.String(), c.text, c.name)
	}
	assert.NotContains(t, said.String(), "token-of")
}

// The token stays with the server of the URL, and answers of others are explained.
func TestOtherServers(t *testing.T) {
	t.Parallel()
	var seen []string
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		seen = append(seen, r.Header.Get("Authorization"))
	}))
	defer other.Close()
	for name, c := range map[string]struct {
		handler http.HandlerFunc
		want    string
	}{
		"redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, other.URL+r.URL.Path, http.StatusTemporaryRedirect)
		}, `the server answers "307 Temporary Redirect": it is no rendezvous of this version`},
		"another server": {http.NotFound, `the server answers "404 Not Found": it is no rendezvous of this version`},
		"no JSON":        {func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") }, "invalid character '<'"},
		"endless":        {func(w http.ResponseWriter, _ *http.Request) { _, _ = io.Copy(w, endless{}) }, "invalid character 'x'"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(c.handler)
			defer server.Close()
			o := Options{URL: server.URL, Timeout: time.Millisecond, Token: token, TLS: &driver.TLS{}}
			_, err := Join(t.Context(), o, Shard{}, nil, nil)
			require.ErrorContains(t, err, c.want)
		})
	}
	assert.Empty(t, seen)
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	defer secure.Close()
	o := Options{URL: secure.URL, Timeout: time.Minute, Token: token, TLS: &driver.TLS{}}
	_, err := Join(t.Context(), o, Shard{}, nil, nil)
	require.ErrorContains(t, err, "certificate")
	assert.Contains(t, driver.HintOf(err), "--rendezvous-ca")
}

type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

// A peer writes nothing but the files of a result, within its folder and within their size.
func TestStore(t *testing.T) {
	t.Parallel()
	h := newHost(t.TempDir(), 1)
	h.Open()
	of := report{Protocol: protocol, Session: "own", Who: Shard{Version: "1.2.3", Shard: result.Shard{Number: 1, Of: 1}}}
	o := musttest.Get(h.receive(&of))(t)
	of.RunID = o.RunID
	store := func(session string, p part) (int64, error) {
		q := of
		q.Session, q.Part = session, &p
		o, err := h.receive(&q)
		return o.Size, err
	}
	for _, name := range []string{"../rows.jsonl", "/etc/passwd", "rows.jsonl/../../x", "", ".", "other", "ROWS.JSONL", ".result.json.part"} {
		_, err := store("own", part{name, 0, []byte("x"), false})
		require.EqualError(t, err, "a result has no such file", name)
	}
	for _, c := range []struct {
		name, session string
		p             part
		size          int64
		want          string
		status        int
	}{
		{"the first", "own", part{"rows.jsonl", 0, []byte("abc"), false}, 3, "", 0},
		{"again", "own", part{"rows.jsonl", 0, []byte("abc"), false}, 3, "", 0},
		{"too early", "own", part{"rows.jsonl", 4, []byte("efg"), false}, 3, "", 0},
		{"the next", "own", part{"rows.jsonl", 3, []byte("def"), true}, 6, "", 0},
		{"nothing", "own", part{"rows.jsonl", 6, nil, false}, 6, "", 0},
		{"a whole file", "own", part{"result.json", 0, []byte("{"), false}, 1, "", 0},
		{"its end", "own", part{"result.json", 1, []byte("}"), true}, 2, "", 0},
		{"its end again", "own", part{"result.json", 1, []byte("}"), true}, 2, "", 0},
		{"before it", "own", part{"rows.jsonl", -1, []byte("x"), false}, 0, "a result has no such file", 400},
		{"too large", "own", part{"rows.jsonl", result.MaxFile, []byte("x"), false}, 0, "the file is too large", 413},
		{"far too large", "own", part{"rows.jsonl", 1<<63 - 1, []byte("x"), false}, 0, "the file is too large", 413},
		{"of another", "guess", part{"rows.jsonl", 0, []byte("x"), false}, 0, "the rendezvous does not know this shard: it was started again", 404},
	} {
		size, err := store(c.session, c.p)
		if c.want != "" {
			require.EqualError(t, err, c.want, c.name)
			assert.Equal(t, c.status, err.(*Refusal).Status, c.name) //nolint:errorlint // it is not wrapped
			continue
		}
		require.NoError(t, err, c.name)
		assert.Equal(t, c.size, size, c.name)
	}
	assert.Equal(t, "{}", string(musttest.Get(os.ReadFile(filepath.Join(h.Dir, "shard-1", "result.json")))(t)))
	assert.Equal(t, "abcdef", string(musttest.Get(os.ReadFile(filepath.Join(h.Dir, "shard-1", "rows.jsonl")))(t)))
	assert.Len(t, musttest.Get(os.ReadDir(h.Dir))(t), 1)
	// A disk that takes no more is named on both sides.
	require.NoError(t, os.Mkdir(filepath.Join(h.Dir, "shard-1", "latencies.hdr"), 0o700))
	_, err := store("own", part{"latencies.hdr", 0, []byte("x"), false})
	require.ErrorContains(t, err, "the rendezvous failed: open ")
	assert.Contains(t, strings.Join(h.Result().Problems, "\n"), "the result of shard 1/1 () could not be written: open ")
}

// Requests that make no sense are answered, and change nothing.
func TestGarbage(t *testing.T) {
	t.Parallel()
	h := newHost(t.TempDir(), 1)
	h.Open()
	l := musttest.Get(listen.TCP(t.Context(), "", "", ":0"))(t)
	server := listen.Serve(l, h.Handler())
	defer func() { assert.NoError(t, server.Close()) }()
	for _, c := range []struct {
		method, path, body, token string
		status                    int
	}{
		{"POST", "/report", `{"protocol": 1}`, "wrong", 401},
		{"POST", "/", "", "wrong", 401},
		{"POST", "/report", "", token, 400},
		{"POST", "/report", "[", token, 400},
		{"POST", "/report", `{"protocol": "1"}`, token, 400},
		{"POST", "/report", `{"host": "` + strings.Repeat("x", 70<<10) + `"}`, token, 400},
		{"POST", "/report", `{"protocol": 2}`, token, 409},
		{"GET", "/report", "", token, 405},
		{"POST", "/report/../../etc", "{}", token, 307}, // ServeMux cleans paths
		{"POST", "/etc/passwd", "{}", token, 404},
		{"POST", "/report", `{"protocol": 2, "session": ""}`, token, 409},
		{"POST", "/report", `{"protocol": 2, "runId": "7"}`, token, 404},
		{"POST", "/report", `{"part": {"name": "rows.jsonl", "data": "!"}}`, token, 400},
	} {
		r := musttest.Get(http.NewRequestWithContext(t.Context(), c.method, "http://"+l.Addr().String(), strings.NewReader(c.body)))(t)
		r.URL.Path = c.path
		r.Header.Set("Authorization", "Bearer "+c.token)
		w, err := http.DefaultTransport.RoundTrip(r)
		require.NoError(t, err)
		text := musttest.Get(io.ReadAll(w.Body))(t)
		require.NoError(t, w.Body.Close())
		assert.Equal(t, c.status, w.StatusCode, "%s %.100s: %s", c.path, c.body, text)
		assert.NotContains(t, string(text), token)
	}
	assert.Empty(t, musttest.Get(os.ReadDir(h.Dir))(t))
	assert.Equal(t, []string{"shard 1/1 did not come"}, h.Result().Problems)
}
