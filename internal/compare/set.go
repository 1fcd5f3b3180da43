package compare

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/sweep/record"
	"github.com/perfmq/perfmq/internal/words"
	"github.com/perfmq/perfmq/pkg/result"
)

// ErrIncomplete says that a run was killed, or still runs: its figures are incomplete.
var ErrIncomplete = errors.New("the run did not come to its end")

// Set is one side of a comparison: the repeats of a run.
type Set struct {
	Name    string
	Repeats []*result.Result
	Failed  []*result.Result // see [Set.Sift]
}

// NamesOf returns short names of folders: the last part of each path or, where these are equal, the paths.
func NamesOf(dirs []string) []string {
	names := make([]string, len(dirs))
	seen := map[string]int{}
	for i, dir := range dirs {
		if names[i] = filepath.Base(filepath.Clean(dir)); names[i] == "." {
			names[i] = "run"
		}
		seen[names[i]]++
	}
	for i, dir := range dirs {
		if seen[names[i]] > 1 {
			names[i] = filepath.ToSlash(filepath.Clean(dir))
		}
	}
	return names
}

// Read reads a set: the result in a folder, or all in the folders in it, which are repeats.
func Read(dir string) (Set, error) {
	var s Set
	err := s.add(dir)
	switch {
	case !errors.Is(err, result.ErrNoResult):
		return s, err
	case record.IsSweep(dir):
		return s, s.readRepeats(dir)
	case record.IsSearch(dir):
		return s, &plan.Mistake{Text: dir + " is a search", Hint: "perfmq report shows the rate that it found"}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return s, err
	}
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		if err := s.add(filepath.Join(dir, e.Name())); err != nil && !errors.Is(err, result.ErrNoResult) {
			return s, err
		}
	}
	if len(s.Repeats) == 0 {
		return s, fmt.Errorf("read %s: %w", dir, result.ErrNoResult)
	}
	return s, nil
}

// add adds the result in a folder.
func (s *Set) add(dir string) error {
	r, err := result.Read(dir)
	if err == nil && !r.Complete {
		err = ErrIncomplete
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", dir, err)
	}
	r.Rows = nil // many results are in memory at once
	s.Repeats = append(s.Repeats, r)
	return nil
}

// readRepeats reads the runs of a sweep of one cell.
func (s *Set) readRepeats(dir string) error {
	of, err := record.ReadSweep(dir)
	switch {
	case err != nil:
		return err
	case len(of.Axes) > 0:
		return &plan.Mistake{Text: dir + " is a sweep with several cells", Hint: "compare the folders of its cells"}
	case len(of.Runs) == 0:
		return fmt.Errorf("read %s: %w", dir, result.ErrNoResult)
	}
	own := regexp.MustCompile("-" + regexp.QuoteMeta(of.ID) + `-[0-9]+-[0-9]+\b`)
	for _, r := range of.Runs {
		path := filepath.Join(dir, filepath.FromSlash(r.Folder))
		if r.State != record.Done {
			return fmt.Errorf("read %s: %w", path, ErrIncomplete)
		}
		if err := s.add(path); err != nil {
			return err
		}
		if last := s.Repeats[len(s.Repeats)-1]; of.ID != "" { // fresh destinations have the names of their run
			last.Plan = json.RawMessage(own.ReplaceAll(last.Plan, nil))
		}
	}
	return nil
}

// Failed returns why the figures of a run do not count: it lost or refused messages, or it ended early. It is empty for
// other runs, also if a threshold failed.
func Failed(r *result.Result) string {
	o := &r.Outcome
	switch {
	case o.Aborted:
		return "ended early by a threshold"
	case !o.Success && len(o.Problems) > 0:
		return o.Problems[0]
	case !o.Success:
		return "no success"
	default:
		return ""
	}
}

// Sift takes failed runs out of a set. If all have failed they stay.
func (s *Set) Sift() {
	var good []*result.Result
	for _, r := range s.Repeats {
		if Failed(r) == "" {
			good = append(good, r)
		} else {
			s.Failed = append(s.Failed, r)
		}
	}
	if len(good) > 0 {
		s.Repeats = good
	}
}

// bounded returns a sentence about the runs that perfmq limited; empty without such runs.
func bounded(sets []Set) string {
	n, all := 0, 0
	for _, s := range sets {
		for _, r := range s.Repeats {
			if all++; r.LowerBound() {
				n++
			}
		}
	}
	return record.LowerBounds(n, all)
}

