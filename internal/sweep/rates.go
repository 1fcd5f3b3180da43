package sweep

import (
	"errors"
	"math"
	"strconv"

	"github.com/perfmq/perfmq/internal/sweep/record"
)

const (
	defaultFirst = 1000
	precision    = 0.02 // the largest distance of the result to a rate that failed, as a fraction
	minRate      = 1    // messages per second
	maxRate      = 1e8  // above any broker, and within the range of a schedule's clock
	digits       = 3    // significant digits of tried rates, for readability
	maxHolds     = 4    // how often a rate is held, each time a lower one
	backOff      = 0.03
	maxConfirms  = 3 // how often the lowest failed rate is tried again, as long as it is kept then
	patience     = 2 // tries of a rate at which perfmq was the limit: it may have been disturbed
)

var (
	// errNothing reports that even the lowest rate failed.
	errNothing = errors.New("nothing found")
	// errUndecided reports that perfmq, or its machine, was the limit of two loads in a row, so that the search shows
	// nothing of the broker.
	errUndecided = errors.New("undecided")
)

// finder is a search for the highest rate that passes.
type finder struct {
	first float64                                             // the first rate; 0 for the default
	probe func(rate float64, hold bool) (record.Point, error) // puts a load on the broker; an error ends the search
	note  func(*record.Search) error                          // called after each load; an error ends the search
	*record.Search
}

// highest finds the highest rate that passes: it doubles the rate until a load fails, bisects, tries the lowest failed
// rate once more, since it may have failed by chance, and holds the rate that it found for longer. It goes no higher
// when perfmq's machine was the limit of two loads in a row. It keeps the findings, also with an error: [errNothing],
// [errUndecided], or an error of probe or note.
func (s *finder) highest() error {
	if s.first <= 0 {
		s.first = defaultFirst
	}
	err := s.narrow()
	if errors.Is(err, errUndecided) && s.Rate > 0 {
		err = nil // the broker may hold the rate below
	}
	rate, back := s.Rate, backOff
	for tries := 0; err == nil && !s.Held && tries < maxHolds; tries++ {
		err = s.try(rate, true)
		rate, back = max(round(rate*(1-back)), minRate), 2*back
	}
	s.Complete = err == nil || errors.Is(err, errNothing) || errors.Is(err, errUndecided)
	return err
}

// narrow finds a rate that passes and one, a little higher, that fails, also when it is tried again.
func (s *finder) narrow() error {
	err := s.close()
	for tries := 0; err == nil && tries < maxConfirms && s.Above > 0; tries++ {
		above := s.Above
		if err = s.try(above, false); err != nil || s.Above == above {
			break
		}
		err = s.close() // the failure was by chance
	}
	return err
}

// close finds a rate that passes and one that fails, and narrows the gap between them.
func (s *finder) close() error {
	if err := s.bracket(); err != nil {
		return err
	}
	return s.bisect()
}

// bracket finds a rate that passes and one twice as high that fails; or lower ones, if the first rate failed.
func (s *finder) bracket() error {
	rate := round(s.first)
	switch {
	case s.Above > 0:
		return nil
	case s.Rate > 0:
		rate = min(round(2*s.Rate), maxRate)
	}
	for {
		if err := s.try(rate, false); err != nil {
			return err
		}
		switch {
		case s.Rate > 0 && s.Above > 0:
			return nil
		case s.Rate > 0 && rate >= maxRate, s.Above > 0 && rate <= minRate:
			return nil
		case s.Rate > 0:
			rate = min(round(2*rate), maxRate)
		default:
			rate = max(round(rate/4), minRate)
		}
	}
}

// bisect narrows the gap between the rate that passes and the rate that fails.
func (s *finder) bisect() error {
	if s.Rate == 0 {
		return errNothing
	}
	for s.Above > 0 && s.Above/s.Rate > 1+precision {
		rate := round(math.Sqrt(s.Rate * s.Above))
		if rate <= s.Rate || rate >= s.Above {
			return nil // no rate with so few digits lies between
		}
		if err := s.try(rate, false); err != nil {
			return err
		}
	}
	return nil
}

// try tries a rate. If it fails to hold, the highest rate below it that passed remains. It returns [errUndecided] when
// perfmq was the limit of each try.
func (s *finder) try(rate float64, hold bool) error {
	var p record.Point
	for tries := 0; tries < patience; tries++ {
		var err error
		if p, err = s.probe(rate, hold); err != nil {
			return err
		}
		p.Rate, p.Hold = rate, hold
		s.Points = append(s.Points, p)
		if p.Kept || !p.Tester {
			break
		}
	}
	s.judge(p)
	if err := s.note(s.Search); err != nil {
		return err
	}
	if p.Tester && !p.Kept {
		return errUndecided
	}
	return nil
}

// judge updates the findings with the outcome of a load.
func (s *finder) judge(p record.Point) {
	if p.Kept {
		s.Rate, s.Held = p.Rate, p.Hold
		if s.Above > 0 && p.Rate >= s.Above {
			s.Failed = s.failedAbove(p.Rate)
			s.Above = s.Failed.Rate
		}
		return
	}
	s.Above, s.Failed, s.Rate, s.Held = p.Rate, p, 0, false
	for _, earlier := range s.Points {
		if earlier.Kept && earlier.Rate < p.Rate {
			s.Rate = max(s.Rate, earlier.Rate)
		}
	}
}

// failedAbove returns the lowest failed point above a rate; the zero value without one.
func (s *finder) failedAbove(rate float64) (lowest record.Point) {
	for _, p := range s.Points {
		if !p.Kept && p.Rate > rate && (lowest.Rate == 0 || p.Rate < lowest.Rate) {
			lowest = p
		}
	}
	return lowest
}

// round rounds a rate to few digits.
func round(rate float64) float64 {
	v, _ := strconv.ParseFloat(strconv.FormatFloat(rate, 'g', digits, 64), 64)
	return v
}
