package report

import (
	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/result"
)

// HDR writes a [result.HDRLog]: for each interval a line per latency that the run measures. Lines for b2c and s2c begin
// with the first message that has times of birth and storage. An interval without a value has its line too. Times
// follow the monotonic clock. An interval is in the file entirely or not at all. `artemis perf --hdr` writes the same
// without response, b2c and s2c, and with spaces in its tags, which log readers reject.
type HDR struct {
	file *recordFile
	log  result.HDRLog
}

// NewHDR creates the file, or empties an existing one.
func NewHDR(path string) (*HDR, error) {
	file, err := createFile("HDR", path, "", forAll)
	if err != nil {
		return nil, err
	}
	return &HDR{file: file}, nil
}

// Start writes the head of the log.
func (h *HDR) Start(run stats.Run) error { return h.write(h.file.begin)(h.log.Head(run.Start)) }

// Interval writes a line for each latency that is measured.
func (h *HDR) Interval(s *stats.Snapshot) error {
	return h.write(h.file.append)(h.log.Row(&s.Row))
}

// Summary writes nothing: the sum of the lines is the summary.
func (h *HDR) Summary(*stats.Summary) error { return nil }

// Close closes the file.
func (h *HDR) Close() error { return h.file.close() }

// write passes encoded text on as one record.
func (h *HDR) write(to func(string) error) func([]byte, error) error {
	return func(text []byte, err error) error {
		if err != nil {
			return driver.Errorf(driver.ClassOther, "fill the "+h.file.what, "", "%w", err)
		}
		return to(string(text))
	}
}
