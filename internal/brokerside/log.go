package brokerside

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
)

// The bounds for reading a log.
const (
	maxLogRead  = 16 << 20 // bytes at a time: a log that grows faster is behind
	maxLogLine  = 4 << 10  // bytes of a line that are kept; its level stands in the first levelWithin
	levelWithin = 256
)

// follower reads the lines that are added to a log.
type follower struct {
	path   string
	file   *os.File
	at     int64  // where to read on
	rest   []byte // of a line that has no end yet
	cut    bool   // the line goes on beyond maxLogLine
	buffer []byte

	errors, warnings         uint64
	firstError, firstWarning string
}

// follow opens a log, whose lines so far are not looked at.
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

// look reads the lines that were added. A log that was cut off, or replaced by a new one of its name, is read from its
// beginning, the old one to its end before.
func (f *follower) look() error {
	err := f.read()
	if renewed := f.renew(); renewed != nil {
		return errors.Join(err, f.file.Close(), f.use(renewed))
	}
	return err
}

func (f *follower) use(file *os.File) error {
	f.file, f.at, f.rest, f.cut = file, 0, nil, false
	return f.read()
}

// renew returns the log if it is another file now; nil if it is not, or is not there.
func (f *follower) renew() *os.File {
	there, err := os.Stat(f.path)
	if err != nil || !there.Mode().IsRegular() {
		return nil
	}
	if own, err := f.file.Stat(); err != nil || os.SameFile(own, there) {
		return nil
	}
	file, err := os.Open(f.path)
	if err != nil {
		return nil
	}
	return file
}

func (f *follower) read() error {
	if info, err := f.file.Stat(); err == nil && info.Size() < f.at {
		f.at, f.rest, f.cut = 0, nil, false
	}
	for read := 0; read < maxLogRead; {
		n, err := f.file.ReadAt(f.buffer, f.at)
		f.at += int64(n)
		read += n
		f.take(f.buffer[:n])
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// take takes bytes of the log.
func (f *follower) take(text []byte) {
	for len(text) > 0 {
		end := bytes.IndexByte(text, '\n')
		part, over := text, end >= 0
		if over {
			part, text = text[:end], text[end+1:]
		} else {
			text = nil
		}
		if !f.cut {
			room := maxLogLine - len(f.rest)
			f.cut = len(part) > room
			f.rest = append(f.rest, part[:min(room, len(part))]...)
		}
		if over {
			f.line(string(f.rest))
			f.rest, f.cut = f.rest[:0], false
		}
	}
}

func (f *follower) line(line string) {
	switch levelOf(line) {
	case levelError:
		if f.errors++; f.firstError == "" {
			f.firstError = line
		}
	case levelWarning:
		if f.warnings++; f.firstWarning == "" {
			f.firstWarning = line
		}
	case levelOther:
	}
}

type level int

const (
	levelOther level = iota
	levelWarning
	levelError
)

// levelOf returns the level of a line: the first word near its beginning that is one. Words count in capitals, as
// Log4j, Logback and java.util.logging write them, or in brackets, as RabbitMQ does.
func levelOf(line string) level {
	line = line[:min(len(line), levelWithin)]
	for _, word := range strings.FieldsFunc(line, func(r rune) bool { return !isWord(r) }) {
		switch word {
		case "ERROR", "FATAL", "SEVERE", "CRITICAL":
			return levelError
		case "WARN", "WARNING":
			return levelWarning
		case "INFO", "DEBUG", "TRACE", "NOTICE", "FINE", "CONFIG":
			return levelOther
		case "error", "critical", "alert", "emergency":
			if strings.Contains(line, "["+word+"]") {
				return levelError
			}
		case "warning", "warn":
			if strings.Contains(line, "["+word+"]") {
				return levelWarning
			}
		case "info", "debug", "notice":
			if strings.Contains(line, "["+word+"]") {
				return levelOther
			}
		}
	}
	return levelOther
}

func isWord(r rune) bool {
	return r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
}

func (f *follower) close() { _ = f.file.Close() } // it was only read
