// Package search finds the highest rate at which a load passes its thresholds. It doubles the rate until a load fails,
// bisects, tries the lowest failed rate once more, since it may have failed by chance, and holds the rate that it found
// for longer. It goes no further when perfmq's machine was the limit of two loads in a row.
package search

import (
	"context"
	"errors"
	"math"
	"strconv"
)

// Point is one tried rate.
type Point struct {
	Rate float64 `json:"rate"` // messages per second
	// Hold: the rate was tried for longer, to verify the result.
	Hold bool `json:"hold,omitempty"`
	// Kept: the load passed all thresholds. Otherwise Why names those that failed, and Tester is true if perfmq, or its
	// machine, was the limit.
	Kept   bool   `json:"kept"`
	Why    string `json:"why,omitempty"`
	Tester bool   `json:"tester,omitempty"`
	// Limit is the limit of the rate, in words.
	Limit string `json:"limit,omitempty"`
}

// Verdict is the outcome of the load in a word or two.
func (p *Point) Verdict() string {
	switch {
	case p.Kept:
		return "pass"
	case p.Tester:
		return "undecided"
	default:
		return "fail"
	}
}

// Probe applies a load of that rate to the broker. An error ends the search.
type Probe func(ctx context.Context, rate float64, hold bool) (Point, error)

// Config has the settings of a search. Zero values mean the defaults.
type Config struct {
	First float64 // the first rate to try; default 1000
	// Precision is the largest distance of the result to a rate that failed, as a fraction; default 0.02.
	Precision float64
	// Note, if not nil, receives the findings after each load. An error ends the search.
	Note func(*Found) error
}

const (
	defaultFirst     = 1000
	defaultPrecision = 0.02
	minRate          = 1   // messages per second
	maxRate          = 1e8 // above any broker, and within the range of a schedule's clock
	digits           = 3   // significant digits of tried rates, for readability
	maxHolds         = 4   // how often a rate is held, each time a lower one
	backOff          = 0.03
	maxConfirms      = 3 // how often the lowest failed rate is tried again, as long as it is kept then
	patience         = 2 // tries of a rate at which perfmq was the limit: it may have been disturbed
)

// Found is the outcome of a search.
type Found struct {
	// Rate is the highest rate that met all demands, also when it was held; 0 if none did. Above is the lowest rate that
	// failed; 0 if none did.
	Rate  float64 `json:"rate"`
	Above float64 `json:"above"`
	// Held: Rate was tried for longer, and met all demands. It is false if the search ended earlier.
	Held bool `json:"held"`
	// Failed is the point at Above.
	Failed Point `json:"failed"`
	// Complete: the search came to its end. Otherwise it is running, or was interrupted.
	Complete bool `json:"complete"`
	// Points are all tried rates, in order.
	Points []Point `json:"points"`
}

// AtLeast tells whether the held rate is only a lower bound: perfmq was the limit, or the search reached its highest
// rate.
func (f *Found) AtLeast() bool { return f.Held && (f.Above == 0 || f.Failed.Tester) }

var (
	// ErrNothing reports that even the lowest rate failed.
	ErrNothing = errors.New("no rate passes the thresholds")
	// ErrUndecided reports that perfmq, or its machine, was the limit of two loads in a row, so that the search shows
	// nothing of the broker.
	ErrUndecided = errors.New("perfmq was the limit")
)

type search struct {
	cfg   Config
	probe Probe
	Found
}

// Max searches. It returns the findings so far with any error, which may be [ErrNothing], [ErrUndecided], that of the
// context, or that of the probe.
func Max(ctx context.Context, cfg Config, probe Probe) (*Found, error) {
	if cfg.First <= 0 {
		cfg.First = defaultFirst
	}
	if cfg.Precision <= 0 {
		cfg.Precision = defaultPrecision
	}
	s := &search{cfg: cfg, probe: probe}
	if s.cfg.Note == nil {
		s.cfg.Note = func(*Found) error { return nil }
	}
	err := s.narrow(ctx)
	if errors.Is(err, ErrUndecided) && s.Rate > 0 {
		err = nil // the broker may hold the rate below
	}
	rate, back := s.Rate, backOff
	for tries := 0; err == nil && !s.Held && tries < maxHolds; tries++ {
		err = s.try(ctx, rate, true)
		rate, back = max(round(rate*(1-back)), minRate), 2*back
	}
	s.Complete = err == nil || errors.Is(err, ErrNothing) || errors.Is(err, ErrUndecided)
	return &s.Found, err
}

// narrow finds a rate that passes and one, a little higher, that fails, also when it is tried again.
func (s *search) narrow(ctx context.Context) error {
	err := s.close(ctx)
	for tries := 0; err == nil && tries < maxConfirms && s.Above > 0; tries++ {
		above := s.Above
		if err = s.try(ctx, above, false); err != nil || s.Above == above {
			break
		}
		err = s.close(ctx) // the failure was by chance
	}
	return err
}

// close finds a rate that passes and one that fails, and narrows the gap between them.
func (s *search) close(ctx context.Context) error {
	if err := s.bracket(ctx); err != nil {
		return err
	}
	return s.bisect(ctx)
}

// bracket finds a rate that passes and one twice as high that fails; or lower ones, if the first rate failed.
func (s *search) bracket(ctx context.Context) error {
	rate := round(s.cfg.First)
	switch {
	case s.Above > 0:
		return nil
	case s.Rate > 0:
		rate = min(round(2*s.Rate), maxRate)
	}
	for {
		if err := s.try(ctx, rate, false); err != nil {
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

// bisect narrows the gap between the rate that passes and the one that fails.
func (s *search) bisect(ctx context.Context) error {
	if s.Rate == 0 {
		return ErrNothing
	}
	for s.Above > 0 && s.Above/s.Rate > 1+s.cfg.Precision {
		rate := round(math.Sqrt(s.Rate * s.Above))
		if rate <= s.Rate || rate >= s.Above {
			return nil // no rate with so few digits lies between
		}
		if err := s.try(ctx, rate, false); err != nil {
			return err
		}
	}
	return nil
}

// try tries a rate. If it fails to hold, the highest rate below it that passed remains. It returns [ErrUndecided] when
// perfmq was the limit of each try.
func (s *search) try(ctx context.Context, rate float64, hold bool) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	var p Point
	for tries := 0; tries < patience; tries++ {
		var err error
		if p, err = s.probe(ctx, rate, hold); err != nil {
			return err
		}
		p.Rate, p.Hold = rate, hold
		s.Points = append(s.Points, p)
		if p.Kept || !p.Tester {
			break
		}
	}
	s.judge(p)
	if err := s.cfg.Note(&s.Found); err != nil {
		return err
	}
	if p.Tester && !p.Kept {
		return ErrUndecided
	}
	return nil
}

// judge updates the findings with the outcome of a load.
func (s *search) judge(p Point) {
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

// failedAbove returns the lowest failed point above a rate; the zero value if there is none.
func (s *search) failedAbove(rate float64) (lowest Point) {
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
