package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/perfmq/perfmq/internal/inputfile"
	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/run"
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

// writeFile writes what a flag asks for into its file, as [inputfile.Replace] does, or to standard output. It makes the
// folder of the file.
func (a *app) writeFile(flag, path string, text []byte, mode fs.FileMode) error {
	if path == run.Standard {
		return a.write(text)
	}
	err := os.MkdirAll(filepath.Dir(path), 0o777) //nolint:gosec // as far as the process' mask lets it
	if err == nil {
		err = inputfile.Replace(path, text, mode)
	}
	if err != nil {
		return fileNotWritten(flag, err)
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
