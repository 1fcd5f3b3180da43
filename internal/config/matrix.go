package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/perfmq/perfmq/internal/nearest"
	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/threshold"
)

// Limits of a matrix.
const (
	maxAxes  = 16
	maxCells = 10_000
)

const (
	keyMatrix  = "matrix"
	keyExclude = "exclude"
	keySearch  = "search"
	labelAxis  = "label."
	formMatrix = "matrix: {NAME: [VALUE, VALUE]}"
	formSearch = "search: {group: senders, thresholds: [response.p99 < 10ms]}"
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

	setting *Setting
	owner   string // of a setting: the group, broker or step that it is of; empty for all that have it
	pair    string // of a setting of pairs: the key that is varied
}

// Setting returns the name of the setting that the axis varies; empty if it varies something else.
func (a *Axis) Setting() string {
	if a.setting == nil {
		return ""
	}
	return a.setting.Name
}

// text returns the text that the setting gets for a value of the axis.
func (a *Axis) text(value string) string {
	if a.pair != "" {
		return a.pair + "=" + value
	}
	return value
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

// Search is the search for the highest rate of a group that passes thresholds.
type Search struct {
	Group      string                // whose rate is searched for
	From       string                // the rate to begin with; empty for the usual one
	Thresholds []threshold.Threshold // beside those of the run
}

// sweep reads `matrix`, `search` and the settings of a sweep. All else has been read.
func (d *decoder) sweep(root *node, s *Scenario) {
	v := Defaults()
	for _, e := range d.run {
		if e.Is("sweep") {
			_ = v.set(e.Setting, e.texts[len(e.texts)-1]) // it was judged
		}
	}
	s.Sweep, s.Matrix, s.Search = v.Sweep, nil, nil
	if n := root.get(keyMatrix); n != nil {
		s.Matrix = d.matrix(n)
	}
	if n := root.get(keySearch); n != nil {
		s.Search = d.search(n, s.Matrix)
	}
}

func (d *decoder) matrix(n *node) *Matrix {
	m := &Matrix{Pos: n.pos}
	cells := 1
	for _, p := range d.fields(n, keyMatrix, formMatrix) {
		if p.key.text == keyExclude {
			continue
		}
		if len(m.Axes) == maxAxes {
			d.bad(p.key.pos, "", "the matrix has more than %d axes", maxAxes)
			return m
		}
		a, ok := d.axis(p)
		if !ok {
			continue
		}
		if cells *= len(a.Values); cells > maxCells {
			d.bad(p.key.pos, "make several sweeps", "the matrix has more than %d cells", maxCells)
			return m
		}
		m.Axes = append(m.Axes, a)
	}
	if e := n.get(keyExclude); e != nil {
		d.exclusions(e, m)
	}
	if len(m.Axes) == 0 && len(n.pairs) > 0 && len(d.mistakes) == 0 {
		d.bad(n.pos, formMatrix, "the matrix has no axis")
	}
	return m
}

// axis reads NAME: [VALUE, ...].
func (d *decoder) axis(p pair) (a Axis, ok bool) {
	a = Axis{Name: p.key.text, Pos: p.key.pos}
	if ok = d.varies(&a); !ok {
		return a, false
	}
	if p.value.kind == mapping {
		d.bad(p.value.pos, "a list of values", "the axis %s must be a list, not a map", quote(a.Name))
		return a, false
	}
	for _, item := range d.oneOrMore(p.value, "the axis "+quote(a.Name)) {
		text, good := d.text(item, "a value of the axis "+quote(a.Name))
		switch {
		case !good:
			ok = false
		case slices.Contains(a.Values, text):
			d.bad(item.pos, "", "the axis %s has the value %s twice", quote(a.Name), quote(text))
		default:
			a.Values = append(a.Values, text)
		}
		if good && a.setting != nil {
			d.judge(item, a.setting, a.text(text))
		}
	}
	return a, ok && len(a.Values) > 0
}

// varies finds the variable, label or setting that an axis varies.
func (d *decoder) varies(a *Axis) bool {
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
	if slices.ContainsFunc(d.labels, func(l label) bool { return l.key == a.Name }) {
		a.Label = a.Name
		return true
	}
	name := a.Name
	if dot := strings.LastIndexByte(name, '.'); dot >= 0 {
		a.owner, name = name[:dot], name[dot+1:]
		before, list := "", a.owner
		if dot := strings.LastIndexByte(list, '.'); dot >= 0 {
			before, list = list[:dot], list[dot+1:]
		}
		if s := d.keys.byName[list]; s != nil && s.Pairs { // options.queues
			a.owner, a.setting, a.pair = before, s, name
			return d.owned(a)
		}
	}
	if a.setting = d.keys.find(name, ^InMessage); a.setting != nil {
		return d.owned(a)
	}
	hint := "an axis is a variable of vars, label.NAME, or a setting, such as GROUP.producers"
	known := slices.Sorted(maps.Keys(d.vars))
	if n := nearest.Nearest(name, append(known, d.keys.names(^InMessage)...)); n != "" {
		if a.owner != "" {
			n = a.owner + "." + n
		}
		hint = "did you mean " + n + "?"
	}
	d.bad(a.Pos, hint, "the matrix varies %s, which is no variable, label or setting", quote(a.Name))
	return false
}

// owned checks that the setting of an axis can be that of its owner.
func (d *decoder) owned(a *Axis) bool {
	switch {
	case a.setting.Secret:
		d.bad(a.Pos, "vary something else", "%s is a secret, which outputs would have to show", a.Name)
		return false
	case a.setting.Is("sweep"):
		d.bad(a.Pos, "it belongs to the top of the file", "a matrix cannot vary %s", a.Name)
		return false
	}
	n := 0
	d.each(a, true, func(list []entry) []entry { n++; return list })
	if n > 0 {
		return true
	}
	belongs := fmt.Sprintf("it belongs to %s", a.setting.Places)
	known := slices.Concat(d.groupNames(), names(d.brokers), d.stepNames())
	switch {
	case a.owner == "":
		d.bad(a.Pos, belongs, "nothing in the file has the setting %s", a.setting.Name)
	case slices.Contains(known, a.owner):
		d.bad(a.Pos, belongs, "%s is no setting of %s", a.setting.Name, a.owner)
	default:
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

// varied returns the file of a cell, with the values of the axes that vary labels and settings.
func (s *Scenario) varied(cell Cell) *file {
	f := *s.file
	f.labels, f.brokers, f.groups, f.steps = slices.Clone(f.labels), slices.Clone(f.brokers), slices.Clone(f.groups),
		slices.Clone(f.steps)
	for i := range f.steps {
		f.steps[i].uses = slices.Clone(f.steps[i].uses)
	}
	var axes []Axis
	if s.Matrix != nil {
		axes = s.Matrix.Axes
	}
	for i := range axes {
		a := &axes[i]
		value, given := cell.Values[a.Name]
		switch {
		case !given || a.Variable != "":
		case a.Label != "":
			f.labels = append(slices.DeleteFunc(f.labels, func(l label) bool { return l.key == a.Label }),
				label{a.Label, value, a.Pos})
		default:
			f.vary(a, value)
		}
	}
	if cell.Rate != "" {
		f.vary(&Axis{owner: s.Search.Group, setting: newKeys().byName["rate"]}, cell.Rate)
	}
	return &f
}

// vary gives the setting of an axis a value wherever the file has it; if it is nowhere, wherever it may stand. A pair
// is added.
func (f *file) vary(a *Axis, value string) {
	e := entry{a.setting, []string{a.text(value)}, a.Pos}
	given := 0
	f.each(a, false, func(list []entry) []entry { given++; return list })
	f.each(a, a.pair != "" || given == 0, func(list []entry) []entry {
		list = slices.Clone(list)
		if a.pair == "" {
			list = slices.DeleteFunc(list, func(e entry) bool { return e.Name == a.setting.Name })
		}
		return append(list, e)
	})
}

// each changes the settings of each part of the file that an axis is about: the parts that have its setting, and, if
// wherever is true, the parts where it may stand.
func (f *file) each(a *Axis, wherever bool, change func([]entry) []entry) {
	of := func(name string, places Scope, list []entry, own bool) []entry {
		has := slices.ContainsFunc(list, func(e entry) bool { return e.Name == a.setting.Name })
		if a.setting.Places&places != 0 && (a.owner == "" || a.owner == name) && (has || own && wherever) {
			return change(list)
		}
		return list
	}
	f.run = of("", InRun, f.run, true)
	f.defaults = of("", inDefaults, f.defaults, false)
	for i := range f.brokers {
		f.brokers[i].entries = of(f.brokers[i].name, InBroker, f.brokers[i].entries, true)
	}
	roles := map[string]Scope{}
	for i := range f.groups {
		g := &f.groups[i]
		roles[g.name], _ = placesOfRole(g.role)
		g.entries = of(g.name, roles[g.name], g.entries, true)
	}
	for i := range f.steps {
		s := &f.steps[i]
		s.entries = of(s.name, InStep, s.entries, true)
		for j := range s.uses {
			s.uses[j].entries = of(s.uses[j].name, roles[s.uses[j].name], s.uses[j].entries, false)
		}
	}
}

// search reads `search`.
func (d *decoder) search(n *node, m *Matrix) *Search {
	s := &Search{}
	at := n.pos
	for _, p := range d.fields(n, keySearch, formSearch) {
		switch p.key.text {
		case "group":
			s.Group, _ = d.text(p.value, "group")
			at = p.value.pos
		case "from":
			if s.From, _ = d.text(p.value, "from"); s.From != "" {
				d.judge(p.value, d.keys.byName["rate"], s.From)
			}
		case "thresholds":
			for _, t := range d.readThresholds(p.value, "") {
				if t.step != "" || t.Abort {
					d.bad(t.pos, "", "a demand of a search is about the whole run, and ends nothing")
				}
				s.Thresholds = append(s.Thresholds, t.Threshold)
			}
		default:
			d.unknown(p.key, 0, "a search", "group", "from", "thresholds")
		}
	}
	var producers []string
	for _, g := range d.groups {
		if g.role == plan.Producer {
			producers = append(producers, g.name)
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
	if m != nil {
		d.bad(n.pos, "run the file once for each value: --set NAME=VALUE", "a search does not go with a matrix")
	}
	for _, e := range d.run {
		if e.Is("sweep") {
			d.bad(e.pos, "leave it out", "%s is of a sweep, and does not go with a search", e.Name)
		}
	}
	return s
}
