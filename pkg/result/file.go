package result

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// file is a file that grows at its end and is whole after each call: a write that fails is taken back.
type file struct {
	path   string
	handle handle
	offset int64 // where the next bytes go
}

// handle has the methods of [os.File] that a file needs.
type handle interface {
	io.WriterAt
	io.Closer
	Truncate(size int64) error
}

// create makes a file that does not exist. Only its owner can read it: texts from a broker may tell more than others
// should know.
func create(path string) (*file, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600) //nolint:gosec // in the folder that the user named
	if err != nil {
		return nil, fmt.Errorf("create %s: %w", path, bare(err))
	}
	return &file{path: path, handle: f}, nil
}

// append writes at the end.
func (f *file) append(text []byte) error { return f.replace(f.offset, text) }

// replace writes text in the place of all that is behind from.
func (f *file) replace(from int64, text []byte) error {
	end := from + int64(len(text))
	_, err := f.handle.WriteAt(text, from)
	if err != nil {
		return fmt.Errorf("write %s: %w", f.path, errors.Join(bare(err), f.truncate(f.offset)))
	}
	if end < f.offset {
		err = f.handle.Truncate(end)
	}
	if f.offset = end; err != nil {
		return fmt.Errorf("write %s: %w", f.path, bare(err))
	}
	return nil
}

// truncate takes back the bytes behind size.
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

// bare removes the operation and path that [fs.PathError] adds, since our errors name them.
func bare(err error) error {
	var pathError *fs.PathError
	if errors.As(err, &pathError) {
		return pathError.Err
	}
	return err
}
