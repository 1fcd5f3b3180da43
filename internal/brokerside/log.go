package brokerside

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
	"unicode"
)

// The bounds for reading a log.
const (
	maxLogRead  = 16 << 20 // bytes at a time: the rest of a log that grows faster waits
	maxLogLine  = 4 << 10  // bytes of a line that are kept; its level is in the first levelWithin
	levelWithin = 256
)

// follower reads the lines that are added to a log.
type follower struct {
	path   string
	file   *os.File
	at     int64  // where to read on
	rest   []byte // of a line that has no end yet
	buffer []byte

	counts [2]uint64 // of the lines of errors, and of warnings
	first  [2]string // of these lines
}

// Levels of lines, and others.
const (
	levelError = iota
	levelWarning
	levelOther
)

// follow opens a log at its end.
func follow(path string) (*follower, error) {
	f := &follower{path: path, buffer: make([]byte, 64<<10)}
	info, err := os.Stat(path) // first: opening a pipe would wait for its writer
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: path, Err: errors.New("is not a regular file")}
	}
	if err != nil {
		return nil, err
	}
	if f.file, err = os.Open(path); err != nil { //nolint:gosec // the user named it
		return nil, err
	}
	f.at, err = f.file.Seek(0, io.SeekEnd)
	return f, err
}

// look reads the lines that were added. A log that was truncated is read from its beginning. So is a new log of its
// name, after the end of the old one.
func (f *follower) look() error {
	err := f.read()
	there, gone := os.Stat(f.path)
	if gone != nil || !there.Mode().IsRegular() {
		return err
	}
	if own, failed := f.file.Stat(); failed != nil || os.SameFile(own, there) {
		return err
	}
	file, failed := os.Open(f.path)
	if failed != nil {
		return err
	}
	_ = f.file.Close() // it was only read
	f.file, f.at, f.rest = file, 0, nil
	return errors.Join(err, f.read())
}

func (f *follower) read() error {
	if info, err := f.file.Stat(); err == nil && info.Size() < f.at {
		f.at, f.rest = 0, nil
	}
	for read := 0; read < maxLogRead; {
		n, err := f.file.ReadAt(f.buffer, f.at)
		f.at += int64(n)
		read += n
		f.add(f.buffer[:n])
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// add counts the lines in a part of the log. Of a line it keeps the beginning.
func (f *follower) add(text []byte) {
	for len(text) > 0 {
		part, after, ended := bytes.Cut(text, []byte{'\n'})
		f.rest = append(f.rest, part[:min(len(part), maxLogLine-len(f.rest))]...)
		if ended {
			f.line(string(f.rest))
			f.rest = f.rest[:0]
		}
		text = after
	}
}

func (f *follower) line(line string) {
	level := levelOf(line)
	if level == levelOther {
		return
	}
	if f.counts[level]++; f.counts[level] == 1 {
		f.first[level] = line
	}
}

// levelOf returns the level of a line: the first word near its beginning that is one, in capitals, as Log4j, Logback
// and java.util.logging write it, or in brackets, as RabbitMQ does.
func levelOf(line string) int {
	line = line[:min(len(line), levelWithin)]
	separates := func(r rune) bool {
		return r != '_' && (r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r))
	}
	for _, word := range strings.FieldsFunc(line, separates) {
		if strings.Contains(line, "["+word+"]") {
			word = strings.ToUpper(word)
		}
		switch word {
		case "ERROR", "FATAL", "SEVERE", "CRITICAL", "ALERT", "EMERGENCY":
			return levelError
		case "WARN", "WARNING":
			return levelWarning
		case "INFO", "DEBUG", "TRACE", "NOTICE", "FINE", "CONFIG":
			return levelOther
		}
	}
	return levelOther
}
