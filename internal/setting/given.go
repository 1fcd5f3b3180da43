package setting

import (
	"regexp"

	"github.com/perfmq/perfmq/internal/nearest"
	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/safetext"
)

// Given has the user's input for one command, before any of it is judged: all mistakes are reported at once, and
// variables fill in settings that the command line left out.
type Given struct {
	Environment Environment
	Flags       map[string][]string // texts by the name of the setting, in the order given
	Missing     map[string]bool     // flags that were followed by another flag instead of a value, which was reported
}

// NewGiven returns the input of an environment alone, without flags.
func NewGiven(e Environment) *Given {
	return &Given{Environment: e, Flags: map[string][]string{}, Missing: map[string]bool{}}
}

// Provenance is a value that is not a default, and where it comes from.
type Provenance struct {
	Name  string // of the setting
	Label string // variable or flag, as it is spelled
	Value string // not of secrets
	From  Source
	// Skipped tells that the value is not for this place.
	Skipped bool
}

// String tells where the value comes from.
func (p *Provenance) String() string {
	if p.From == Variable {
		return "environment " + p.Label
	}
	return "flag"
}

// Has tells whether a variable or flag gives the setting.
func (g *Given) Has(s *Setting) bool {
	variable, _ := g.Environment.Lookup(s)
	return variable != "" || len(g.Flags[s.Name]) > 0
}

// Named returns a text in which the flags of settings that come from variables are replaced by these.
func (g *Given) Named(table []Setting, text string) string {
	return regexp.MustCompile(`--[a-zA-Z][a-zA-Z-]*`).ReplaceAllStringFunc(text, func(flag string) string {
		for i := range table {
			s := &table[i]
			if variable, _ := g.Environment.Lookup(s); flag == "--"+s.Name && variable != "" && len(g.Flags[s.Name]) == 0 {
				return variable
			}
		}
		return flag
	})
}

// Apply reads the variable and then the flag of a setting. Of a list both count, else the last text of the flag alone.
// It skips values for which applies is false; nil is never false.
func (g *Given) Apply(
	v *Values, s *Setting, applies func(from Source, text string) bool,
) (list []Provenance, errs []error) {
	if g.Missing[s.Name] {
		return nil, nil
	}
	apply := func(from Source, label string, texts []string) {
		if !s.List && len(texts) > 0 {
			texts = texts[len(texts)-1:]
		}
		for _, text := range texts {
			p := Provenance{Name: s.Name, Label: label, Value: text, From: from}
			if s.Secret {
				p.Value = safetext.Hidden
			}
			if p.Skipped = applies != nil && !applies(from, text); p.Skipped {
				list = append(list, p)
				continue
			}
			if err := v.Read(s, from, text); err != nil {
				m := &plan.Mistake{Text: label + "=" + Quoted(p.Value) + ": " + err.Error()}
				if !s.Secret {
					if meant := nearest.Spelling(text, s.Accepts); meant != "" {
						m.Hint = "did you mean " + label + "=" + Quoted(meant) + "?"
					}
				}
				errs = append(errs, m)
			}
			list = append(list, p)
		}
	}
	flags := g.Flags[s.Name]
	if variable, texts := g.Environment.Lookup(s); len(flags) == 0 || s.List {
		apply(Variable, variable, texts)
	}
	apply(CommandLine, "--"+s.Name, flags)
	return list, errs
}

// Values returns the given values, over the defaults.
func (g *Given) Values(table []Setting) (v *Values, list []Provenance, errs []error) {
	v = Defaults()
	for i := range table {
		given, wrong := g.Apply(v, &table[i], nil)
		list, errs = append(list, given...), append(errs, wrong...)
	}
	return v, list, errs
}
