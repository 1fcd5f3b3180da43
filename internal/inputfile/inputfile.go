// Package inputfile reads the files that a user names: passwords, certificates, bodies, results. It reads regular
// files and pipes, such as a shell's <(command), and never more than a limit: a device that never ends, or a file of
// many gigabytes that was named by mistake, is an error. Reading a pipe without a writer waits for one; the caller
// ensures that an interrupt ends the process all the same. [Replace] writes a file as a whole.
package inputfile

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Error is a file that cannot be used.
type Error struct {
	Path   string
	Reason string // "is a folder"
	Hint   string
	Err    error // of the system; may be nil
}

// Error returns the path and the reason.
func (e *Error) Error() string {
	if e.Err != nil {
		return e.Path + ": " + e.Err.Error()
	}
	return e.Path + ": " + e.Reason
}

// Unwrap returns the cause, if the system has told one.
func (e *Error) Unwrap() error { return e.Err }

// Read returns the contents of a file of at most limit bytes. The error is an [*Error].
func Read(path string, limit int64) ([]byte, error) {
	f, err := open(path, limit)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	content, err := io.ReadAll(io.LimitReader(f, limit+1))
	switch {
	case err != nil:
		return nil, systemError(path, err)
	case int64(len(content)) > limit:
		return nil, tooLong(path, "has", limit)
	}
	return content, nil
}

// Folder returns the paths of the files in a folder by name, from 1 to most of them. It leaves out folders in it and
// hidden files (.NAME). The error is an [*Error].
func Folder(path string, most int) (files []string, err error) {
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, systemError(path, err)
	}
	for _, entry := range entries {
		file := filepath.Join(path, entry.Name())
		if strings.HasPrefix(entry.Name(), ".") || IsFolder(file) {
			continue
		}
		if files = append(files, file); len(files) > most {
			return nil, &Error{
				Path: path, Reason: fmt.Sprintf("has more than %d files", most), Hint: "is it the right folder?",
			}
		}
	}
	if len(files) == 0 {
		return nil, &Error{
			Path: path, Reason: "has no files",
			Hint: "hidden files and folders are left out",
		}
	}
	return files, nil
}

// IsFolder reports whether a path names a folder.
func IsFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// FirstLine returns the first line of a file, without its end, of at most limit bytes. It reads no further, so that
// it does not wait for the end of a pipe. The error is an [*Error].
func FirstLine(path string, limit int64) (string, error) {
	f, err := open(path, 0)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }() // it was only read
	line, err := bufio.NewReader(io.LimitReader(f, limit+int64(len("\r\n")))).ReadString('\n')
	first := strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")
	switch {
	case int64(len(first)) > limit:
		return "", tooLong(path, "the first line has", limit)
	case err != nil && !errors.Is(err, io.EOF):
		return "", systemError(path, err)
	}
	return first, nil
}

// open opens a file that can be read and, unless limit is 0, has at most limit bytes as far as the system knows.
func open(path string, limit int64) (*os.File, error) {
	info, err := os.Stat(path) // first: opening a device may do something
	if err != nil {
		return nil, systemError(path, err)
	}
	if err := check(path, info, limit); err != nil {
		return nil, err
	}
	f, err := os.Open(path) //nolint:gosec // the user named it
	if err != nil {
		return nil, systemError(path, err)
	}
	return f, nil
}

func check(path string, info fs.FileInfo, limit int64) error {
	const hint = "name a file, or a pipe such as <(command)"
	switch mode := info.Mode(); {
	case mode.IsDir():
		return &Error{Path: path, Reason: "is a folder", Hint: hint}
	case !mode.IsRegular() && mode&fs.ModeNamedPipe == 0:
		return &Error{Path: path, Reason: "is a device or socket, not a file", Hint: hint}
	case limit > 0 && info.Size() > limit:
		return tooLong(path, "has", limit)
	}
	return nil
}

func tooLong(path, what string, limit int64) *Error {
	return &Error{Path: path, Reason: fmt.Sprintf("%s more than %d bytes", what, limit), Hint: "is it the right file?"}
}

func systemError(path string, err error) *Error {
	return &Error{Path: path, Hint: "check the path", Err: Bare(err)}
}

// Bare leaves out the operation and path of a [fs.PathError], for callers that name both.
func Bare(err error) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err
	}
	return err
}

// Replace writes a file beside path, or beside the file that it links to, and gives it that name: a full disk leaves
// the old contents as they were. A new file gets the mode; an old one keeps its own. Replace writes to a path that is
// no regular file (a device, a link to nothing), and to one under /dev or /proc: /dev/stdout may be a file.
func Replace(path string, text []byte, mode fs.FileMode) error {
	target, err := filepath.EvalSymlinks(path)
	if err == nil && !ofSystem(path) {
		path = target
	}
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
	name := filepath.Base(path)
	f, err := os.CreateTemp(filepath.Dir(path), "."+name[:min(len(name), 200)]+".*") // names have 255 bytes at most
	if onlyOld(err) {
		return os.WriteFile(path, text, mode) //nolint:gosec // the user names the file
	}
	if err != nil {
		return &fs.PathError{Op: "write", Path: path, Err: Bare(err)}
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}

// onlyOld tells by the error of a new file whether the folder may hold a file that can be written all the same: a
// container with a read-only root may have a single file mounted.
func onlyOld(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS)
}

// ofSystem reports whether a path is of the system: the targets of its links must not be replaced.
func ofSystem(path string) bool {
	return strings.HasPrefix(path, "/dev/") || strings.HasPrefix(path, "/proc/")
}
