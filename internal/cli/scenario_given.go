package cli

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/scenario"
	"github.com/perfmq/perfmq/internal/setting"
	"github.com/perfmq/perfmq/pkg/driver"
)

// applies returns whether a value of a variable or flag is for a broker of a protocol. URLs and options of another
// protocol are not, nor are the variables that belong to such a URL: its login, its TLS.
func (b *builder) applies(s *setting.Setting, f *driver.Factory) func(setting.Source, string) bool {
	if s.Places&scenario.InBroker == 0 {
		return nil
	}
	url, from := b.givenURL()
	foreign := url != nil && url.Name != f.Name && !slices.Contains(f.Schemes, plan.Scheme(b.url))
	return func(source setting.Source, text string) bool {
		switch key, _, _ := strings.Cut(text, "="); {
		case s.Name == "url":
			return !foreign
		case foreign && from == setting.Variable && source == setting.Variable:
			return false
		case s.Name == "option":
			return b.hasOption(f, key) || !slices.ContainsFunc(b.app.Factories,
				func(o driver.Factory) bool { return b.hasOption(&o, key) })
		default:
			return true
		}
	}
}

// givenURL returns the protocol of the URL of a flag or variable, and which of them it is; nil if there is none, or
// none of a known protocol.
func (b *builder) givenURL() (*driver.Factory, setting.Source) {
	from := setting.CommandLine
	texts := b.in.given.Flags["url"]
	i := slices.IndexFunc(b.in.table, func(s setting.Setting) bool { return s.Name == "url" })
	if i >= 0 && len(texts) == 0 {
		from = setting.Variable
		_, texts = b.in.given.Environment.Lookup(&b.in.table[i])
	}
	if len(texts) == 0 {
		return nil, from
	}
	b.url = texts[len(texts)-1]
	return byScheme(b.app.Factories, plan.Scheme(b.url)), from
}

// hasOption reports whether a client of a protocol has an option.
func (b *builder) hasOption(f *driver.Factory, key string) bool {
	return slices.ContainsFunc(append(setting.LibrariesOf(f, b.app.libraries), *f), func(c driver.Factory) bool {
		return slices.ContainsFunc(driver.Describe(setting.NewOptions(&c)),
			func(o driver.Option) bool { return o.Name == key })
	})
}

// unapplied reports flags and variables that are for no broker of the file: a flag is a mistake, a variable may be left
// over from another run.
func (b *builder) unapplied() {
	var protocols []string
	for _, of := range b.brokers {
		protocols = append(protocols, of.factory.Name)
	}
	slices.Sort(protocols)
	speaks := strings.Join(slices.Compact(protocols), " and ")
	for _, label := range slices.Sorted(maps.Keys(b.skipped)) {
		groups := b.skipped[label]
		slices.Sort(groups)
		switch {
		case len(b.applied[label]) > 0:
			b.said = append(b.said, label+" does not apply to "+strings.Join(slices.Compact(groups), ", ")+
				": of another protocol")
		case strings.HasPrefix(label, "--"):
			hint := "leave it out"
			if other, _ := b.givenURL(); other != nil && label == "--url" {
				hint = "the scenario has protocol: " + speaks + "; a copy of it can have protocol: " + other.Name +
					" (perfmq scenario show)"
			}
			b.wrong(&plan.Mistake{
				Text: label + " applies to no broker of " + b.file.Path + ": these speak " + cmp.Or(speaks, "no protocol"),
				Hint: hint,
			})
		default:
			b.said = append(b.said, label+" is not used: it is of another protocol, and the brokers of "+b.file.Path+
				" speak "+speaks)
		}
	}
}
