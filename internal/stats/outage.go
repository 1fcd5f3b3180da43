package stats

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/result"
)

// Outages collects the outages of a run. It is safe for concurrent use.
type Outages struct {
	// redelivering is the time until which messages may come again unmarked, in nanoseconds since start; 0 before the
	// first outage, and passed after that time.
	redelivering atomic.Int64
	start        time.Time // keeps its monotonic reading, so that setting the wall clock has no effect

	lastSign func() (time.Time, bool) // nil without a watcher
	begun    func(number int)         // nil without a watcher

	mu         sync.Mutex
	list       []*outage // without the outages in more
	more       result.MoreOutages
	reconnects uint64
	attempts   [driver.NumClasses]uint64
	recovery   recovery
	length     time.Duration // the largest sum reported so far
}

// OutageProgress is the state of the outages at one moment.
type OutageProgress struct {
	Count      int           `metric:"outages_total" help:"Outages; only with --reconnect."`
	Down       int           `metric:"workers_disconnected" help:"Producers and consumers without a connection."`
	Since      time.Duration `metric:"outage_age_seconds" help:"Age of the present outage; 0 for none."`
	Length     time.Duration `metric:"outage_seconds_total" help:"Their total length, each to its first message."`
	Reconnects uint64        `metric:"reconnects_total" help:"Reopened connections."`
	InDoubt    uint64        `metric:"messages_in_doubt_total" help:"Messages in doubt after a lost connection."`
	// Attempts are the failed attempts to connect again, by the class of the failure.
	Attempts [driver.NumClasses]uint64
}

type outage struct {
	result.Outage
	start time.Time
	lost  map[string]bool // workers that are not connected, and whether they produce; nil for none
	back  int64           // how long after its start the latest reconnection came, in microseconds; 0 for none
	ready bool            // a producer was connected again that had no message to send

	sends, receives bool // roles of the workers that lost their connections

	logins      result.Latency  // of workers that connect again
	lately      [loginParts]int // logins in each part of the last second
	loginsUntil int64           // the part of the latest login
}

// loginParts is the number of parts of a second in which logins are counted, to find the second with the most.
const loginParts = 10

// login counts a login that took so long, and ended after that time.
func (o *outage) login(took time.Duration, at int64) {
	o.logins.Record(took)
	part := at * loginParts / 1e6
	for i := max(o.loginsUntil+1, part-loginParts+1); i <= part; i++ {
		o.lately[i%loginParts] = 0
	}
	o.loginsUntil = max(o.loginsUntil, part)
	o.lately[part%loginParts]++
	n := 0
	for _, more := range o.lately {
		n += more
	}
	o.LoginRate = max(o.LoginRate, uint64(n)) //nolint:gosec // not negative
}

// after returns the microseconds from the start to a later moment, at least one.
func (o *outage) after(start time.Time) int64 { return max(1, start.Sub(o.start).Microseconds()) }

// recordThrough records that something came through at that time after the start.
func (o *outage) recordThrough(at int64) {
	if o.Length == 0 || at < o.Length {
		o.Length = at
	}
}

// idle reports whether all workers that lost their connections were done, so that no recovery can follow.
func (o *outage) idle() bool { return len(o.lost) == 0 && o.back == 0 }

// idleOutage is the time after an idle outage in which another failure still counts to it.
const idleOutage = time.Second

// passed is the value of [Outages.redelivering] after that time: the clock need not be read.
const passed = 1

// NewOutages returns the outages of a run that has had none.
func NewOutages() *Outages { return &Outages{start: time.Now()} }

// Watch sets a function that returns when the last answer or message came to any worker (false if none has come), a
// function that is called once for each outage, with its number, when it has begun, and the planned rate of sends in
// messages per second (0 if it is not constant). Call it before the first loss. The functions are called without a
// lock.
func (s *Outages) Watch(lastSign func() (time.Time, bool), begun func(number int), planned float64) {
	s.lastSign, s.begun, s.recovery.planned = lastSign, begun, planned
}

// Lost records that a worker has lost its connection, or that its messages ended without an answer for that reason.
// Later calls for the same worker do nothing until it is connected again. A worker that is done needs no connection. It
// returns the number of the outage, from 1 on.
func (s *Outages) Lost(worker string, produces, done bool, err error, now time.Time) int {
	silent := s.silent(now)
	s.mu.Lock()
	before := s.count()
	o := s.open()
	if o == nil || !done && o.idle() && now.Sub(o.start) > idleOutage {
		o = &outage{
			Outage: result.Outage{Silent: silent.Microseconds(), Class: driver.ClassOf(err).String(), Error: err.Error()},
			start:  now,
		}
		s.list = append(s.list, o)
		if len(s.list) > 2*KeptOutages {
			s.fold()
		}
	}
	if !o.needs(worker) {
		s.lose(o, worker, produces, done)
	}
	number := s.count()
	s.mu.Unlock()
	if number > before && s.begun != nil {
		s.begun(number)
	}
	return number
}

