package setting

import (
	"math"
	"strconv"
	"strings"
	"time"

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
