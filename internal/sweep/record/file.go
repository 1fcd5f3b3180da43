package record

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

func exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

// read reads a file of at most that many bytes.
func read(path string, most int64) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Size() > most {
		return nil, fmt.Errorf("%s is larger than %d bytes", path, most)
	}
	return os.ReadFile(path) //nolint:gosec // in the user's folder
}

// replace gives a file new contents. A reader meanwhile, or after a crash, finds the old contents or the new ones.
func replace(path string, text []byte) error {
	f, err := os.OpenFile(path+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600) //nolint:gosec // in the user's folder
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
