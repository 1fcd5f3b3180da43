package scenario

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/perfmq/perfmq/internal/nearest"
)

// Limits of a matrix.
const (
	maxAxes  = 16
	maxCells = 10_000
)

// Matrix has the axes of a sweep: each combination of their values, but for those excluded, is a cell.
type Matrix struct {
	Axes    []Axis
	exclude []map[string][]string
	Pos     Pos
}

// Axis is a variable, a label or a setting that is varied.
type Axis struct {
	Name   string
	Values []string
	// Variable or Label is the name of the varied variable or label; both are empty for a setting.
	Variable, Label string
	Pos             Pos

	owner string // of a setting: the group, broker or step that it is of; empty for all that have it
	key   *Key
	pair  string // of a setting of pairs: the key that is varied
}

// Setting returns the name of the setting that the axis varies; empty if it varies something else.
func (a *Axis) Setting() string {
	if a.key == nil {
		return ""
	}
	return a.key.Name
}

// Excluded tells whether a combination is excluded.
func (m *Matrix) Excluded(values map[string]string) bool {
	return slices.ContainsFunc(m.exclude, func(e map[string][]string) bool {
		for name, list := range e {
			if !slices.Contains(list, values[name]) {
				return false
			}
		}
		return true
	})
}

const (
	keyMatrix  = "matrix"
	keyExclude = "exclude"
	labelAxis  = "label."
	formMatrix = "matrix: {NAME: [VALUE, VALUE]}"
)

// matrix reads `matrix`. All else has been read.
func (d *decoder) matrix(n *node) {
	m := &Matrix{Pos: n.pos}
	cells := 1
	for _, p := range d.fields(n, keyMatrix, formMatrix) {
		if p.key.text == keyExclude {
			continue
		}
		if len(m.Axes) == maxAxes {
			d.bad(p.key.pos, "", "the matrix has more than %d axes", maxAxes)
			return
		}
		a, ok := d.axis(p)
		if !ok {
			continue
		}
		if cells *= len(a.Values); cells > maxCells {
			d.bad(p.key.pos, "make several sweeps", "the matrix has more than %d cells", maxCells)
			return
		}
		m.Axes = append(m.Axes, a)
	}
	d.file.Matrix = m
	if e := n.get(keyExclude); e != nil {
		d.exclusions(e, m)
	}
	if len(m.Axes) == 0 && len(n.pairs) > 0 && len(d.mistakes) == 0 {
		d.bad(n.pos, formMatrix, "the matrix has no axis")
	}
}

// axis reads NAME: [VALUE, ...].
func (d *decoder) axis(p pair) (a Axis, ok bool) {
	a = Axis{Name: p.key.text, Pos: p.key.pos}
	if ok = d.varied(&a); !ok {
		return a, false
	}
	if p.value.kind == mapping {
		d.bad(p.value.pos, "a list of values", "the axis %s must be a list, not a map", printable(a.Name))
		return a, false
	}
	for _, item := range d.oneOrMore(p.value, "the axis "+printable(a.Name)) {
		text, good := d.text(item, "a value of the axis "+printable(a.Name))
		switch {
		case !good:
			ok = false
		case slices.Contains(a.Values, text):
			d.bad(item.pos, "", "the axis %s has the value %s twice", printable(a.Name), quote(text))
		default:
			a.Values = append(a.Values, text)
		}
		if good && a.key != nil {
			if err := a.key.judge(a.text(text)); err != nil {
				d.refuse(item, a.key, text, err)
			}
		}
	}
	return a, ok && len(a.Values) > 0
}

// text returns the text that the setting gets for a value of the axis.
func (a *Axis) text(value string) string {
	if a.pair != "" {
		return a.pair + "=" + value
	}
	return value
}

// varied finds the variable, label or setting that an axis varies.
func (d *decoder) varied(a *Axis) bool {
	if v := d.vars[a.Name]; v != nil {
		if v.secret {
			d.bad(a.Pos, "vary something else", "%s is a secret, which outputs would have to show", a.Name)
			return false
		}
		a.Variable = a.Name
		return true
	}
	if label, ok := strings.CutPrefix(a.Name, labelAxis); ok && label != "" {
		a.Label = label
		return true
	}
	if slices.ContainsFunc(d.file.Labels, func(l Label) bool { return l.Key == a.Name }) {
		a.Label = a.Name
		return true
	}
	owner, name := "", a.Name
	if dot := strings.LastIndexByte(a.Name, '.'); dot >= 0 {
		owner, name = a.Name[:dot], a.Name[dot+1:]
		before, list := "", owner
		if dot := strings.LastIndexByte(owner, '.'); dot >= 0 {
			before, list = owner[:dot], owner[dot+1:]
		}
		if k := d.keys.find(list, ^Scope(0)); k != nil && k.Pairs { // options.queues
			a.owner, a.key, a.pair = before, k, name
			return d.owned(a)
		}
	}
	a.owner, a.key = owner, d.keys.find(name, ^InMessage)
	if a.key == nil {
		d.bad(a.Pos, d.axisHint(owner, name), "the matrix varies %s, which is no variable, label or setting", quote(a.Name))
		return false
	}
	return d.owned(a)
}