// notes returns, for each set with failed runs, their number and whether their figures are left out.
func notes(sets []Set) (list []string) {
	for _, s := range sets {
		n := len(s.Failed)
		if n == 0 {
			continue
		}
		text := fmt.Sprintf("%d of %d runs are left out, as they failed", n, n+len(s.Repeats))
		if Failed(s.Repeats[0]) != "" {
			text = words.Plural(n, "run") + " failed, and the figures are those of failed runs"
		}
		list = append(list, fmt.Sprintf("%s: %s; the first: %s", s.Name, text, Failed(s.Failed[0])))
	}
	return list
}

// Difference is something beside its figures in which a set is not like the first one.
type Difference struct {
	// Kind is "plan", "label", "version" or "machine".
	Kind string
	// Name is the setting, label, program or property.
	Name string
	// Values has one text for each set, in their order: all its values, joined by commas.
	Values []string
}

// differences returns the differences in plans, labels, versions and machines of the sets, or of the repeats of one.
func differences(sets []Set) (list []Difference) {
	for _, kind := range []struct {
		name string
		of   func(*result.Result) map[string]string
	}{
		{"plan", Settings},
		{"label", func(r *result.Result) map[string]string { return r.Labels }},
		{"version", Versions},
		{"machine", machineOf},
	} {
		values := map[string][][]string{} // by name, of each set
		for i := range sets {
			for _, r := range sets[i].Repeats {
				for name, v := range kind.of(r) {
					if values[name] == nil {
						values[name] = make([][]string, len(sets))
					}
					if of := &values[name][i]; !slices.Contains(*of, v) {
						*of = append(*of, v)
					}
				}
			}
		}
		for _, name := range slices.Sorted(maps.Keys(values)) {
			d := Difference{Kind: kind.name, Name: name}
			differs := false
			for _, all := range values[name] {
				d.Values = append(d.Values, strings.Join(all, ", "))
				differs = differs || len(all) > 1 || d.Values[len(d.Values)-1] != d.Values[0]
			}
			if differs {
				list = append(list, d)
			}
		}
	}
	return list
}

// Unlike returns the differences that make figures incomparable: the sets had other plans. Where the brokers
// were does not count, because a comparison may be one of two brokers.
func Unlike(list []Difference) []Difference {
	return slices.DeleteFunc(slices.Clone(list), func(d Difference) bool {
		return d.Kind != "plan" || strings.HasSuffix("."+d.Name, ".broker.url") || d.unknownOption()
	})
}

// unknownOption reports whether an option is off in all sets: another version of perfmq does not have it.
func (d *Difference) unknownOption() bool {
	on := func(value string) bool { return !slices.Contains([]string{"", "false", "0", "0s"}, value) }
	return strings.Contains(d.Name, ".options.") && !slices.ContainsFunc(d.Values, on)
}

// Settings returns the settings of the plan of a run by their paths, such as steps.load.rate.
func Settings(r *result.Result) map[string]string {
	var plan any
	if len(r.Plan) == 0 || json.Unmarshal(r.Plan, &plan) != nil {
		return nil
	}
	flat := map[string]string{}
	flatten(flat, "", plan)
	return flat
}

// flatten puts the values of a tree under their paths, such as steps.load.rate, behind a path that is empty or ends
// with a dot.
func flatten(into map[string]string, path string, v any) {
	switch v := v.(type) {
	case map[string]any:
		for name, x := range v {
			flatten(into, path+name+".", x)
		}
	case []any:
		for i, x := range v {
			name := strconv.Itoa(i + 1)
			if m, ok := x.(map[string]any); ok {
				if text, ok := m["name"].(string); ok && text != "" {
					name = text
				}
			}
			flatten(into, path+name+".", x)
		}
	default:
		into[strings.TrimSuffix(path, ".")] = fmt.Sprint(v)
	}
}

// Versions returns the versions of perfmq, clients and brokers of a run.
func Versions(r *result.Result) map[string]string {
	all := map[string]string{"perfmq": r.Versions.Perfmq, "go": r.Versions.Go}
	for _, c := range r.Versions.Clients {
		all[c.Protocol+" client of the "+c.Role] = strings.TrimSpace(c.Name + " " + c.Version)
	}
	for _, b := range r.Brokers {
		name := "broker"
		if b.Name != "" {
			name += " " + b.Name
		}
		if b.Side != "" {
			name += " of the " + b.Side
		}
		all[name] = strings.TrimSpace(b.Product + " " + b.Version)
	}
	return all
}

func machineOf(r *result.Result) map[string]string {
	return map[string]string{
		"host": r.Host.Name, "system": r.Host.OS + "/" + r.Host.Arch, "processors": strconv.Itoa(r.Host.CPUs),
		"memory": strconv.FormatUint(r.Host.Memory>>20, 10) + " MiB",
	}
}
