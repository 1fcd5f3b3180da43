package report

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/perfmq/perfmq/internal/inputfile"
	"github.com/perfmq/perfmq/pkg/driver"
)

// recordFile is a file that is complete after each record: its tail is written with every record, in the same write,
// and the next record overwrites it. A record that does not fit (disk full) is removed again. Outputs that cannot seek,
// such as pipes, get the tail when they are closed.
type recordFile struct {
	what   string    // for errors: "JSON file /tmp/a.json"
	stream io.Writer // the output, if there is no file
	file   interface {
		io.Writer
		io.WriterAt
		io.Closer
		Truncate(size int64) error
		SetWriteDeadline(t time.Time) error
	}
	seek   bool
	offset int64 // where the next record goes
	tail   string
	held   string // the head, until the first record; only without seek
	begun  bool   // it has a record
	failed bool
}

// writeTimeout bounds a write into a pipe without an active reader.
const writeTimeout = 5 * time.Second

// Modes of new files. An existing file keeps its mode.
const (
	forOwner fs.FileMode = 0o600 // remarks of a broker may be confidential
	forAll   fs.FileMode = 0o666 // less the process's umask

	forFolders fs.FileMode = 0o777 // likewise
)

// createFile creates the file, or empties an existing one.
func createFile(kind, path, tail string, mode fs.FileMode) (*recordFile, error) {
	what := kind + " file " + path
	if err := os.MkdirAll(filepath.Dir(path), forFolders); err != nil {
		return nil, fileError("create", what, false, err)
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, mode) //nolint:gosec // the user named it
	if err != nil {
		return nil, fileError("create", what, false, err)
	}
	info, err := file.Stat()
	if err != nil {
		_ = file.Close()
		return nil, fileError("create", what, false, err)
	}
	return &recordFile{what: what, file: file, seek: info.Mode().IsRegular(), tail: tail}, nil
}

// begin writes the head. A pipe gets the head with the first record: it may have no reader yet, and the run must not
// wait for one.
func (f *recordFile) begin(head string) error {
	if !f.seek {
		f.held = head
		return nil
	}
	if _, err := f.file.WriteAt([]byte(head+f.tail), 0); err != nil {
		f.failed = true
		return fileError("write", f.what, false, errors.Join(inputfile.Bare(err), f.file.Truncate(0)))
	}
	f.offset = int64(len(head))
	return nil
}

// append adds a record. After an error it adds nothing more; a file that can seek then has the state before the record.
func (f *recordFile) append(record string) error {
	if f.failed {
		return nil
	}
	return f.add(record)
}

// last adds the last record: in a file that can seek, after an error, too.
func (f *recordFile) last(record string) error {
	if f.failed && !f.seek {
		return nil
	}
	f.failed = false
	return f.add(record)
}

// add writes a record.
func (f *recordFile) add(record string) error {
	var err error
	if f.seek {
		_, err = f.file.WriteAt([]byte(record+f.tail), f.offset)
	} else {
		err = f.writeOn(f.held + record)
		f.held = ""
	}
	if err != nil {
		f.failed = true
		if f.seek {
			// The tail's place is still allocated, so this works on a full disk.
			_, tailErr := f.file.WriteAt([]byte(f.tail), f.offset)
			err = errors.Join(inputfile.Bare(err), tailErr, f.file.Truncate(f.offset+int64(len(f.tail))))
		}
		return fileError("write", f.what, f.begun, err)
	}
	f.offset += int64(len(record))
	f.begun = true
	return nil
}

// writeOn writes into an output that cannot seek.
func (f *recordFile) writeOn(text string) error {
	to := f.stream
	if f.file != nil {
		_ = f.file.SetWriteDeadline(time.Now().Add(writeTimeout)) // devices have no deadline, but do not block
		to = f.file
	}
	_, err := io.WriteString(to, text)
	return err
}

// close closes the file. An output that cannot seek gets its tail now.
func (f *recordFile) close() error {
	var err error
	if !f.seek && !f.failed {
		err = f.writeOn(f.held + f.tail)
	}
	if err = inputfile.Bare(err); f.file != nil {
		err = errors.Join(err, inputfile.Bare(f.file.Close()))
	}
	if err != nil {
		return fileError("close", f.what, true, err)
	}
	return nil
}

// fileError returns an error with the file, the action, the system's error and a hint. begun reports whether the file
// has records.
func fileError(action, what string, begun bool, err error) error {
	return driver.Errorf(driver.ClassOther, action+" "+what, writeHint(begun, err), "%w", inputfile.Bare(err))
}

// writeHint returns a remedy for an error of an output. begun reports whether something was written
// before.
func writeHint(begun bool, err error) string {
	const kept = "earlier output is complete, and the run was not affected"
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return "its reader must keep up; the run and other outputs were not affected"
	case errors.Is(err, os.ErrPermission), errors.Is(err, syscall.EROFS):
		return "choose a place where you may write"
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		return "raise the limit of open files: ulimit -n"
	case begun && errors.Is(err, syscall.ENOSPC): // as are other outputs there, soon
		return kept + "; make room on that disk"
	case begun:
		return kept
	case errors.Is(err, syscall.ENOSPC):
		return "make room there, or choose another place"
	default:
		return "choose another place"
	}
}
