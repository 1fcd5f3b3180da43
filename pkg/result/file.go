package result

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// file is an append-only file that is whole after each call: a failed write is undone.
type file struct {
	path   string
	handle handle
	offset int64 // end of the file
}

// handle has the methods of [os.File] that a file needs.
type handle interface {
	io.WriterAt
	io.Closer
	Truncate(size int64) error
}

// create makes a file that must not exist. Only its owner can read it: texts from a broker may hold confidential data.
func create(path string) (*file, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600) //nolint:gosec // in the folder that the user named
	if err != nil {
		return nil, fmt.Errorf("create %s: %w", path, bare(err))
	}
	return &file{path: path, handle: f}, nil
}

// append writes at the end.
func (f *file) append(text []byte) error {
	if _, err := f.handle.WriteAt(text, f.offset); err != nil {
		return fmt.Errorf("write %s: %w", f.path, errors.Join(bare(err), f.truncate(f.offset)))
	}
	f.offset += int64(len(text))
	return nil
}

// truncate removes the bytes beyond size.
func (f *file) truncate(size int64) error {
	f.offset = size
	return bare(f.handle.Truncate(size))
}

func (f *file) close() error {
	if err := f.handle.Close(); err != nil {
		return fmt.Errorf("close %s: %w", f.path, bare(err))
	}
	return nil
}

// bare removes the operation and path that [fs.PathError] adds: our errors have both already.
func bare(err error) error {
	if pathError, ok := errors.AsType[*fs.PathError](err); ok {
		return pathError.Err
	}
	return err
}
