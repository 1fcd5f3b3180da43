package rendezvous

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/perfmq/perfmq/internal/safetext"
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
	// Turn looks at the rows that have come. It returns why all must end, or "". Ended tells which shards send no more.
	Turn func(ended func(shard int) bool) string

	runID int64

	mu      sync.Mutex
	changed chan struct{} // closed and replaced when there is news
	members []*member     // by number from 0; nil before its hello
	came    int           // members
	since   time.Time
	start   time.Time
	end     string // why all must end
	aborts  []Abort
	hash    string
	refused map[string]bool // texts that the user was told
}

// member is a shard that has come.
type member struct {
	name, session, host string
	dir                 string
	connected           bool
	asking              int       // requests that wait
	cut                 bool      // the last of them lost its connection
	seen                time.Time // when the last one was answered
	bye                 *Goodbye
	lost                bool

	disk    sync.Mutex
	sizes   map[string]int64
	problem error // of the disk
}

// over reports that nothing comes of the member any more.
func (m *member) over() bool { return m.bye != nil || m.lost }

// Open makes the host ready to serve.
func (h *Host) Open() {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	h.runID = max(int64(binary.LittleEndian.Uint64(b[:])>>1), 1)
	h.changed, h.members, h.refused = make(chan struct{}), make([]*member, h.Shards), map[string]bool{}
	h.since = time.Now()
}

// Handler answers the members. Bodies are limited by whoever serves it.
func (h *Host) Handler() http.Handler {
	mux := http.NewServeMux()
	handle(mux, h, "/hello", h.hello)
	handle(mux, h, "/connected", h.connect)
	handle(mux, h, "/wait", h.wait)
	handle(mux, h, "/clock", func(context.Context, *nothing) (instant, error) {
		return instant{Received: time.Now().UnixMicro()}, nil
	})
	handle(mux, h, "/file", h.store)
	handle(mux, h, "/bye", h.leave)
	want := sha256.Sum256([]byte("Bearer " + h.Token))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got := sha256.Sum256([]byte(r.Header.Get("Authorization")))
		if subtle.ConstantTimeCompare(want[:], got[:]) != 1 {
			const text = "the token is wrong"
			from, _, _ := net.SplitHostPort(r.RemoteAddr)
			h.tell("refused a request from " + from + ": " + text)
			reply(w, &Refusal{http.StatusUnauthorized, text, "give both sides the same --token-file"})
			return
		}
		mux.ServeHTTP(w, r)
	})
}

