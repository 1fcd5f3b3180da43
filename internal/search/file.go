package search

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// File is the name of the file with an [Outcome], in the folder of a search.
const File = "search.json"

// Metric is the name of the rate that a search found, where results are compared.
const Metric = "found"

// maxFile bounds the size of [File], in bytes.
const maxFile = 16 << 20

// Folder is the name of the folder of a point's result, within the folder of the search. The first point is number 1.
func Folder(number int, rate float64) string {
	return fmt.Sprintf("%03d-%s", number, strconv.FormatFloat(rate, 'f', -1, 64))
}

// Outcome is a search with its demands.
type Outcome struct {
	Demands []string `json:"demands"`
	*Found
}

// IsSearch tells whether a folder holds a search.
func IsSearch(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, File))
	return !errors.Is(err, fs.ErrNotExist)
}

// Read reads the search in a folder. The error is [fs.ErrNotExist] if there is none.
func Read(dir string) (*Outcome, error) {
	path := filepath.Join(dir, File)
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Size() > maxFile {
		return nil, fmt.Errorf("%s is larger than %d bytes", File, maxFile)
	}
	text, err := os.ReadFile(path) //nolint:gosec // in the user's folder
	if err != nil {
		return nil, err
	}
	o := Outcome{Found: new(Found)}
	if err := json.Unmarshal(text, &o); err != nil {
		return nil, fmt.Errorf("%s: %w", File, err)
	}
	if o.Found == nil {
		o.Found = new(Found)
	}
	if o.Held && o.Rate <= 0 {
		return nil, fmt.Errorf("%s: a rate of %v cannot have been held", File, o.Rate)
	}
	for i := range o.Points {
		if rate := o.Points[i].Rate; rate <= 0 || math.IsInf(rate, 0) {
			return nil, fmt.Errorf("%s: point %d has a rate of %v", File, i+1, rate)
		}
	}
	return &o, nil
}

// Kind is the kind of a search's outcome.
type Kind string

// The kinds of outcomes.
const (
	Maximum   Kind = "maximum"    // Rate is the highest sustainable rate
	AtLeast   Kind = "at least"   // Rate was held, but it is only a lower bound; see [Found.AtLeast]
	Undecided Kind = "undecided"  // perfmq was the limit, and no rate was held
	Nothing   Kind = "nothing"    // even the lowest rate failed
	NotSteady Kind = "not steady" // no rate was held
	Open      Kind = "open"       // the search is running, or ended early
)

// Kind returns the kind of the outcome.
func (f *Found) Kind() Kind {
	switch {
	case f.Held && f.AtLeast():
		return AtLeast
	case f.Held:
		return Maximum
	case !f.Complete:
		return Open
	case f.Failed.Tester:
		return Undecided
	case f.Rate == 0:
		return Nothing
	default:
		return NotSteady
	}
}

// Words returns the outcome in words, and the reason why the rate is not higher; empty if unknown.
func (f *Found) Words() (text, why string) {
	failed := "at " + PerSecond(f.Above) + " msg/s: " + f.Failed.Why
	switch f.Kind() {
	case Maximum:
		return "maximum: " + PerSecond(f.Rate) + " msg/s", failed
	case AtLeast:
		text = "at least " + PerSecond(f.Rate) + " msg/s"
		if f.Above == 0 {
			return text, "that is as far as the search goes"
		}
		return text, "at " + PerSecond(f.Above) + " msg/s the limit was " + f.Failed.Limit
	case Undecided:
		return "undecided: perfmq was the limit of " + strconv.Itoa(f.Bounded()) + " of " + strconv.Itoa(len(f.Points)) +
			" loads, and no rate was held", "at " + PerSecond(f.Above) + " msg/s the limit was " + f.Failed.Limit
	case Nothing:
		return "not even " + PerSecond(f.Above) + " msg/s passes the thresholds", f.Failed.Why
	case NotSteady:
		return "no rate was held: the broker, or the machine, is not steady; the last that was tried is " +
			PerSecond(f.Failed.Rate) + " msg/s", f.Failed.Why
	}
	if f.Rate > 0 {
		return "the search has not come to its end; " + PerSecond(f.Rate) + " msg/s had passed", ""
	}
	return "the search has not come to its end; no rate had passed", ""
}

// Bounded is the number of loads that failed with perfmq, or its machine, as the limit.
func (f *Found) Bounded() (n int) {
	for i := range f.Points {
		if f.Points[i].Tester {
			n++
		}
	}
	return n
}

// String returns the outcome with the reason why the rate is not higher.
func (f *Found) String() string {
	text, why := f.Words()
	switch {
	case why == "":
		return text
	case f.Kind() == Maximum:
		return text + "; " + why
	default:
		return text + ": " + why
	}
}

// PerSecond formats a rate with commas between the thousands.
func PerSecond(rate float64) string {
	text := strconv.FormatFloat(rate, 'f', -1, 64)
	whole, rest, _ := strings.Cut(text, ".")
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if rest != "" {
		whole += "." + rest
	}
	return whole
}
