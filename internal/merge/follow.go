package merge

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/threshold"
	"github.com/perfmq/perfmq/internal/verify"
	"github.com/perfmq/perfmq/internal/words"
	"github.com/perfmq/perfmq/pkg/result"
)

const (
	pollFolders = 500 * time.Millisecond // between two looks at the folders
	silentAfter = 30 * time.Second       // without a new file a process is taken for gone
	sayEvery    = 10 * time.Second
	maxIdle     = 3600 // seconds without a new file that are judged one by one
)

// Follower judges the messages of several processes while they write their results. It is for one goroutine.
type Follower struct {
	Dirs       []string
	Thresholds []threshold.Threshold // the first that fails ends it
	Say        func(string)          // a line about what was found

	feeds  map[string]*feed // by folder
	joined *verify.Joined
	turned int64 // seconds since the Unix epoch, judged
	said   time.Time
}

// feed is a folder of one run of a process.
type feed struct {
	dir    string
	number int            // tells the processes apart
	next   int            // number of the next file; 0 before the first
	queue  []*verify.Side // read, and not judged
	at     int64          // of the newest of them
	came   time.Time      // when the newest file was found
	late   bool           // its first files are gone
	begun  bool           // the first of its sides was judged
	ended  bool
	gone   bool // nothing has come for long
}

// Follow judges until all processes have ended, a threshold fails, or ctx ends. The result has what was still open
// judged as at the end of a run.
func (f *Follower) Follow(ctx context.Context) (v *verify.Result, broken *threshold.Threshold, err error) {
	f.feeds = map[string]*feed{}
	timer := time.NewTicker(pollFolders)
	defer timer.Stop()
	for {
		ended, err := f.look()
		if err != nil {
			return nil, nil, err
		}
		if broken = f.judge(); broken != nil || ended || ctx.Err() != nil {
			return f.end(), broken, nil
		}
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
	}
}

// end returns the verification.
func (f *Follower) end() *verify.Result {
	if f.joined == nil {
		return verify.Judge()
	}
	return f.joined.Judge()
}

// look reads the new files of all folders. It reports whether all processes have ended.
func (f *Follower) look() (ended bool, err error) {
	ended = true
	for _, dir := range f.Dirs {
		found := false
		for _, of := range result.Runs(dir) {
			if f.feeds[of] == nil {
				if _, err := os.Stat(filepath.Join(of, result.NumbersDir)); err != nil {
					continue // it has not begun
				}
				f.feeds[of] = &feed{dir: of, number: len(f.feeds), came: time.Now()}
			}
			found = true
			if err := f.feeds[of].read(); err != nil {
				return false, err
			}
			ended = ended && f.feeds[of].ended
		}
		ended = ended && found
	}
	return ended, nil
}

// read reads the files that are whole. One that is not, such as one being copied, is read again later.
func (d *feed) read() error {
	for !d.ended {
		if d.next == 0 {
			entries, _ := os.ReadDir(filepath.Join(d.dir, result.NumbersDir))
			for _, e := range entries { // sorted
				if n, err := strconv.Atoi(strings.TrimSuffix(e.Name(), ".pv")); err == nil {
					d.next, d.late = n, n > 1
					break
				}
			}
		}
		side, err := verify.ReadFile(filepath.Join(d.dir, result.NumbersDir, result.NumbersFile(d.next)))
		if err != nil {
			return d.missing(err)
		}
		if !side.Turn || side.Window <= 0 {
			return &result.Error{Path: d.dir, Err: errors.New("was written without --verify-window")}
		}
		d.queue, d.at, d.ended = append(d.queue, side), side.At, side.Last
		d.next, d.came = d.next+1, time.Now()
	}
	return nil
}

// missing returns an error if the next file will not come any more.
func (d *feed) missing(err error) error {
	path := filepath.Join(d.dir, result.NumbersDir, result.NumbersFile(d.next))
	if time.Since(d.came) < silentAfter {
		return nil
	}
	entries, _ := os.ReadDir(filepath.Dir(path))
	if len(entries) == 0 || entries[len(entries)-1].Name() <= filepath.Base(path) {
		return nil // the process writes no more, see [Follower.limit]
	}
	if errors.Is(err, fs.ErrNotExist) {
		return plan.Wrong("begin again: what is not known any more is left out", "%s is gone, as it was read too late", path)
	}
	return err
}

