package setting

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/perfmq/perfmq/internal/nearest"
	"github.com/perfmq/perfmq/internal/quantity"
	"github.com/perfmq/perfmq/pkg/driver"
)

// PlainOption rewrites an assignment of -o whose value is a number, size or time as people write it, such as
// window=64KiB or queues=1k, to the form that [driver.SetOptions] reads. Any other text is returned as it is, and
// judged there.
func PlainOption(options any, assignment string) string {
	key, text, ok := strings.Cut(assignment, "=")
	if !ok {
		return assignment
	}
	for _, o := range driver.Describe(options) {
		if o.Name != key {
			continue
		}
		switch o.Value.(type) {
		case int, int64:
			if n, err := quantity.Bytes(text, math.MaxInt64); err == nil {
				text = strconv.FormatInt(n, 10)
			}
		case float64:
			if n, err := quantity.Number(text); err == nil {
				f, _ := n.Float64()
				text = strconv.FormatFloat(f, 'g', -1, 64)
			}
		case time.Duration:
			if d, err := quantity.Duration(text, 0); err == nil {
				text = d.String()
			}
		}
	}
	return key + "=" + text
}

// MeantOption returns a hint at the spelling that was probably meant by an assignment of -o that the protocol refuses;
// "" if there is none. It changes options, which are at their defaults.
func MeantOption(options any, assignment string) string {
	key, value, _ := strings.Cut(assignment, "=")
	meant := nearest.Spelling(value, func(text string) bool {
		return driver.SetOptions(options, []string{PlainOption(options, key+"="+text)}) == nil
	})
	for _, o := range driver.Describe(options) {
		if meant == "" && o.Name == key {
			meant = nearest.Nearest(value, o.Enum)
		}
	}
	if meant == "" {
		return ""
	}
	return "did you mean -o " + Quoted(key+"="+meant) + "?"
}

// OptionOf returns the names of the protocols that have an option.
func OptionOf(factories []driver.Factory, key string) (protocols []string) {
	for i := range factories {
		options := driver.Describe(NewOptions(&factories[i]))
		if slices.ContainsFunc(options, func(o driver.Option) bool { return o.Name == key }) {
			protocols = append(protocols, factories[i].Name)
		}
	}
	return protocols
}