// lose adds a worker to an outage.
func (s *Outages) lose(o *outage, worker string, produces, done bool) {
	if !slices.Contains(o.Workers, worker) {
		o.Workers = append(o.Workers, worker)
	}
	o.sends, o.receives = o.sends || produces, o.receives || !produces
	if done {
		return
	}
	if o.lost == nil {
		o.lost = map[string]bool{}
	}
	o.lost[worker] = produces
	o.Reconnected = 0
	if !produces {
		s.redelivering.Store(math.MaxInt64)
	}
}

// silent returns the time since the last answer or message to any worker, if an outage would begin now. It must be
// called without the lock.
func (s *Outages) silent(now time.Time) time.Duration {
	s.mu.Lock()
	open := s.open() != nil
	s.mu.Unlock()
	if !open && s.lastSign != nil {
		if last, ok := s.lastSign(); ok {
			return max(time.Microsecond, now.Sub(last))
		}
	}
	return 0
}

// open returns the outage in which some workers are not connected, or in which no message has come through yet, or nil.
func (s *Outages) open() *outage {
	if n := len(s.list); n > 0 && (len(s.list[n-1].lost) > 0 || s.list[n-1].Length == 0) {
		return s.list[n-1]
	}
	return nil
}

// Attempt counts an attempt to connect again that began at that time and failed.
func (s *Outages) Attempt(err error, begun time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	class := driver.ClassOf(err)
	s.attempts[class]++
	o := s.open()
	if o == nil {
		return
	}
	o.Attempts++
	o.LastAttempt = err.Error()
	// A broker that goes down may accept a connection before; one that is back may refuse some workers.
	tried := o.after(begun)
	if o.Length == 0 && (o.Back == 0 || class == driver.ClassConnect && tried > o.Back) {
		o.Tried, o.Back = max(o.Tried, tried), 0
	}
}

// InDoubt counts messages that ended without an answer because of that outage.
func (s *Outages) InDoubt(outage, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if outage > 0 {
		inDoubt := &s.more.InDoubt
		if o := s.numbered(outage); o != nil {
			inDoubt = &o.InDoubt
		}
		*inDoubt += uint64(n) //nolint:gosec // not negative
	}
}

// Resent counts a message in doubt after that outage that was sent again.
func (s *Outages) Resent(outage int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o := s.numbered(outage); o != nil {
		o.Resent++
	}
}

// Connected records that a worker is connected again.
func (s *Outages) Connected(worker string, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reconnects++
	if o := s.open(); o != nil && o.needs(worker) {
		o.back = o.after(now)
		o.Back = cmp.Or(o.Back, o.back)
		s.restore(o, worker, now)
	}
}

// Stages returns stages of a worker that connects again: next, and the logins in the present outage.
func (s *Outages) Stages(next driver.Stages) driver.Stages {
	return func(stage driver.Stage, took time.Duration) {
		next(stage, took)
		if stage != driver.StageLogin {
			return
		}
		now := time.Now()
		s.mu.Lock()
		defer s.mu.Unlock()
		if o := s.open(); o != nil {
			o.login(took, o.after(now))
		}
	}
}

// Released records that a worker no longer needs a connection.
func (s *Outages) Released(worker string, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o := s.open(); o != nil && o.needs(worker) {
		s.restore(o, worker, now)
	}
}

// needs reports whether a worker is not connected.
func (o *outage) needs(worker string) bool {
	_, ok := o.lost[worker]
	return ok
}

// restore removes a worker from the disconnected ones. It records when all workers that need a connection have one, and
// from when on all consumers have.
func (s *Outages) restore(o *outage, worker string, now time.Time) {
	delete(o.lost, worker)
	if len(o.lost) == 0 {
		o.Reconnected, o.lost = o.back, nil // a run of days has many outages, and an empty map would keep its memory
		o.Workers = slices.Clip(o.Workers)
	}
	for _, produces := range o.lost {
		if !produces {
			return
		}
	}
	s.redelivering.CompareAndSwap(math.MaxInt64, int64(now.Sub(s.start)+redeliveryTime))
}