func handle[Q, A any](mux *http.ServeMux, h *Host, path string, f func(context.Context, *Q) (A, error)) {
	mux.HandleFunc("POST "+path, func(w http.ResponseWriter, r *http.Request) {
		var q Q
		if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
			reply(w, &Refusal{http.StatusBadRequest, "the request cannot be read", ""})
			return
		}
		a, err := f(r.Context(), &q)
		if err != nil {
			reply(w, err)
			return
		}
		if at, ok := any(&a).(*instant); ok {
			at.Answered = time.Now().UnixMicro()
		}
		reply(w, a)
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

// tell tells the user a text once.
func (h *Host) tell(text string) {
	const most = 100
	h.mu.Lock()
	known := h.refused[text] || len(h.refused) >= most
	if !known {
		h.refused[text] = true
	}
	h.mu.Unlock()
	if !known {
		h.Say(text)
	}
}

// wake lets all that wait look again. h is locked.
func (h *Host) wake() {
	close(h.changed)
	h.changed = make(chan struct{})
}

// hello takes a member in, or refuses it.
func (h *Host) hello(_ context.Context, q *hello) (welcome, error) {
	q.Host = safetext.Bounded(q.Host)
	name := fmt.Sprintf("shard %s (%s)", q.Shard, q.Host)
	w, here, err := h.admit(name, q)
	if err != nil {
		h.tell("refused " + name + ": " + err.Text)
		return w, err
	}
	h.Say(fmt.Sprintf("%s is here: %d of %d", name, here, h.Shards))
	return w, nil
}

// admit also returns the number of members that are here.
func (h *Host) admit(name string, q *hello) (welcome, int, *Refusal) {
	h.mu.Lock()
	defer h.mu.Unlock()
	refuse := func(hint, format string, args ...any) (welcome, int, *Refusal) {
		return welcome{}, 0, &Refusal{http.StatusConflict, fmt.Sprintf(format, args...), hint}
	}
	switch n := q.Shard.Number; {
	case q.Protocol != protocol || q.Version != h.Version:
		return refuse("use one version of perfmq everywhere", "the rendezvous is perfmq %s, the shard perfmq %s",
			h.Version, safetext.Bounded(q.Version))
	case q.Shard.Of != h.Shards || n < 1 || n > h.Shards:
		return refuse("--shards of the rendezvous is the COUNT of --shard", "the rendezvous waits for %d shards, "+
			"and this is %s", h.Shards, q.Shard)
	case h.members[n-1] != nil:
		return refuse("give each load another --shard", "shard %s is there already, from %s", q.Shard,
			h.members[n-1].host)
	case h.hash != "" && h.hash != q.PlanHash:
		return refuse("give all shards the settings of the whole run", "its plan is another than that of %s",
			h.first().name)
	case h.end != "":
		return refuse("", "the run has ended: %s", h.end)
	default:
		m := &member{
			name: name, session: rand.Text(), host: q.Host, seen: time.Now(), sizes: map[string]int64{},
			dir: filepath.Join(h.Dir, Folder(n)),
		}
		h.members[n-1], h.hash, h.aborts = m, q.PlanHash, q.Aborts
		h.came++
		return welcome{m.session, h.runID}, h.came, nil
	}
}

// Folder returns the name of the folder of a shard, numbered from 1.
func Folder(shard int) string { return fmt.Sprintf("shard-%d", shard) }

func (h *Host) first() *member {
	i := slices.IndexFunc(h.members, func(m *member) bool { return m != nil })
	return h.members[i]
}

// find returns the member of a session.
func (h *Host) find(session string) (*member, error) {
	for _, m := range h.members {
		switch {
		case m == nil || m.session != session:
		case m.over():
			return nil, &Refusal{http.StatusGone, "the rendezvous has given this shard up", ""}
		default:
			m.seen, m.cut = time.Now(), false
			return m, nil
		}
	}
	return nil, &Refusal{http.StatusNotFound, "the rendezvous does not know this shard: it was started again", ""}
}

func (h *Host) connect(_ context.Context, q *state) (nothing, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	m, err := h.find(q.Session)
	if err == nil {
		m.connected = true
	}
	return nothing{}, err
}

// wait answers when there is news, or with none.
func (h *Host) wait(ctx context.Context, q *state) (n news, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	m, err := h.find(q.Session)
	if err != nil {
		return n, err
	}
	m.asking++
	defer func() { m.asking, m.seen = m.asking-1, time.Now() }()
	timer := time.After(pollTime)
	for waiting := true; waiting; {
		if !q.Started && !h.start.IsZero() {
			n.Start = h.start.UnixMicro()
		}
		if !q.Ended {
			n.End = h.end
		}
		if n != (news{}) {
			break
		}
		changed := h.changed
		h.mu.Unlock()
		select {
		case <-changed:
		case <-timer:
			waiting = false
		case <-ctx.Done():
			waiting = false
		}
		h.mu.Lock()
		m.cut = ctx.Err() != nil
	}
	return n, nil
}

// store appends a part to a file of a member's folder. A part that is there already, or too early, is left out.
func (h *Host) store(_ context.Context, q *part) (stored, error) {
	h.mu.Lock()
	m, err := h.find(q.Session)
	h.mu.Unlock()
	if err != nil {
		return stored{}, err
	}
	growing, whole := files()
	switch {
	case !slices.Contains(append(growing, whole...), q.Name) || q.Offset < 0:
		return stored{}, &Refusal{http.StatusBadRequest, "a result has no such file", ""}
	case q.Offset > result.MaxFile-int64(len(q.Data)):
		return stored{}, &Refusal{http.StatusRequestEntityTooLarge, "the file is too large", ""}
	}
	m.disk.Lock()
	defer m.disk.Unlock()
	if size := m.sizes[q.Name]; size == q.Offset && len(q.Data) > 0 {
		path := filepath.Join(m.dir, q.Name)
		if slices.Contains(whole, q.Name) {
			path = partOf(path)
		}
		if m.problem = appendTo(path, size, q.Data); m.problem != nil {
			return stored{}, &Refusal{
				http.StatusInsufficientStorage, "the rendezvous failed: " + m.problem.Error(),
				"make room there",
			}
		}
		m.sizes[q.Name] += int64(len(q.Data))
	}
	return stored{m.sizes[q.Name]}, nil
}

// partOf names a file that is not whole yet.
func partOf(path string) string {
	return filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".part")
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

// leave notes the end of a member, whose files are whole.
func (h *Host) leave(_ context.Context, q *Goodbye) (nothing, error) {
	h.mu.Lock()
	m, err := h.find(q.Session)
	again := slices.ContainsFunc(h.members, func(m *member) bool {
		return m != nil && m.bye != nil && m.session == q.Session // the answer was lost
	})
	h.mu.Unlock()
	if err != nil && !again {
		return nothing{}, err
	} else if again {
		return nothing{}, nil
	}
	m.disk.Lock()
	_, whole := files()
	for _, name := range whole {
		if path := filepath.Join(m.dir, name); m.sizes[name] > 0 {
			m.problem = cmp.Or(m.problem, os.Rename(partOf(path), path))
		}
	}
	m.disk.Unlock()
	h.Say(fmt.Sprintf("%s has ended with status %d", m.name, q.Status))
	h.mu.Lock()
	defer h.mu.Unlock()
	q.Early = safetext.Bounded(q.Early)
	m.bye = q
	return nothing{}, nil
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
		h.wake()
	}
}

// Aborts returns the thresholds that end the run, as the members have sent them.
func (h *Host) Aborts() []Abort {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.aborts
}

// Run returns when all members have ended, or have died, or when ctx ends.
func (h *Host) Run(ctx context.Context) {
	tick := time.NewTicker(retry)
	defer tick.Stop()
	for done := false; !done; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			done = true
		}
		done = h.look() || done
		if why := h.Turn(h.over); why != "" {
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

// look notes members that have died and lets the others begin or end. It reports whether all have ended.
func (h *Host) look() (done bool) {
	var texts []string
	h.mu.Lock()
	connected, over := 0, 0
	var absent, unconnected []string
	for i, m := range h.members {
		switch {
		case m == nil:
			absent = append(absent, result.Shard{Number: i + 1, Of: h.Shards}.String())
			continue
		case !m.over() && m.asking == 0 && time.Since(m.seen) > m.patience():
			m.lost = true
			h.endAll(m.died())
			texts = append(texts, m.died())
		case m.bye != nil && m.bye.Early != "":
			h.endAll(m.name + " " + m.bye.Early)
		}
		switch {
		case m.over():
			over++
		case m.connected:
			connected++
		default:
			unconnected = append(unconnected, m.name)
		}
	}
	switch {
	case !h.start.IsZero() || h.end != "":
	case connected == h.Shards:
		h.start = time.Now().Add(lead)
		h.wake()
		texts = append(texts, "all shards are connected to the broker: the load begins at "+
			words.Clock(h.start))
	case time.Since(h.since) > h.Timeout && len(absent) > 0:
		h.endAll(fmt.Sprintf("not all shards came within %v: %s missing", h.Timeout,
			words.First(absent, mostNamed, ", ")))
		texts = append(texts, h.end)
	case time.Since(h.since) > h.Timeout:
		h.endAll(fmt.Sprintf("not all shards connected to the broker within %v: %s did not", h.Timeout,
			words.First(unconnected, mostNamed, ", ")))
		texts = append(texts, h.end)
	}
	done = over+len(absent) == h.Shards && h.end != "" || over == h.Shards
	h.mu.Unlock()
	for _, text := range texts {
		h.Say(text)
	}
	return done
}

// mostNamed is the number of shards that a text names.
const mostNamed = 10

// patience is how long a member may be silent. One that lives asks again soon after its connection was cut.
func (m *member) patience() time.Duration {
	if m.cut {
		return patience / 3
	}
	return patience
}

func (m *member) died() string { return m.name + " died, or cannot be reached" }

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