// axisHint suggests a name that may have been meant.
func (d *decoder) axisHint(owner, name string) string {
	known := slices.Sorted(maps.Keys(d.vars))
	if n := nearest.Nearest(name, append(known, d.keys.names(^InMessage)...)); n != "" {
		if owner != "" {
			n = owner + "." + n
		}
		return "did you mean " + n + "?"
	}
	return "an axis is a variable of vars, label.NAME, or a setting, such as GROUP.producers"
}

// owned checks that the setting of an axis can be that of its owner.
func (d *decoder) owned(a *Axis) bool {
	switch {
	case a.key.Secret:
		d.bad(a.Pos, "vary something else", "%s is a secret, which outputs would have to show", a.Name)
		return false
	case a.key.Sweep:
		d.bad(a.Pos, "it belongs to the top of the file", "a matrix cannot vary %s", a.Name)
		return false
	}
	n := 0
	d.file.each(a, true, func(list []Entry) []Entry { n++; return list })
	if n > 0 {
		return true
	}
	if a.owner == "" {
		d.bad(a.Pos, fmt.Sprintf("%s belongs to %s", a.key.Name, a.key.Scopes), "nothing in the file has the setting %s",
			a.key.Name)
		return false
	}
	known := slices.Concat(names(d.file.Groups, groupName), names(d.file.Brokers, brokerName),
		names(d.file.Steps, stepName))
	if slices.Contains(known, a.owner) {
		d.bad(a.Pos, fmt.Sprintf("it belongs to %s", a.key.Scopes), "%s is no setting of %s", a.key.Name, a.owner)
	} else {
		d.bad(a.Pos, missing(a.owner, known), "there is no group, broker or step %s", quote(a.owner))
	}
	return false
}

// exclusions reads [{NAME: VALUE, ...}, ...].
func (d *decoder) exclusions(n *node, m *Matrix) {
	for _, item := range d.oneOrMore(n, keyExclude) {
		e := map[string][]string{}
		for _, p := range d.fields(item, "an exclusion", "- {NAME: VALUE}") {
			i := slices.IndexFunc(m.Axes, func(a Axis) bool { return a.Name == p.key.text })
			if i < 0 {
				var known []string
				for _, a := range m.Axes {
					known = append(known, a.Name)
				}
				d.bad(p.key.pos, missing(p.key.text, known), "the matrix has no axis %s", quote(p.key.text))
				continue
			}
			for _, value := range d.oneOrMore(p.value, keyExclude) {
				text, ok := d.text(value, "an exclusion of "+p.key.text)
				if ok && !slices.Contains(m.Axes[i].Values, text) {
					d.bad(value.pos, missing(text, m.Axes[i].Values), "the axis %s has no value %s", p.key.text, quote(text))
				}
				e[p.key.text] = append(e[p.key.text], text)
			}
		}
		if len(e) > 0 {
			m.exclude = append(m.exclude, e)
		}
	}
}

// With returns the file of a cell: with the values of the axes that vary labels and settings. Those of variables are
// given to [Parse].
func (f *File) With(axes []Axis, values map[string]string) *File {
	c := *f
	c.Labels, c.Brokers, c.Groups, c.Steps = slices.Clone(f.Labels), slices.Clone(f.Brokers), slices.Clone(f.Groups),
		slices.Clone(f.Steps)
	for i := range c.Steps {
		c.Steps[i].Uses = slices.Clone(c.Steps[i].Uses)
	}
	for i := range axes {
		a := &axes[i]
		value, given := values[a.Name]
		switch {
		case !given || a.Variable != "":
		case a.Label != "":
			c.Labels = append(slices.DeleteFunc(c.Labels, func(l Label) bool { return l.Key == a.Label }),
				Label{a.Label, value, a.Pos})
		default:
			c.vary(a, value)
		}
	}
	return &c
}

