package plan

import (
	"errors"
	"fmt"
	"strings"

	"github.com/perfmq/perfmq/pkg/driver"
)

// Mistake is something that a plan cannot be carried out with.
type Mistake struct {
	Text string // the mistake
	Hint string // the remedy
	// Setting is the name of the setting that is wrong; empty if it is not known.
	Setting string
	// Threshold is the threshold with the mistake, and Step its step; empty if the mistake is elsewhere.
	Threshold, Step string
}

// Error returns the text without the hint.
func (m *Mistake) Error() string { return m.Text }

// Wrong returns a mistake.
func Wrong(hint, format string, args ...any) *Mistake {
	return &Mistake{Text: fmt.Sprintf(format, args...), Hint: hint}
}

// Needs is the mistake of a setting that is given without another one.
func Needs(setting, other string) *Mistake { return Wrong("add "+other, "%s needs %s", setting, other) }

// Excludes is the mistake of two settings that exclude each other.
func Excludes(first, second string) *Mistake {
	return Wrong("leave one of them out", "%s does not work with %s", first, second)
}

// TooMany is the mistake of more than there may be.
func TooMany(what string, n, most int) *Mistake {
	return Wrong("", "there are %d %s, more than %d", n, what, most)
}

const hintDestination = "write queue://NAME, topic://NAME or ADDRESS::QUEUE, quoted if it has blanks"

// maxDestinations is far beyond what one process can drive and protects against a mistyped number.
const maxDestinations = 100_000

// Destinations reads the names that the user gave and, if n is above 1, replaces each by n destinations with 0 to n-1
// appended, as `artemis perf --num-destinations` does. All mistakes are reported at once, joined; the valid
// destinations are returned even then.
func Destinations(names []string, n int) ([]driver.Destination, error) {
	if n > maxDestinations/max(1, len(names)) {
		return nil, TooMany("destinations", n*len(names), maxDestinations)
	}
	var errs []error
	seen := map[string]bool{}
	list := make([]driver.Destination, 0, n*len(names))
	for _, name := range names {
		d, err := parseDestination(name, n)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		for i := range n {
			final := d
			if n > 1 {
				final.Name = fmt.Sprintf("%s%d", d.Name, i)
			}
			if seen[final.String()] {
				errs = append(errs, Wrong("--producers and --consumers set how many work on each",
					"destination %s is given twice", final))
				continue
			}
			seen[final.String()] = true
			list = append(list, final)
		}
	}
	return list, errors.Join(errs...)
}

func parseDestination(written string, n int) (driver.Destination, error) {
	d, err := driver.ParseDestination(written)
	address, queue, qualified := strings.Cut(d.Name, "::")
	switch {
	case err != nil:
		return d, Wrong(hintDestination, "%v", err)
	case strings.Contains(d.Name, "://"), d.Name != strings.TrimSpace(d.Name),
		qualified && (address == "" || queue == ""),
		written == d.Name && strings.Contains(written, " "): // or several names in one argument
		return d, Wrong(hintDestination, "destination %q is not one name", written)
	case qualified && n > 1:
		return d, Excludes("--num-destinations", d.Name)
	default:
		return d, nil
	}
}
