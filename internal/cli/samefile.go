package cli

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// namedFile is a file that the command line names, or an open one.
type namedFile struct {
	flag   string // as in messages
	path   string // empty if it has no name
	output bool
	info   fs.FileInfo // nil if there is no such file yet
	folder fs.FileInfo // folder of a file that does not exist yet
	base   string      // its name in that folder
}

// nameFile returns the file at a path. It follows links, even to files that do not exist yet.
func nameFile(flag, path string, output bool) namedFile {
	f := namedFile{flag: flag, path: path, output: output}
	const most = 40 // links, the limit of Linux
	for range most {
		if info, err := os.Stat(path); err == nil {
			f.info = info
			return f
		}
		target, err := os.Readlink(path)
		if err != nil {
			break
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(path), target)
		}
		path = target
	}
	if info, err := os.Stat(filepath.Dir(path)); err == nil {
		f.folder, f.base = info, filepath.Base(path)
	}
	return f
}

// openFile returns the file behind standard output or standard error, which another output may name, too.
func openFile(flag string, w io.Writer) namedFile {
	f := namedFile{flag: flag, output: true}
	if s, ok := w.(interface{ Stat() (fs.FileInfo, error) }); ok {
		if info, err := s.Stat(); err == nil {
			f.info = info
		}
	}
	return f
}

// same reports whether both are one regular file, existing or not. Devices such as /dev/null and pipes may have several
// writers.
func (f *namedFile) same(o *namedFile) bool {
	switch {
	case f.info != nil && o.info != nil:
		return f.info.Mode().IsRegular() && os.SameFile(f.info, o.info)
	case f.info != nil || o.info != nil:
		return false
	default:
		return f.folder != nil && o.folder != nil && os.SameFile(f.folder, o.folder) && f.base == o.base
	}
}

// sameFiles calls found for each output that is the same file as another output, or as an input.
func sameFiles(files []namedFile, found func(a, b *namedFile)) {
	for i := range files {
		for j := range files[:i] {
			a, b := &files[j], &files[i]
			if (a.output || b.output) && a.same(b) {
				found(a, b)
			}
		}
	}
}
