package stomp

import (
	"bytes"
	"fmt"

	wire "github.com/perfmq/perfmq/internal/wire/stomp"
)

// other reads a frame of another kind. Of its body the first maxWordsRead bytes are kept.
func (s *scanner) other() (*wire.Frame, error) {
	command, err := s.line(maxCommand)
	if err != nil {
		return nil, err
	}
	f := wire.NewFrame(string(command))
	if f.Command != wire.CONNECTED && f.Command != wire.ERROR {
		return nil, fmt.Errorf("%w: the broker sent one of type %.40q", errNotSTOMP, command)
	}
	length, total := int64(-1), 0
	for {
		key, value, err := s.headerLine(&total)
		if err != nil {
			return nil, err
		}
		if key == nil {
			break
		}
		if string(key) == "content-length" {
			if err := s.contentLength(kindOther, value, &length); err != nil {
				return nil, err
			}
		}
		if f.Command == wire.CONNECTED { // which has no escapes (STOMP 1.2, "Value Encoding")
			f.Add(string(key), string(value))
		} else {
			f.Add(unescape(string(key)), unescape(string(value)))
		}
	}
	f.Body, err = s.words(length)
	return f, err
}

// words reads the body of a frame that is no message, and keeps its beginning.
func (s *scanner) words(length int64) (kept []byte, err error) {
	for read := int64(0); read != length; {
		if err := s.fill(1); err != nil {
			return nil, err
		}
		size, ended := len(s.view), false
		if length >= 0 {
			size = int(min(int64(size), length-read))
		} else if at := bytes.IndexByte(s.view, 0); at >= 0 {
			size, ended = at, true
		}
		part := s.take(size)
		kept = append(kept, part[:min(size, maxWordsRead-len(kept))]...)
		switch read += int64(size); {
		case ended:
			s.take(1)
			return kept, nil
		case read > int64(s.maxBody):
			return nil, s.errBody(kindOther, -1)
		}
	}
	return kept, s.end(length)
}
