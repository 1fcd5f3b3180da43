package rendezvous

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/perfmq/perfmq/internal/safetext"
	"github.com/perfmq/perfmq/internal/threshold"
	"github.com/perfmq/perfmq/internal/words"
	"github.com/perfmq/perfmq/pkg/result"
)

// Host waits for the shards of a run.
type Host struct {
	Shards  int
	Token   string
	Version string // of perfmq, which all must have
	Dir     string // the folders shard-1, shard-2, ... are made in it
	Timeout time.Duration
	// Say tells the user something.
	Say func(string)
	// Turn looks at the rows that have come. It returns why all must end, or "". Aborts are the thresholds that end the
	// run, ended tells which shards send no more.
	Turn func(aborts []threshold.Abort, ended func(shard int) bool) string

	runID int64
	since time.Time

	mu      sync.Mutex
	members []*member // by number from 0; nil before its first report
	first   *member
	came    int // members
	start   time.Time
	end     string          // why all must end
	texts   []string        // to be said
	said    map[string]bool // with those before
}

// member is a shard that has come.
type member struct {
	report    // the first one
	name, dir string
	connected bool
	seen      time.Time
	bye       *Goodbye
	lost      bool

	disk    sync.Mutex
	sizes   map[string]int64
	problem error // of the disk
}

// over reports that nothing comes of the member any more.
func (m *member) over() bool { return m.bye != nil || m.lost }

func (m *member) died() string { return m.name + " died, or cannot be reached" }

// Open makes the host ready to serve.
func (h *Host) Open() {
	h.runID = 1 + rand.Int64N(math.MaxInt64) //nolint:gosec // a number, not a secret
	h.members, h.said, h.since = make([]*member, h.Shards), map[string]bool{}, time.Now()
}

// Folder returns the name of the folder of a shard, numbered from 1.
func Folder(shard int) string { return fmt.Sprintf("shard-%d", shard) }

// Handler answers the members. Bodies are limited by whoever serves it.
func (h *Host) Handler() http.Handler {
	want := sha256.Sum256([]byte("Bearer " + h.Token))
	mux := http.NewServeMux()
	mux.HandleFunc("POST /report", func(w http.ResponseWriter, r *http.Request) {
		received, q := time.Now(), report{}
		if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
			reply(w, &Refusal{http.StatusBadRequest, "the report cannot be read", ""})
			return
		}
		o, err := h.receive(&q)
		if err != nil {
			reply(w, err)
			return
		}
		o.Received, o.Answered = received.UnixMicro(), time.Now().UnixMicro()
		reply(w, o)
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got := sha256.Sum256([]byte(r.Header.Get("Authorization")))
		if subtle.ConstantTimeCompare(want[:], got[:]) != 1 {
			const text = "the token is wrong"
			from, _, _ := net.SplitHostPort(r.RemoteAddr)
			h.mu.Lock()
			h.say("refused a request from %s: %s", from, text)
			h.mu.Unlock()
			reply(w, &Refusal{http.StatusUnauthorized, text, "give both sides the same --token-file"})
			return
		}
		mux.ServeHTTP(w, r)
	})
}

func reply(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if r, ok := value.(*Refusal); ok {
		w.WriteHeader(r.Status)
	}
	_ = json.NewEncoder(w).Encode(value) // a member that has gone asks again
}

// say has Run tell the user a text once: a standard error that blocks must not hold the members up. What peers may
// repeat in other words is bounded. h is locked.
func (h *Host) say(format string, args ...any) {
	const most = 10_000
	if text := safetext.Line(fmt.Sprintf(format, args...)); !h.said[text] && len(h.said) < most {
		h.said[text], h.texts = true, append(h.texts, text)
	}
}

