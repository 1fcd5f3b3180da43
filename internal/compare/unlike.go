package compare

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/perfmq/perfmq/pkg/result"
)

// Difference is something beside its figures in which a set is not like the first one.
type Difference struct {
	// Cell is the cell of a sweep, if all cells do not differ alike.
	Cell string `json:"cell,omitempty"`
	// Kind is "plan", "label", "version" or "machine".
	Kind string `json:"kind"`
	// Name is the setting, label, program or property.
	Name string `json:"name"`
	// Values are those of the sets, in their order: of their first results, or all, joined by commas, where the repeats of
	// a set are not alike.
	Values []string `json:"values"`
}

func (d *Difference) title() string { return strings.TrimSpace(d.Cell + " " + d.Kind + " " + d.Name) }

// Differences returns the differences in plans, labels, versions and machines of the sets, or of the repeats of one. Of
// sweeps they are those of the cells that all of them have.
func Differences(sets []Set) (list []Difference) {
	cells := slices.DeleteFunc(cellsOf(sets), func(c cell) bool { return c.name != "" && !c.everywhere() })
	alike := func(a, b *Difference) bool {
		return a.Kind == b.Kind && a.Name == b.Name && slices.Equal(a.Values, b.Values)
	}
	var all [][]Difference
	for _, c := range cells {
		all = append(all, differences(c.sets))
	}
	for i := range all {
		for k := range all[i] {
			d := all[i][k]
			everywhere := !slices.ContainsFunc(all, func(other []Difference) bool {
				return !slices.ContainsFunc(other, func(o Difference) bool { return alike(&o, &d) })
			})
			switch {
			case !everywhere:
				d.Cell = cells[i].name
			case i > 0:
				continue
			}
			list = append(list, d)
		}
	}
	return list
}

func differences(sets []Set) []Difference {
	var list []Difference
	for _, kind := range []struct {
		name string
		of   func(*result.Result) map[string]string
	}{
		{"plan", Settings},
		{"label", func(r *result.Result) map[string]string { return r.Labels }},
		{"version", versionsOf},
		{"machine", machineOf},
	} {
		values := make([]map[string][]string, len(sets))
		names := map[string]bool{}
		for i := range sets {
			values[i] = map[string][]string{}
			for _, r := range sets[i].Results {
				for name, v := range kind.of(r) {
					names[name] = true
					if !slices.Contains(values[i][name], v) {
						values[i][name] = append(values[i][name], v)
					}
				}
			}
		}
		for _, name := range slices.Sorted(maps.Keys(names)) {
			d := Difference{Kind: kind.name, Name: name}
			differs := false
			for i := range sets {
				v := strings.Join(values[i][name], ", ")
				differs = differs || len(values[i][name]) > 1 || i > 0 && v != d.Values[0]
				d.Values = append(d.Values, v)
			}
			if differs {
				list = append(list, d)
			}
		}
	}
	return list
}

// Unlike returns those of the differences that make figures incomparable: the sets had other plans. Where the brokers
// were does not count, because a comparison may be one of two brokers.
func Unlike(list []Difference) []Difference {
	return slices.DeleteFunc(slices.Clone(list), func(d Difference) bool {
		return d.Kind != "plan" || strings.HasSuffix("."+d.Name, ".broker.url")
	})
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

// flatten puts the values of a tree under their paths, such as steps.load.rate.
func flatten(into map[string]string, path string, v any) {
	join := func(name string) string {
		if path == "" {
			return name
		}
		return path + "." + name
	}
	switch v := v.(type) {
	case map[string]any:
		for name, x := range v {
			flatten(into, join(name), x)
		}
	case []any:
		for i, x := range v {
			name := strconv.Itoa(i + 1)
			if m, ok := x.(map[string]any); ok {
				if text, ok := m["name"].(string); ok && text != "" {
					name = text
				}
			}
			flatten(into, join(name), x)
		}
	default:
		into[path] = fmt.Sprint(v)
	}
}

func versionsOf(r *result.Result) map[string]string {
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
