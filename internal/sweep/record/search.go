package record

import (
	"fmt"
	"math"
	"path/filepath"
	"strconv"
	"strings"
)

// SearchFile is the name of the file with a [Search], in the folder of a search.
const SearchFile = "search.json"

// maxSearchFile bounds the size of [SearchFile], in bytes.
const maxSearchFile = 16 << 20

// PointFolder is the folder of a point's result, within the folder of the search. The first point is number 1.
func PointFolder(number int, rate float64) string {
	return fmt.Sprintf("%03d-%s", number, strconv.FormatFloat(rate, 'f', -1, 64))
}

// Write writes the search into a folder.
func (s *Search) Write(dir string) error { return write(filepath.Join(dir, SearchFile), s) }

// IsSearch reports whether a folder holds a search.
func IsSearch(dir string) bool { return exists(filepath.Join(dir, SearchFile)) }

// ReadSearch reads the search in a folder. The error is [fs.ErrNotExist] without one.
func ReadSearch(dir string) (*Search, error) {
	o := new(Search)
	if err := read(filepath.Join(dir, SearchFile), maxSearchFile, o); err != nil {
		return nil, err
	}
	if o.Held && o.Rate <= 0 {
		return nil, fmt.Errorf("%s: a rate of %v cannot have been held", SearchFile, o.Rate)
	}
	for i := range o.Points {
		if rate := o.Points[i].Rate; rate <= 0 || math.IsInf(rate, 0) {
			return nil, fmt.Errorf("%s: point %d has a rate of %v", SearchFile, i+1, rate)
		}
	}
	return o, nil
}

// Point is one tried rate.
type Point struct {
	Rate float64 `json:"rate"` // messages per second
	// Hold: the rate was tried for longer, to verify the result.
	Hold bool `json:"hold,omitempty"`
	// Kept: the load passed all thresholds. Otherwise Why names the failed ones, and Tester is true if perfmq, or its
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

// Search is the outcome of a search.
type Search struct {
	Thresholds []string `json:"demands"`
	// Rate is the highest rate that passed all thresholds, also when it was held; 0 if none did. Above is the lowest rate
	// that failed; 0 if none did.
	Rate  float64 `json:"rate"`
	Above float64 `json:"above"`
	// Held: Rate was tried for longer, and passed all thresholds. It is false if the search ended earlier.
	Held bool `json:"held"`
	// Failed is the point at Above.
	Failed Point `json:"failed"`
	// Complete: the search came to its end. Otherwise it is running, or was interrupted.
	Complete bool `json:"complete"`
	// Points are all tried rates, in order.
	Points []Point `json:"points"`
}

// The kinds of outcomes.
const (
	Maximum   = "maximum"    // Rate is the highest sustainable rate
	AtLeast   = "at least"   // Rate was held: perfmq was the limit above it, or it is the highest that a search tries
	Undecided = "undecided"  // perfmq was the limit, and no rate was held
	Nothing   = "nothing"    // even the lowest rate failed
	NotSteady = "not steady" // no rate was held
	Open      = "open"       // the search is running, or ended early
)

// Kind returns the kind of the outcome.
func (s *Search) Kind() string {
	switch {
	case s.Held && (s.Above == 0 || s.Failed.Tester):
		return AtLeast
	case s.Held:
		return Maximum
	case !s.Complete:
		return Open
	case s.Failed.Tester:
		return Undecided
	case s.Rate == 0:
		return Nothing
	default:
		return NotSteady
	}
}

// Words returns the outcome in words, and the reason why the rate is not higher; empty if unknown.
func (s *Search) Words() (text, why string) {
	rate := func(v float64) string { return PerSecond(v) + " msg/s" }
	failed := "at " + rate(s.Above) + ": " + s.Failed.Why
	limit := "at " + rate(s.Above) + " the limit was " + s.Failed.Limit
	switch s.Kind() {
	case Maximum:
		return "maximum: " + rate(s.Rate), failed
	case AtLeast:
		if s.Above == 0 {
			limit = "that is as far as the search goes"
		}
		return "at least " + rate(s.Rate), limit
	case Undecided:
		text := fmt.Sprintf("undecided: perfmq was the limit of %d of %d loads, and no rate was held", s.Bounded(),
			len(s.Points))
		if s.Rate > 0 {
			text += "; " + rate(s.Rate) + " had passed"
		}
		return text, limit
	case Nothing:
		return "not even " + rate(s.Above) + " passes the thresholds", s.Failed.Why
	case NotSteady:
		return "no rate was held: the broker, or the machine, is not steady; the last that was tried is " +
			rate(s.Failed.Rate), s.Failed.Why
	}
	passed := "no rate"
	if s.Rate > 0 {
		passed = rate(s.Rate)
	}
	return "the search has not come to its end; " + passed + " had passed", ""
}

// Bounded is the number of loads that failed with perfmq, or its machine, as the limit.
func (s *Search) Bounded() (n int) {
	for i := range s.Points {
		if s.Points[i].Tester {
			n++
		}
	}
	return n
}

// String returns the outcome with the reason why the rate is not higher.
func (s *Search) String() string {
	text, why := s.Words()
	switch {
	case why == "":
		return text
	case s.Kind() == Maximum:
		return text + "; " + why
	default:
		return text + ": " + why
	}
}

// PerSecond formats a rate with commas between the thousands.
func PerSecond(rate float64) string {
	whole, rest, fraction := strings.Cut(strconv.FormatFloat(rate, 'f', -1, 64), ".")
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if fraction {
		whole += "." + rest
	}
	return whole
}
