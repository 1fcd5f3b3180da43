package config

import "slices"

// Limits of a matrix.
const (
	maxAxes  = 16
	maxCells = 10_000
)

const (
	keyMatrix  = "matrix"
	keyExclude = "exclude"
	formMatrix = "matrix: {VARIABLE: [VALUE, VALUE]}"
)

// Matrix has the axes of a sweep: each combination of their values, but for those excluded, is a cell.
type Matrix struct {
	Axes    []Axis
	exclude []map[string][]string
	Pos     Pos
}

// Axis is a variable with the values that it has in turn.
type Axis struct {
	Name   string
	Values []string
	Pos    Pos
}

// Excluded reports whether a combination is excluded.
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

// sweep reads `matrix` and the settings of a sweep. All else has been read.
func (d *decoder) sweep(root *node, s *Scenario) {
	v := Defaults()
	for _, e := range d.entries {
		if e.Is("sweep") {
			_ = v.Read(e.Setting, File, e.texts[len(e.texts)-1]) // it was judged
		}
	}
	s.Sweep, s.Matrix = v.Sweep, nil
	if n := root.get(keyMatrix); !n.absent {
		s.Matrix = d.matrix(n)
	}
}

func (d *decoder) matrix(n *node) *Matrix {
	m := &Matrix{Pos: n.pos}
	cells := 1
	for _, p := range d.fields(n, keyMatrix, formMatrix) {
		if p.key.text == keyExclude {
			continue
		}
		a := d.axis(p)
		m.Axes = append(m.Axes, a)
		if cells *= max(1, len(a.Values)); cells > maxCells || len(m.Axes) > maxAxes {
			d.bad(p.key.pos, "", "the matrix has more than %d axes, or %d cells", maxAxes, maxCells)
			return m
		}
	}
	d.exclusions(n.get(keyExclude), m)
	return m
}

// axis reads NAME: [VALUE, ...]. The variables include it.
func (d *decoder) axis(p pair) Axis {
	a := Axis{Name: p.key.text, Pos: p.key.pos}
	if v := d.vars[a.Name]; v != nil && v.secret {
		d.bad(a.Pos, "", "%s is a secret, and outputs show the values of an axis", a.Name)
	}
	for _, item := range d.oneOrMore(p.value, "the axis "+quote(a.Name)) {
		text, ok := d.text(item, "a value of "+quote(a.Name))
		if slices.Contains(a.Values, text) {
			d.twice(item, item.pos)
		} else if ok {
			a.Values = append(a.Values, text)
		}
	}
	return a
}

// exclusions reads [{NAME: VALUE, ...}, ...].
func (d *decoder) exclusions(n *node, m *Matrix) {
	known := map[string][]string{}
	var names []string
	for _, a := range m.Axes {
		known[a.Name], names = a.Values, append(names, a.Name)
	}
	for _, item := range d.oneOrMore(n, keyExclude) {
		e := map[string][]string{}
		for _, p := range d.fields(item, "an exclusion", "- {NAME: VALUE}") {
			if !slices.Contains(names, p.key.text) {
				d.noSuch(p.key, "axis of the matrix", p.key.text, names)
				continue
			}
			for _, value := range d.oneOrMore(p.value, keyExclude) {
				text, ok := d.text(value, "an exclusion of "+p.key.text)
				if ok && !slices.Contains(known[p.key.text], text) {
					d.noSuch(value, "value of "+p.key.text, text, known[p.key.text])
				}
				e[p.key.text] = append(e[p.key.text], text)
			}
		}
		m.exclude = append(m.exclude, e)
	}
}
