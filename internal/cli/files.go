package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/perfmq/perfmq/internal/inputfile"
	"github.com/perfmq/perfmq/internal/plan"
)

// notFolders refuses files in place of folders of results.
func notFolders(paths []string) (errs []error) {
	for _, path := range paths {
		if info, err := os.Stat(path); err == nil && !info.IsDir() {
			errs = append(errs, plan.Wrong("name the folder of --result DIR, such as "+filepath.Dir(path),
				"%s is a file: a result is a folder", path))
		}
	}
	return errs
}

// replaceFile writes a file as [inputfile.Replace] does, and makes its folder.
func replaceFile(path string, text []byte, mode fs.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil { //nolint:gosec // as far as the process' mask lets it
		return bare(err)
	}
	return bare(inputfile.Replace(path, text, mode))
}

// bare returns "PATH: reason" without the name of the system call.
func bare(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return fmt.Errorf("%s: %w", pe.Path, pe.Err)
	}
	return err
}