// Ready records that a producer was connected again at that time, and had no message to send.
func (s *Outages) Ready(opened time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range s.list {
		if opened.After(o.start) && o.sends && !o.ready && !o.idle() {
			o.ready = true
			o.recordThrough(o.after(opened))
		}
	}
}

// RecordArrival records that a message was confirmed, or received, on a worker's connection that was opened at that
// time. It is called for the first one of each connection.
func (s *Outages) RecordArrival(confirmed bool, opened, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range s.list {
		if !opened.After(o.start) {
			continue
		}
		moment, concerned := &o.Received, o.receives
		if confirmed {
			moment, concerned = &o.Confirmed, o.sends
		}
		if concerned && *moment == 0 && !o.idle() { // connections of the other side do not matter
			*moment = o.after(now)
			o.recordThrough(*moment)
			if o.Recovered > 0 {
				o.Recovered = max(o.Recovered, *moment)
			}
		}
	}
}

// List returns the outages so far of a load that began then; if there are many, the first and the last ones.
// [Outages.More] has the others.
func (s *Outages) List(began time.Time) []result.Outage {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]result.Outage, 0, len(s.list))
	for _, o := range s.list {
		c, elapsed := o.Outage, o.start.Sub(began)
		c.Time, c.Elapsed = began.Add(elapsed).UnixMicro(), elapsed.Microseconds()
		c.Workers, c.NotBack = slices.Clone(c.Workers), slices.Sorted(maps.Keys(o.lost))
		if c.Reconnected == 0 {
			c.LastBack = o.back
		}
		if o.logins.Count > 0 {
			c.Logins, c.LoginP99 = uint64(o.logins.Count), o.logins.Percentile(99) //nolint:gosec // a count
		}
		list = append(list, c)
	}
	slices.SortStableFunc(list, func(a, b result.Outage) int { return cmp.Compare(a.Elapsed, b.Elapsed) })
	return list
}

// progress returns the present state.
func (s *Outages) progress(now time.Time) *OutageProgress {
	p := &OutageProgress{
		Count: s.count(), Reconnects: s.reconnects, Attempts: s.attempts,
		InDoubt: s.more.InDoubt, Length: time.Duration(s.more.Length) * time.Microsecond,
	}
	for _, o := range s.list {
		p.InDoubt += o.InDoubt
		length := time.Duration(o.Length) * time.Microsecond
		if o == s.open() && !o.idle() && now.After(o.start) {
			p.Down, p.Since = len(o.lost), now.Sub(o.start)
			if length == 0 {
				length = p.Since
			}
		}
		p.Length += length
	}
	// Other goroutines read the clock for the end of an outage and for the snapshots before it: without the maximum, the
	// sum could shrink.
	s.length = max(s.length, p.Length)
	p.Length = s.length
	return p
}

// Disconnected returns the workers that are not connected, and whether they produce; nil for none, or without Outages.
func (s *Outages) Disconnected() map[string]bool {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if o := s.open(); o != nil {
		return maps.Clone(o.lost)
	}
	return nil
}

// redeliveryTime is the time after the consumers are connected again in which a message may come again without a mark
// of the broker: some brokers mark none of the messages that they had sent to a lost connection.
const redeliveryTime = time.Minute

// Receiving reports whether a consumer has lost its connection. It implements verify.Outages.
func (s *Outages) Receiving() bool { return s.redelivering.Load() != 0 }

// Explain reports whether an outage explains that a message comes again now. It implements verify.Outages. It takes no
// lock.
func (s *Outages) Explain() bool {
	until := s.redelivering.Load()
	switch {
	case until <= passed:
		return false
	case int64(time.Since(s.start)) < until:
		return true
	}
	s.redelivering.CompareAndSwap(until, passed)
	return false
}

// KeptOutages is the number of listed outages at the beginning, and again at the end: over days, a connection that
// keeps breaking has any number of them. The outages in between are summed up.
const KeptOutages = 100

// OutageCount returns the number of outages.
func (s *Summary) OutageCount() int {
	n := len(s.Outages)
	if s.MoreOutages != nil {
		n += int(s.MoreOutages.Count) //nolint:gosec // a number of outages
	}
	return n
}

// fold adds the first outage in between the first and the last ones to the sums. It is over, as later ones have begun.
func (s *Outages) fold() {
	o, r := s.list[KeptOutages], &s.recovery
	s.list = slices.Delete(s.list, KeptOutages, KeptOutages+1)
	if r.known > KeptOutages {
		r.known--
	}
	r.pending = slices.DeleteFunc(r.pending, func(p *outage) bool { return p == o })
	s.more.Count++
	s.more.Length += o.Length
	s.more.Longest = max(s.more.Longest, o.Length)
	s.more.InDoubt += o.InDoubt
}

