package run

import (
	"fmt"

	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/pkg/result"
)

// foreignNotice is an output that says once, when the first message of another run or tool came, that they are not
// counted.
type foreignNotice struct {
	say  func(string)
	said bool
	seen uint64
}

// Start does nothing.
func (f *foreignNotice) Start(stats.Run) error { return nil }

// Interval looks at the messages of one second.
func (f *foreignNotice) Interval(s *stats.Snapshot) error {
	if f.seen += s.Delta[result.Foreign]; f.seen > 0 && !f.said {
		f.said = true
		f.say(fmt.Sprintf("warning: messages of another run or tool are taken from the destinations and not counted, %d so "+
			"far; "+
			"--fail-on-foreign makes them a failure", f.seen))
	}
	return nil
}

// Summary does nothing: it tells of them itself.
func (f *foreignNotice) Summary(*stats.Summary) error { return nil }

// Close does nothing.
func (f *foreignNotice) Close() error { return nil }
