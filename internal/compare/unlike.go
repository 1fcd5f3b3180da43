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
