package verify

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/perfmq/perfmq/internal/inputfile"
	"github.com/perfmq/perfmq/pkg/driver"
)

// WriteFile writes a side to a file, as [inputfile.Replace] does. A new file is for its owner alone, since names may be
// confidential.
func WriteFile(path string, side *Side) error {
	data, err := Encode(side)
	if err == nil {
		err = inputfile.Replace(path, data, 0o600)
	}
	if err != nil {
		return driver.Errorf(driver.ClassOther, "write the verification file "+path,
			"the summary is complete, but perfmq verify lacks this side", "%w", inputfile.Bare(err))
	}
	return nil
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

// maxFile is the size of the largest file, in bytes: the numbers of some billions of messages with every other one
// lost.
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
