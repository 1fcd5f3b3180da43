package result

import (
	"cmp"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"math"
	"path/filepath"
	"slices"
)

// Tail reads the rows of a result while its files grow.
type Tail struct {
	Dir string
	// Head is the head of the result; nil before it was read.
	Head *Head

	rows, latencies int64 // bytes read of both files
	h               histograms
	held            map[spot]*Row // by [Tails.Next]
	last            int64         // second of its last row
}

// next calls visit with each row that has come with all of its histograms, which the row loses afterwards.
func (t *Tail) next(visit func(*Row)) error {
	if t.h.visit = visit; len(t.h.wanted) == 0 { // all were visited
		t.h.result, t.h.next = &Result{}, 0
	}
	err := linesFrom(filepath.Join(t.Dir, RowsFile), &t.rows, func(line []byte) error {
		if t.Head == nil {
			head := new(Head)
			if err := cmp.Or(json.Unmarshal(line, head), head.check()); err != nil {
				return err
			}
			t.Head = head
			return nil
		}
		var row Row
		if err := json.Unmarshal(line, &row); err != nil {
			return err
		}
		t.h.result.Rows = append(t.h.result.Rows, row)
		return row.check()
	})
	if err == nil {
		t.h.advance()
		err = linesFrom(filepath.Join(t.Dir, LatenciesFile), &t.latencies, func(line []byte) error {
			if line[0] == '#' || line[0] == '"' {
				return nil
			}
			return t.h.readLine(string(line[:len(line)-1]))
		})
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Tails join the rows of shards by the second while they come. The loads began at one moment.
type Tails []*Tail

// mostBehind is by how many seconds a shard may hold up the rows of the others: they are kept in memory meanwhile.
const mostBehind = 60

// Next calls visit with the joined rows of the seconds that all shards have passed; but for those that have ended.
func (t Tails) Next(ended func(i int) bool, visit func(*Row)) error {
	until, newest := int64(math.MaxInt64), int64(0)
	for i, tail := range t {
		over := ended(i) // before its last rows are read
		err := tail.next(func(row *Row) {
			c := row.clone()
			c.Arrivals = nil
			if tail.Head.Clock != nil {
				c.Time -= int64(tail.Head.Clock.Ahead)
			}
			own := spotOf(row, 0)
			tail.last = own.second
			if held := tail.held[own]; held != nil {
				held.follow(c)
				return
			}
			if tail.held == nil {
				tail.held = map[spot]*Row{}
			}
			tail.held[own] = c
		})
		if err != nil {
			return err
		}
		if newest = max(newest, tail.last); !over {
			until = min(until, tail.last)
		}
	}
	until = max(until, newest-mostBehind)
	joined := map[spot]*Row{}
	for _, tail := range t {
		for own, row := range tail.held {
			switch {
			case own.second >= until:
				continue
			case joined[own] == nil:
				joined[own] = row
			default:
				joined[own].beside(row)
			}
			delete(tail.held, own)
		}
	}
	for _, row := range inTime(slices.Collect(maps.Values(joined))) {
		visit(row)
	}
	return nil
}