// count returns the number of outages.
func (s *Outages) count() int { return len(s.list) + int(s.more.Count) } //nolint:gosec // a number of outages

// numbered returns the listed outage of a number, which counts from 1; nil for one in between.
func (s *Outages) numbered(number int) *result.Outage {
	index := number - 1
	if index >= KeptOutages {
		if index -= int(s.more.Count); index < KeptOutages {
			return nil
		}
	}
	return &s.list[index].Outage
}

// More returns the sums of the outages that [Outages.List] leaves out; nil if it leaves out none.
func (s *Outages) More() *result.MoreOutages {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.more.Count == 0 {
		return nil
	}
	return new(s.more)
}

const (
	// The load must reach recoveredShare of the rates before an outage again, for recoveredFor.
	recoveredShare = 0.9
	recoveredFor   = 3
	// beforeOutage is the number of seconds that determine the rates before an outage.
	beforeOutage = 10
)

// recovery detects when the rates are back after outages. Callers hold the lock of Outages.
type recovery struct {
	planned float64 // planned messages per second, if constant; 0 if unknown
	step    string
	// rates are messages completed, and received, per second
	before  [][2]float64 // the last full seconds with messages
	base    [2]float64   // when the first of pending began
	pending []*outage    // outages without recovery so far
	known   int          // number of outages seen
	good    int          // full seconds at the rates of base, up to now
	since   time.Time    // start of the good seconds
}

// catchingUp is the least ratio of a second's rate to the planned rate that shows that overdue messages are being sent.
const catchingUp = 1.1

// AddInterval adds a snapshot of the load, and sets the state of its outages.
func (s *Outages) AddInterval(snap *Snapshot) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	snap.Outage = s.progress(snap.To)
	snap.Disconnected, snap.Outages = snap.Outage.Down, uint64(snap.Outage.Count) //nolint:gosec // a number of outages
	r := &s.recovery
	length := snap.To.Sub(snap.From)
	if snap.Step != r.step { // another load has other rates
		*r = recovery{planned: r.planned, step: snap.Step, known: len(s.list)}
	}
	if snap.Phase == result.Drain || length < FullSecond {
		return
	}
	rates := [2]float64{
		float64(snap.Get(result.Completed)) / length.Seconds(),
		float64(snap.Get(result.Received)) / length.Seconds(),
	}
	if len(s.list) > r.known {
		if len(r.pending) == 0 {
			r.base = medians(r.before)
		}
		r.pending = append(r.pending, s.list[r.known:]...)
		r.known = len(s.list)
	}
	through := !slices.ContainsFunc(r.pending, func(o *outage) bool { return o.Length == 0 })
	switch {
	case len(r.pending) > 0 && r.base != [2]float64{}:
		r.checkRecovery(snap, rates, through)
	case through: // else there is nothing to compare yet
		r.pending = nil
		r.keepRates(rates)
	}
}

// keepRates keeps the rates of a second without outages, unless overdue messages were sent in it.
func (r *recovery) keepRates(rates [2]float64) {
	if rates != [2]float64{} && (r.planned == 0 || rates[0] <= catchingUp*r.planned) {
		r.before = append(r.before[max(0, len(r.before)-beforeOutage+1):], rates)
	}
}

// checkRecovery checks whether the rates of a full second are back at the rates before the outage. through: messages
// have come through after all outages.
func (r *recovery) checkRecovery(snap *Snapshot, rates [2]float64, through bool) {
	if through {
		for _, o := range r.pending {
			o.Watched += snap.To.Sub(snap.From).Microseconds()
		}
	}
	if rates[0] < recoveredShare*r.base[0] || rates[1] < recoveredShare*r.base[1] {
		r.good = 0
		return
	}
	if r.good++; r.good == 1 {
		r.since = snap.From
	}
	if r.good < recoveredFor {
		return
	}
	r.pending = slices.DeleteFunc(r.pending, func(o *outage) bool {
		if o.Length == 0 { // it has just begun
			return false
		}
		// An outage that began within the three seconds did not change the rates.
		o.Recovered = max(o.Confirmed, o.Received, o.after(r.since))
		return true
	})
	r.good = 0
}

// medians returns the median of each rate.
func medians(list [][2]float64) (base [2]float64) {
	for side := range base {
		var sorted []float64
		for _, rates := range list {
			sorted = append(sorted, rates[side])
		}
		slices.Sort(sorted)
		if n := len(sorted); n > 0 {
			base[side] = (sorted[(n-1)/2] + sorted[n/2]) / 2
		}
	}
	return base
}