// receive notes a report and returns the order for its member.
func (h *Host) receive(q *report) (o order, err error) {
	m, err := h.find(q)
	if err != nil {
		return o, err
	}
	if q.Part != nil {
		if o.Size, err = m.store(q.Part); err != nil {
			return o, err
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	m.seen, m.connected = time.Now(), m.connected || q.Connected
	if q.Bye != nil && !m.over() {
		m.bye = q.Bye
		h.say("%s has ended with status %d", m.name, m.bye.Status)
		if m.bye.Early = safetext.Bounded(m.bye.Early); m.bye.Early != "" {
			h.endAll(m.name + " " + m.bye.Early)
		}
	}
	if o.RunID, o.End = h.runID, h.end; !h.start.IsZero() {
		o.Start = h.start.UnixMicro()
	}
	return o, nil
}

// find returns the member that reports. It takes a new one in, or refuses it.
func (h *Host) find(q *report) (*member, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := q.Who.Shard.Number
	if n >= 1 && n <= h.Shards && h.members[n-1] != nil && h.members[n-1].Session == q.Session {
		m := h.members[n-1]
		if m.lost || m.bye != nil && q.Bye == nil { // a goodbye comes again if its answer was lost
			return nil, &Refusal{http.StatusGone, "the rendezvous has given this shard up", ""}
		}
		m.seen = time.Now()
		return m, nil
	}
	if q.RunID != 0 {
		return nil, &Refusal{
			http.StatusNotFound, "the rendezvous does not know this shard: it was started again", "",
		}
	}
	q.Who.Host = safetext.Bounded(q.Who.Host)
	name := fmt.Sprintf("shard %s (%s)", q.Who.Shard, q.Who.Host)
	if r := h.unfit(q); r != nil {
		h.say("refused %s: %s", name, r.Text)
		return nil, r
	}
	m := &member{
		report: *q, name: name, seen: time.Now(), sizes: map[string]int64{}, dir: filepath.Join(h.Dir, Folder(n)),
	}
	h.members[n-1], h.first = m, cmp.Or(h.first, m)
	h.came++
	h.say("%s is here: %d of %d", name, h.came, h.Shards)
	return m, nil
}

// unfit returns why a new member cannot take part; nil if it can. h is locked.
func (h *Host) unfit(q *report) *Refusal {
	refuse := func(hint, format string, args ...any) *Refusal {
		return &Refusal{http.StatusConflict, fmt.Sprintf(format, args...), hint}
	}
	switch shard := q.Who.Shard; {
	case q.Protocol != protocol || q.Who.Version != h.Version:
		return refuse("use one version of perfmq everywhere", "the rendezvous is perfmq %s, the shard perfmq %s",
			h.Version, safetext.Bounded(q.Who.Version))
	case shard.Of != h.Shards || shard.Number < 1 || shard.Number > h.Shards:
		return refuse("--shards of the rendezvous is the COUNT of --shard", "the rendezvous waits for %d shards, "+
			"and this is %s", h.Shards, shard)
	case h.members[shard.Number-1] != nil:
		return refuse("give each load another --shard", "shard %s is there already, from %s", shard,
			h.members[shard.Number-1].Who.Host)
	case h.first != nil && h.first.Who.PlanHash != q.Who.PlanHash:
		return refuse("give all shards the settings of the whole run", "its plan is another than that of %s",
			h.first.name)
	case h.end != "":
		return refuse("", "the run has ended: %s", h.end)
	}
	return nil
}

// store appends a part to a file, and returns the size of that. It leaves out a part that is there already, or comes
// too early.
func (m *member) store(p *part) (size int64, err error) {
	growing, whole := files()
	switch {
	case !slices.Contains(append(growing, whole...), p.Name) || p.Offset < 0:
		return 0, &Refusal{http.StatusBadRequest, "a result has no such file", ""}
	case p.Offset > result.MaxFile-int64(len(p.Data)):
		return 0, &Refusal{http.StatusRequestEntityTooLarge, "the file is too large", ""}
	}
	m.disk.Lock()
	defer m.disk.Unlock()
	if m.sizes[p.Name] == p.Offset && len(p.Data) > 0 {
		path := filepath.Join(m.dir, p.Name)
		to := path
		if slices.Contains(whole, p.Name) {
			to = filepath.Join(m.dir, "."+p.Name+".part") // until it is whole
		}
		m.problem = appendTo(to, p.Offset, p.Data)
		if m.problem == nil && p.Last && to != path {
			m.problem = os.Rename(to, path)
		}
		if m.problem != nil {
			return 0, &Refusal{
				http.StatusInsufficientStorage, "the rendezvous failed: " + m.problem.Error(), "make room there",
			}
		}
		m.sizes[p.Name] += int64(len(p.Data))
	}
	return m.sizes[p.Name], nil
}

// appendTo writes data behind size bytes of a file. After an error the file has no more than these.
func appendTo(path string, size int64, data []byte) error {
	if size == 0 {
		err := os.MkdirAll(filepath.Dir(path), 0o777) //nolint:gosec // as far as the process' mask lets it
		if err != nil {
			return err
		}
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o600) //nolint:gosec // in the folder of --result
	if err != nil {
		return err
	}
	if _, err = f.WriteAt(data, size); err != nil {
		_ = f.Truncate(size)
	}
	return cmp.Or(err, f.Close())
}

// End lets all members end, once.
func (h *Host) End(why string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.endAll(why)
}

func (h *Host) endAll(why string) {
	if h.end == "" {
		h.end = why
		h.say("stopping: %s", why)
	}
}

// Run returns when all members have ended, or have died, or when ctx ends.
func (h *Host) Run(ctx context.Context) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for done := false; !done; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			done = true
		}
		ended, texts, aborts := h.look()
		for _, text := range texts {
			h.Say(text)
		}
		done = ended || done
		if why := h.Turn(aborts, h.over); why != "" {
			h.End(why)
		}
	}
}

