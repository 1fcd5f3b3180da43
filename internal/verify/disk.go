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

// WriteFile writes a side to a file, which appears complete or not at all. It follows a symbolic link, and the link
// stays. A file that is there keeps its mode; a new one is for its owner alone, since names may be confidential. A
// device or a pipe is written to: it must not be replaced by a file.
func WriteFile(path string, side *Side) error {
	data, err := Encode(side)
	if err != nil {
		return fmt.Errorf("encode the verification file: %w", err)
	}
	target, mode, special := resolve(path)
	if special {
		err = writeInto(target, data)
	} else {
		err = replace(target, mode, data)
	}
	if err != nil {
		return driver.Errorf(driver.ClassOther, "write the verification file "+path,
			"the summary is complete, but perfmq verify will not know this side of the run", "%w", bare(err))
	}
	return nil
}

// replace writes a file beside the target, and then gives it the target's name.
func replace(target string, mode fs.FileMode, data []byte) error {
	part, err := os.CreateTemp(filepath.Dir(target), "."+filepath.Base(target)+".*.part")
	if err != nil {
		return err
	}
	_, err = part.Write(data)
	if err = errors.Join(err, part.Sync(), part.Chmod(mode), part.Close()); err == nil {
		err = os.Rename(part.Name(), target)
	}
	if err != nil {
		_ = os.Remove(part.Name()) // it is not complete
	}
	return err
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

// ReadFile reads a side from a file. The error is an [*inputfile.Error].
func ReadFile(path string) (*Side, error) {
	data, err := inputfile.Read(path, maxFile)
	if err != nil {
		return nil, err
	}
	side, err := Decode(data)
	if err == nil {
		return side, nil
	}
	var known *inputfile.Error
	if !errors.As(err, &known) {
		known = &inputfile.Error{
			Reason: "is not a valid verification file: " + err.Error(),
			Hint:   "write it anew: its process or disk is at fault",
		}
	}
	known.Path = path
	return nil, known
}
