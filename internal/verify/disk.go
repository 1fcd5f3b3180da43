package verify

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// WriteFile writes a side to a file, which appears complete or not at all. What a link points to is written, and the link
// stays. A device or a pipe is written to: it must not be replaced by a file.
func WriteFile(path string, side *Side) (err error) {
	data, err := Encode(side)
	if err != nil {
		return fmt.Errorf("encode the verification file: %w", err)
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("write the verification file %s: %w", path, err)
		}
	}()
	target, special := resolve(path)
	if special {
		return writeInto(target, data)
	}
	f, err := os.CreateTemp(filepath.Dir(target), filepath.Base(target)+".*.part")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	if _, err = f.Write(data); err != nil {
		return errors.Join(err, f.Close())
	}
	if err = errors.Join(f.Sync(), f.Chmod(0o644), f.Close()); err != nil { //nolint:gosec // a result, for all to read
		return err
	}
	return os.Rename(f.Name(), target)
}

// resolve follows links, and tells whether there is something that is no regular file.
func resolve(path string) (target string, special bool) {
	info, err := os.Stat(path)
	if err != nil {
		return path, false // nothing yet
	}
	if !info.Mode().IsRegular() {
		return path, true // the system follows the link, also where its target has no name, as that of /dev/stdout
	}
	if target, err = filepath.EvalSymlinks(path); err != nil {
		return path, false
	}
	return target, false
}

// Probe finds out whether WriteFile could write to path, and leaves nothing behind.
func Probe(path string) error {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
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

// writeInto writes to what is there.
func writeInto(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}

// ReadFile reads a side from a file. The error is a [*FileError].
func ReadFile(path string) (*Side, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		var pe *os.PathError
		if errors.As(err, &pe) {
			err = pe.Err
		}
		return nil, &FileError{Path: path, Reason: "cannot be read", Hint: "check the path", Err: err}
	}
	side, err := Decode(data)
	if err != nil {
		var fe *FileError
		if !errors.As(err, &fe) {
			fe = &FileError{Reason: "is not a valid verification file", Hint: "write it anew: its process or disk is at fault", Err: err}
		}
		fe.Path = path
		return nil, fe
	}
	return side, nil
}