// over reports whether nothing comes of a shard any more.
func (h *Host) over(shard int) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	m := h.members[shard]
	return m == nil && h.end != "" || m != nil && m.over()
}

// look notes members that have died and lets the others begin or end. It reports whether all have ended, and returns
// what is to be said, and the thresholds that end the run.
func (h *Host) look() (done bool, texts []string, aborts []threshold.Abort) {
	h.mu.Lock()
	defer h.mu.Unlock()
	connected, over := 0, 0
	var absent, unconnected []string
	for i, m := range h.members {
		if m != nil && !m.over() && time.Since(m.seen) > patience {
			m.lost = true
			h.endAll(m.died())
		}
		switch {
		case m == nil:
			absent = append(absent, result.Shard{Number: i + 1, Of: h.Shards}.String())
		case m.over():
			over++
		case m.connected:
			connected++
		default:
			unconnected = append(unconnected, m.name)
		}
	}
	if h.start.IsZero() && h.end == "" {
		late := ""
		switch {
		case connected == h.Shards:
			h.start = time.Now().Add(lead)
			h.say("all shards are connected to the broker: the load begins at %s", words.Clock(h.start))
		case len(absent) > 0:
			late = fmt.Sprintf("not all shards came within %v: %s missing", h.Timeout,
				words.First(absent, mostNamed, ", "))
		default:
			late = fmt.Sprintf("not all shards connected to the broker within %v: %s did not", h.Timeout,
				words.First(unconnected, mostNamed, ", "))
		}
		if late != "" && time.Since(h.since) > h.Timeout {
			h.endAll(late)
		}
	}
	if h.first != nil {
		aborts = h.first.Who.Aborts
	}
	texts, h.texts = h.texts, nil
	return over == h.Shards || over+len(absent) == h.Shards && h.end != "", texts, aborts
}

// mostNamed is the number of shards that a text names.
const mostNamed = 10

// Ended is what has become of the shards.
type Ended struct {
	Dirs     []string // with a result
	Problems []string
	Status   int // of the shards without a result, and of those that died
}

// Result returns what has become of the shards, after Run.
func (h *Host) Result() (e Ended) {
	h.mu.Lock()
	defer h.mu.Unlock()
	bad := func(status int, format string, args ...any) {
		e.Status = result.Graver(e.Status, status)
		e.Problems = append(e.Problems, fmt.Sprintf(format, args...))
	}
	for i, m := range h.members {
		if m == nil {
			bad(result.StatusConnect, "shard %d/%d did not come", i+1, h.Shards)
			continue
		}
		m.disk.Lock()
		begun, problem := m.sizes[result.RowsFile] > 0, m.problem
		m.disk.Unlock()
		if begun {
			e.Dirs = append(e.Dirs, m.dir)
		}
		switch {
		case m.lost:
			bad(result.StatusFailed, "%s", m.died())
		case m.bye == nil:
			bad(result.StatusFailed, "%s did not end in time", m.name)
		case !begun && m.bye.Early != "":
			bad(cmp.Or(m.bye.Status, result.StatusFailed), "%s %s", m.name, m.bye.Early)
		case !begun && problem == nil && h.end == "":
			bad(cmp.Or(m.bye.Status, result.StatusFailed), "%s has no result: it did not begin", m.name)
		}
		if problem != nil {
			bad(result.StatusFailed, "the result of %s could not be written: %v", m.name, problem)
		}
	}
	return e
}
