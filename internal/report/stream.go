package report

import (
	"errors"
	"io"
	"time"
)

// NewJSONStream writes the array of [NewJSON] to w, such as standard output, and does not close it.
func NewJSONStream(name string, w io.Writer) *JSON {
	return &JSON{file: &recordFile{what: "JSON to " + name, file: stream{w}, tail: "\n]\n"}}
}

// stream is an output that supports only Write.
type stream struct{ io.Writer }

func (stream) WriteAt([]byte, int64) (int, error) { return 0, errors.ErrUnsupported }
func (stream) Truncate(int64) error               { return errors.ErrUnsupported }
func (stream) SetWriteDeadline(time.Time) error   { return nil }
func (stream) Close() error                       { return nil }
