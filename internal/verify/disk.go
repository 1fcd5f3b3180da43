package verify

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/perfmq/perfmq/internal/inputfile"
	"github.com/perfmq/perfmq/pkg/driver"
)

// Room is space that is kept on a disk for a verification file, so that a run that fills the disk can still write it.
type Room struct {
	part *os.File // beside the file; nil for a device or a pipe, which needs none
}

// Reserve keeps size bytes beside path. Free gives them back.
func Reserve(path string, size int64) (_ *Room, err error) {
	defer func() {
		if err != nil {
			err = driver.Errorf(driver.ClassOther, "keep room for the verification file "+path,
				"make room there, or choose another place", "%w", bare(err))
		}
	}()
	part, err := newPart(path)
	if part == nil || err != nil {
		return &Room{}, err
	}
	r := &Room{part: part}
	if _, err := part.Write(make([]byte, size)); err != nil {
		r.Free()
		return nil, err
	}
	return r, nil
}

// newPart makes a file that becomes the one at path; nil for a device or a pipe.
func newPart(path string) (*os.File, error) {
	target, _, special := resolve(path)
	if special {
		return nil, nil //nolint:nilnil // nothing to keep is an answer
	}
	return os.CreateTemp(filepath.Dir(target), "."+filepath.Base(target)+".*.part")
}

// Free removes what is kept, if Write did not use it.
func (r *Room) Free() {
	if r != nil && r.part != nil {
		_ = r.part.Close()           // it holds nothing
		_ = os.Remove(r.part.Name()) // the same
		r.part = nil
	}
}

// Write writes a side to a file, into the room that was kept, as [WriteFile] does. Path is as in [Reserve], or in the
// same folder.
func (r *Room) Write(path string, side *Side) (err error) {
	data, err := Encode(side)
	if err != nil {
		return fmt.Errorf("encode the verification file: %w", err)
	}
	defer r.Free()
	defer func() {
		if err != nil {
			err = driver.Errorf(driver.ClassOther, "write the verification file "+path,
				"the summary is complete, but perfmq verify will not know this side of the run", "%w", bare(err))
		}
	}()
	target, mode, special := resolve(path)
	if special {
		return writeInto(target, data)
	}
	if r.part == nil || filepath.Dir(r.part.Name()) != filepath.Dir(target) {
		r.Free()
		if r.part, err = newPart(path); err != nil {
			return err
		}
	}
	if _, err = r.part.WriteAt(data, 0); err != nil {
		return err
	}
	err = errors.Join(r.part.Truncate(int64(len(data))), r.part.Sync(), r.part.Chmod(mode), r.part.Close())
	if err != nil {
		return err
	}
	if err = os.Rename(r.part.Name(), target); err == nil {
		r.part = nil
	}
	return err
}

// WriteFile writes a side to a file, which appears complete or not at all. It follows a symbolic link, and the link
// stays. A file that is there keeps its mode; a new one is for its owner alone, since names may be confidential. A
// device or a pipe is written to: it must not be replaced by a file.
func WriteFile(path string, side *Side) error {
	var r Room
	return r.Write(path, side)
}

// bare removes the operation and path that [fs.PathError] adds: the error names the file that the user knows.
func bare(err error) error {
	var pathError *fs.PathError
	if errors.As(err, &pathError) {
		return pathError.Err
	}
	return err
}

// resolve follows links, and returns the mode that a file there is to have. special tells whether there is something
// that is no regular file.
func resolve(path string) (target string, mode fs.FileMode, special bool) {
	mode = 0o600
	info, err := os.Stat(path)
	if err != nil {
		return path, mode, false // nothing yet
	}
	if !info.Mode().IsRegular() {
		return path, mode, true // the system follows the link, also where its target has no name, as that of /dev/stdout
	}
	mode = info.Mode().Perm()
	if target, err = filepath.EvalSymlinks(path); err != nil {
		return path, mode, false
	}
	return target, mode, false
}

// Probe finds out whether WriteFile could write to path, and leaves nothing behind.
func Probe(path string) error {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		if info.Mode()&fs.ModeNamedPipe != 0 {
			return nil // its reader would take our leaving for the end
		}
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		return f.Close()
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".perfmq-*")
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// writeInto writes to an existing file.
func writeInto(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}

// maxFile is the size of the largest file, in bytes: numbers of some billions of messages, of which every other one
// was lost.
const maxFile = 1 << 30

// ReadFile reads a side from a file. The error is a [*FileError].
func ReadFile(path string) (*Side, error) {
	data, err := inputfile.Read(path, maxFile)
	if err != nil {
		fe := &FileError{Path: path, Reason: err.Error(), Hint: "check the path"}
		var known *inputfile.Error
		switch {
		case !errors.As(err, &known):
		case known.Err != nil:
			fe.Reason, fe.Err = "cannot be read", known.Err
		default:
			fe.Reason, fe.Hint = known.Reason, known.Hint
		}
		return nil, fe
	}
	side, err := Decode(data)
	if err != nil {
		var fe *FileError
		if !errors.As(err, &fe) {
			fe = &FileError{
				Reason: "is not a valid verification file", Hint: "write it anew: its process or disk is at fault",
				Err: err,
			}
		}
		fe.Path = path
		return nil, fe
	}
	return side, nil
}
