package result

import (
	"errors"
	"io/fs"
	"math"
	"path/filepath"
)

// Tail reads the rows of a result while its files grow.
type Tail struct {
	Dir string
	// Head is the head of the result; nil before it was read.
	Head *Head

	rows, latencies int64 // bytes read of both files
	h               histograms
	held            spots // by [Tails.Next]
	last            int64 // second of its last row
}

// next calls visit with each row that has come with all of its histograms, which the row loses afterwards.
func (t *Tail) next(visit func(*Row)) error {
	if t.h.visit = visit; len(t.h.wanted) == 0 { // all were visited
		t.h.result, t.h.next = &Result{}, 0
	}
	err := linesFrom(filepath.Join(t.Dir, RowsFile), &t.rows, func(line []byte) (err error) {
		if t.Head == nil {
			t.Head, err = parse[Head](line)
			return err
		}
		row, err := parse[Row](line)
		if err == nil {
			t.h.result.Rows = append(t.h.result.Rows, *row)
		}
		return err
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
			if tail.held == nil {
				tail.held = spots{}
			}
			tail.held.put(own, c, (*Row).follow)
		})
		if err != nil {
			return err
		}
		if newest = max(newest, tail.last); !over {
			until = min(until, tail.last)
		}
	}
	until = max(until, newest-mostBehind)
	joined := spots{}
	for _, tail := range t {
		for own, row := range tail.held {
			if own.second < until {
				joined.put(own, row, (*Row).beside)
				delete(tail.held, own)
			}
		}
	}
	for _, row := range joined.inTime() {
		visit(row)
	}
	return nil
}
