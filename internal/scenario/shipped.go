package scenario

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/perfmq/perfmq/internal/nearest"
)

// Info is a scenario of a collection.
type Info struct {
	Name        string // the path without its ending: artemis/latency
	Path        string // in the file system
	Description string // the file's own, without variables replaced
}

// UnknownError says that no scenario of a collection has the name. Hint is a suggestion.
type UnknownError struct{ Name, Hint string }

// Error says so.
func (e *UnknownError) Error() string { return fmt.Sprintf("there is no shipped scenario @%s", e.Name) }

// Shipped lists the scenario files (*.yaml) of a file system, sorted by name. A file of broken YAML is an error of type
// [Mistakes].
func Shipped(fsys fs.FS) ([]Info, error) {
	var list []Info
	err := fs.WalkDir(fsys, ".", func(at string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || path.Ext(at) != ".yaml" {
			return err
		}
		text, err := readFile(fsys, at)
		if err != nil {
			return err
		}
		src, mistakes := newSource(at, text, newTable(nil))
		if len(mistakes) > 0 {
			return src.all(mistakes)
		}
		root, mistakes := readTree(src)
		if len(mistakes) > 0 {
			return src.all(mistakes)
		}
		info := Info{Name: strings.TrimSuffix(at, ".yaml"), Path: at}
		if d := root.get("description"); d != nil && d.kind == scalar {
			info.Description = strings.Join(strings.Fields(d.text), " ")
		}
		list = append(list, info)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list the shipped scenarios: %w", err)
	}
	slices.SortFunc(list, func(a, b Info) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}

// IsShipped tells whether an argument names a shipped scenario, @artemis/latency, not a file.
func IsShipped(argument string) bool { return strings.HasPrefix(argument, "@") }

// Open reads a shipped scenario by its name, with or without the @. The error is an [*UnknownError] if there is none.
func Open(fsys fs.FS, name string) (Info, []byte, error) {
	name = strings.TrimSuffix(strings.TrimPrefix(name, "@"), ".yaml")
	list, err := Shipped(fsys)
	if err != nil {
		return Info{}, nil, err
	}
	i := slices.IndexFunc(list, func(info Info) bool { return info.Name == name })
	if i < 0 {
		return Info{}, nil, &UnknownError{Name: name, Hint: suggest(list, name)}
	}
	text, err := readFile(fsys, list[i].Path)
	return list[i], text, err
}

// suggest finds the scenario that was meant: a name nearby, or one without its folder.
func suggest(list []Info, name string) string {
	var all, within []string
	for _, info := range list {
		all = append(all, info.Name)
		if path.Base(info.Name) == name || strings.HasPrefix(info.Name, strings.TrimSuffix(name, "/")+"/") {
			within = append(within, "@"+info.Name)
		}
	}
	if len(within) > 0 {
		return "did you mean " + strings.Join(within, " or ") + "?"
	}
	return nearest.Hint(name, all, "@%s", "perfmq scenario list shows all")
}

// ReadAll reads a scenario file from r, at most one byte more than [Parse] takes.
func ReadAll(r io.Reader) ([]byte, error) { return io.ReadAll(io.LimitReader(r, MaxSize+1)) }

func readFile(fsys fs.FS, name string) (text []byte, err error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return ReadAll(f)
}
