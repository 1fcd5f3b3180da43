package config

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/perfmq/perfmq/internal/nearest"
	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/safetext"
)

// Info is a scenario of a collection.
type Info struct {
	Name        string // the path without its ending: artemis/latency
	Description string // the file's own, without variables replaced
}

// Shipped lists the scenario files (*.yaml) of a file system, sorted by name. A file of broken YAML is an error of type
// [Mistakes].
func Shipped(fsys fs.FS) ([]Info, error) {
	var list []Info
	err := fs.WalkDir(fsys, ".", func(at string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || path.Ext(at) != ".yaml" {
			return err
		}
		text, err := fs.ReadFile(fsys, at)
		if err != nil {
			return err
		}
		r := reader{path: at, secrets: &safetext.Secrets{}}
		root := r.tree(text)
		if err := r.err(); err != nil {
			return err
		}
		description := strings.Join(strings.Fields(root.get("description").text), " ")
		list = append(list, Info{strings.TrimSuffix(at, ".yaml"), description})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list the shipped scenarios: %w", err)
	}
	slices.SortFunc(list, func(a, b Info) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}

// IsShipped reports whether an argument names a shipped scenario, @artemis/latency, not a file.
func IsShipped(argument string) bool { return strings.HasPrefix(argument, "@") }

// open reads a shipped scenario by its name, with or without the @.
func open(fsys fs.FS, name string) ([]byte, error) {
	name = strings.TrimSuffix(strings.TrimPrefix(name, "@"), ".yaml")
	text, err := fs.ReadFile(fsys, name+".yaml")
	if err == nil {
		return text, nil
	}
	list, err := Shipped(fsys)
	if err != nil {
		return nil, err
	}
	var all []string
	for _, info := range list {
		all = append(all, info.Name)
	}
	hint := nearest.Hint(name, all, "@%s", "perfmq scenario list shows all")
	return nil, plan.Wrong(hint, "there is no shipped scenario @%s", name)
}
