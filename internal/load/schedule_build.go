package load

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// maxPieces bounds the memory of a schedule to some megabytes.
const maxPieces = 100_000

// builder makes a schedule of segments.
type builder struct {
	timetable
	parts uint64 // pieces and pauses of all segments
	open  bool   // it has no end
	drawn bool   // the present segment has random arrivals
}

func (b *builder) add(g segment) error {
	if b.end+g.Length < b.end {
		return errTooLong
	}
	parts := uint64(1)
	switch g.Kind {
	case segmentStair:
		parts = g.steps()
	case segmentBurst:
		parts = 2 * ((uint64(g.Length)-1)/uint64(g.Every) + 1)
	}
	if parts > maxPieces-b.parts {
		return fmt.Errorf("a step, a burst and the time between two bursts count as a segment each: "+
			"at most %d in all are possible, this one has %d", maxPieces, parts)
	}
	b.parts += parts
	b.segments = append(b.segments, g)
	b.drawn = g.Arrivals == arrivalsPoisson || g.Arrivals == "" && b.poisson
	switch g.Kind {
	case segmentStair:
		b.stair(g)
	case segmentBurst:
		for left := g.Length; left > 0; left -= g.Every {
			b.piece(g.From, g.From, min(left, g.Burst))
			if left > g.Burst {
				b.piece(g.Over, g.Over, min(left, g.Every)-g.Burst)
			}
		}
	default:
		b.piece(g.From, g.To, g.Length)
	}
	return nil
}

func (b *builder) stair(g segment) {
	for rate := g.From; ; {
		b.piece(rate, rate, g.Every)
		switch {
		case rate == g.To:
			return
		case rate < g.To:
			rate += min(g.By, g.To-rate)
		default:
			rate -= min(g.By, rate-g.To)
		}
	}
}

// piece appends a piece; a length of 0 is unlimited.
func (b *builder) piece(from, to Rate, length time.Duration) {
	if from > 0 || to > 0 {
		p := piece{
			start: b.end, length: uint64(length), from: uint64(from), to: uint64(to), base: b.total, random: b.drawn,
		}
		b.pieces = append(b.pieces, p)
		b.first = append(b.first, b.total.messages())
		b.total = b.total.plus(product(p.from+p.to, p.length))
		b.peak = max(b.peak, from, to)
		b.random = b.random || b.drawn
	}
	b.end += length
	b.open = length == 0
}

func (b *builder) schedule() (Schedule, error) {
	if len(b.pieces) == 0 {
		return Schedule{}, errors.New("must have a rate above 0 beside the pauses")
	}
	if b.open {
		b.end = 0
	} else {
		b.first = append(b.first, b.total.messages())
	}
	return Schedule{table: new(b.timetable)}, nil
}

// Poisson returns the schedule with random arrivals in the segments that do not say even. The closed loop stays.
func (s Schedule) Poisson() (Schedule, error) {
	if s.IsZero() {
		return s, nil
	}
	return parseSegments(strings.Split(s.String(), ","), true)
}

// Scale returns the schedule with all lengths multiplied by a factor above 0, and the same rates. It returns the
// schedule unchanged if it has no lengths, or if they would be too long.
func (s Schedule) Scale(factor float64) Schedule {
	if s.table == nil {
		return s
	}
	scaled := func(d time.Duration) time.Duration {
		if d == 0 {
			return 0
		}
		return max(time.Duration(float64(d)*factor), time.Millisecond)
	}
	b := builder{timetable: timetable{poisson: s.table.poisson}}
	for _, g := range s.table.segments {
		g.Length, g.Every, g.Burst = scaled(g.Length), scaled(g.Every), scaled(g.Burst)
		if g.Kind == segmentStair {
			g.Length = time.Duration(g.steps()) * g.Every
		}
		if err := b.add(g); err != nil {
			return s
		}
	}
	shorter, _ := b.schedule() // it has rates as before
	return shorter
}
