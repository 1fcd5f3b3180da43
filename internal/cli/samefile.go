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
}

// nameFile returns the file at a path.
func nameFile(flag, path string, output bool) namedFile {
	info, _ := os.Stat(path) // nil after an error
	return namedFile{flag: flag, path: path, output: output, info: info}
}

// openFile returns the file behind standard output or standard error, which another output may name, too.
func openFile(flag string, w io.Writer) namedFile {
	f := namedFile{flag: flag, output: true}
	if s, ok := w.(interface{ Stat() (fs.FileInfo, error) }); ok {
		f.info, _ = s.Stat() // nil after an error
	}
	return f
}

// same reports whether both are one regular file, existing or not. Devices such as /dev/null and pipes may have several
// writers.
func (f *namedFile) same(o *namedFile) bool {
	if f.info != nil && o.info != nil {
		return f.info.Mode().IsRegular() && os.SameFile(f.info, o.info)
	}
	a, errA := filepath.Abs(f.path)
	b, errB := filepath.Abs(o.path)
	return f.info == nil && o.info == nil && f.path != "" && errA == nil && errB == nil && a == b
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