// vary gives the setting of an axis a value wherever the file has it; if it is nowhere, wherever it may stand. A pair
// is added.
func (f *File) vary(a *Axis, value string) {
	e := Entry{Key: a.key.Name, Texts: []string{a.text(value)}, Pos: a.Pos}
	given := 0
	f.each(a, false, func(list []Entry) []Entry { given++; return list })
	f.each(a, a.pair != "" || given == 0, func(list []Entry) []Entry {
		list = slices.Clone(list)
		if a.pair == "" {
			list = slices.DeleteFunc(list, func(e Entry) bool { return e.Key == a.key.Name })
		}
		return append(list, e)
	})
}

// each changes the settings of each part of the file that an axis is about: the parts that have its setting, and, if
// wherever is true, the parts where it may stand.
func (f *File) each(a *Axis, wherever bool, change func([]Entry) []Entry) {
	of := func(name string, places Scope, list []Entry, own bool) []Entry {
		has := slices.ContainsFunc(list, func(e Entry) bool { return e.Key == a.key.Name })
		if a.key.Scopes&places != 0 && (a.owner == "" || a.owner == name) && (has || own && wherever) {
			return change(list)
		}
		return list
	}
	f.Settings = of("", InRun, f.Settings, true)
	f.Defaults = of("", inDefaults, f.Defaults, false)
	for i := range f.Brokers {
		f.Brokers[i].Entries = of(f.Brokers[i].Name, InBroker, f.Brokers[i].Entries, true)
	}
	roles := map[string]Scope{}
	for i := range f.Groups {
		g := &f.Groups[i]
		roles[g.Name] = InProducerGroup
		if g.Role == Consumer {
			roles[g.Name] = InConsumerGroup
		}
		g.Entries = of(g.Name, roles[g.Name], g.Entries, true)
	}
	for i := range f.Steps {
		s := &f.Steps[i]
		s.Entries = of(s.Name, InStep, s.Entries, true)
		for j := range s.Uses {
			s.Uses[j].Entries = of(s.Uses[j].Group, roles[s.Uses[j].Group], s.Uses[j].Entries, false)
		}
	}
}

// Search is the search for the highest rate of a group that passes thresholds.
type Search struct {
	// Group is the group whose rate is searched for.
	Group string
	// From is the rate to begin with, a text; empty for the usual one.
	From string
	// Thresholds are those beside the thresholds of the run.
	Thresholds []Threshold
	Pos        Pos

	axis Axis
}

const (
	keySearch  = "search"
	formSearch = "search: {group: senders, thresholds: [response.p99 < 10ms]}"
)

// search reads `search`. All else has been read.
func (d *decoder) search(n *node) {
	s := &Search{Pos: n.pos}
	at := n.pos
	for _, p := range d.fields(n, keySearch, formSearch) {
		switch p.key.text {
		case "group":
			s.Group, _ = d.text(p.value, "group")
			at = p.value.pos
		case "from":
			s.From, _ = d.text(p.value, "from")
			if k := d.keys.find("rate", InProducerGroup); k != nil && s.From != "" {
				if err := k.judge(s.From); err != nil {
					d.refuse(p.value, k, s.From, err)
				}
			}
		case "thresholds":
			s.Thresholds = d.thresholds(p.value, "")
		default:
			d.unknown(p.key, 0, "a search", "group", "from", "thresholds")
		}
	}
	var producers []string
	for _, g := range d.file.Groups {
		if g.Role == Producer {
			producers = append(producers, g.Name)
		}
	}
	switch {
	case s.Group == "" && len(producers) == 1:
		s.Group = producers[0]
	case s.Group == "":
		d.bad(at, formSearch, "the search names no group")
	case !slices.Contains(producers, s.Group):
		d.bad(at, missing(s.Group, producers), "there is no group of producers %s", quote(s.Group))
	}
	for _, t := range s.Thresholds {
		if t.Step != "" || t.Abort {
			d.bad(t.Pos, "", "a demand of a search is about the whole run, and ends nothing")
		}
	}
	d.notOfSweep(s)
	s.axis = Axis{Name: s.Group + ".rate", owner: s.Group, key: d.keys.find("rate", InProducerGroup), Pos: n.pos}
	d.file.Search = s
}

// notOfSweep refuses a search within a sweep.
func (d *decoder) notOfSweep(s *Search) {
	if d.file.Matrix != nil {
		d.bad(s.Pos, "run the file once for each value: --set NAME=VALUE", "a search does not go with a matrix")
	}
	for _, e := range d.file.Settings {
		if k := d.keys.find(e.Key, InRun); k != nil && k.Sweep {
			d.bad(e.Pos, "leave it out", "%s is of a sweep, and does not go with a search", e.Key)
		}
	}
}

// AtRate returns the file with that rate for the group of its search.
func (f *File) AtRate(rate string) *File {
	return f.With([]Axis{f.Search.axis}, map[string]string{f.Search.axis.Name: rate})
}