// limit returns the second until which all processes are known; 0 if not all have begun.
func (f *Follower) limit() int64 {
	until, latest := int64(math.MaxInt64), int64(0)
	dirs := map[string]bool{}
	for _, d := range f.feeds {
		if d.at > 0 {
			dirs[d.dir] = true
		}
		latest = max(latest, d.at)
		switch silent := time.Since(d.came) >= silentAfter; {
		case d.ended:
		case silent && !d.gone:
			d.gone = true
			f.Say("gone: " + d.dir + " has nothing new")
			if f.joined != nil {
				f.joined.Gone(d.number)
			}
		case !silent:
			d.gone = false
			until = min(until, d.at)
		}
	}
	for _, dir := range f.Dirs {
		if !slices.ContainsFunc(result.Runs(dir), func(of string) bool { return dirs[of] }) {
			return 0
		}
	}
	return min(until, latest+time.Second.Microseconds()) / time.Second.Microseconds()
}

// judge judges all seconds that are known.
func (f *Follower) judge() *threshold.Threshold {
	limit := f.limit()
	for limit > f.turned {
		var sides []*verify.Side
		var feeds []*feed
		if f.turned == 0 {
			f.turned = f.first() - 1
		}
		f.turned++
		if next := min(f.first(), limit); next-f.turned > maxIdle { // a clock was set, or is wrong
			f.turned = next
		}
		for _, d := range slices.SortedFunc(maps.Values(f.feeds), func(a, b *feed) int { return a.number - b.number }) {
			for len(d.queue) > 0 && d.queue[0].At <= f.turned*time.Second.Microseconds() {
				sides, feeds = append(sides, d.queue[0]), append(feeds, d)
				d.queue = d.queue[1:]
			}
		}
		if broken := f.turn(sides, feeds); broken != nil {
			return broken
		}
	}
	return nil
}

// first returns the second of the first side.
func (f *Follower) first() int64 {
	first := int64(math.MaxInt64)
	for _, d := range f.feeds {
		if len(d.queue) > 0 {
			first = min(first, d.queue[0].At)
		}
	}
	return first / time.Second.Microseconds()
}

// turn judges one second.
func (f *Follower) turn(sides []*verify.Side, feeds []*feed) *threshold.Threshold {
	for i, side := range sides {
		if f.joined == nil {
			f.joined = verify.NewJoined(time.Duration(side.Window) * time.Microsecond)
		}
		if err := f.joined.AddSent(side, feeds[i].late && !feeds[i].begun); err != nil {
			f.Say("not read: " + feeds[i].dir + ": " + err.Error())
		}
		feeds[i].begun = true
	}
	if f.joined == nil {
		return nil
	}
	for i, side := range sides {
		f.joined.AddReceived(side, feeds[i].number)
		if side.Last {
			f.joined.Gone(feeds[i].number)
		}
	}
	lost, texts := f.joined.Turn(f.turned * time.Second.Microseconds())
	at := time.Unix(f.turned, 0).Format(time.TimeOnly)
	if lost > 0 {
		f.Say(fmt.Sprintf("%s lost: %d: %s", at, lost, words.First(texts, maxPlaces, "; ")))
	}
	p := f.joined.Progress()
	if time.Since(f.said) >= sayEvery {
		f.said = time.Now()
		f.Say(fmt.Sprintf("%s received %d, judged %d: %d lost, %d late, %d duplicated, %d damaged", at, p.Received,
			p.Expected, p.Lost, p.ArrivedLate, p.Duplicates, p.Damaged))
	}
	so := result.Result{Verification: &result.Verification{Known: true, Window: 1, Total: p.Verified()}}
	return threshold.Broken(f.Thresholds, func(string) float64 { return 0 }, so.Metrics())
}

// maxPlaces is the number of destinations of lost messages that a line names.
const maxPlaces = 3
