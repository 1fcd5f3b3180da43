package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/perfmq/perfmq/internal/plan"
)

// notFolders refuses files in place of folders of results.
func notFolders(paths []string) (errs []error) {
	for _, path := range paths {
		if info, err := os.Stat(path); err == nil && !info.IsDir() {
			errs = append(errs, &plan.Mistake{
				Text: path + " is a file: a result is a folder",
				Hint: "name the folder of --result DIR, such as " + filepath.Dir(path),
			})
		}
	}
	return errs
}

// replaceFile writes a file beside path and gives it that name: a full disk leaves the old contents as they were. A new
// file gets the mode; an old one keeps its own. What is no regular file (a device, a link) is written to.
func replaceFile(path string, text []byte, mode fs.FileMode) error {
	switch old, err := os.Lstat(path); {
	case err == nil && !old.Mode().IsRegular():
		return os.WriteFile(path, text, mode) //nolint:gosec // the user names the file
	case err == nil:
		mode = old.Mode().Perm()
		if f, err := os.OpenFile(path, os.O_WRONLY, 0); err != nil { //nolint:gosec // likewise
			return err // a file that is not to be written is not to be replaced either
		} else if err := f.Close(); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil { //nolint:gosec // as far as the process' mask lets it
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return os.WriteFile(path, text, mode) //nolint:gosec // a folder in which only this file may be written
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return bare(err)
	}
	return nil
}

// bare returns "PATH: reason" without the name of the system call.
func bare(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return fmt.Errorf("%s: %w", pe.Path, pe.Err)
	}
	return err
}
