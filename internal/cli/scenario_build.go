package cli

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/scenario"
	"github.com/perfmq/perfmq/internal/setting"
	"github.com/perfmq/perfmq/internal/threshold"
	"github.com/perfmq/perfmq/pkg/driver"
)

// builder makes a plan of a scenario and its flags and variables.
type builder struct {
	app      *app
	in       *input
	file     *scenario.File
	factory  *driver.Factory // for the settings of the run, which are equal for all protocols
	embedded bool

	plan     *plan.Plan
	brokers  map[string]*fileBroker
	mistakes scenario.Mistakes
	errs     []error
	bodies   bodyFiles
	said     []string            // notes about groups
	applied  map[string][]string // by flag or variable: the parts of the file that it was applied to
	skipped  map[string][]string // the same for parts that are of another protocol
	url      string              // of a flag or variable
	demands  map[demanded]scenario.Pos
}

// fileBroker is a broker of the file.
type fileBroker struct {
	*scenario.Broker
	factory driver.Factory
	site    string
}

// demanded is a threshold of the file, as the plan has it: of a step, or of the run.
type demanded struct{ step, text string }

// build returns the plan and the settings of the run, which include its outputs.
func (b *builder) build() (*plan.Plan, *resolver) {
	b.applied, b.skipped = map[string][]string{}, map[string][]string{}
	b.brokers, b.bodies = map[string]*fileBroker{}, bodyFiles{}
	b.demands = map[demanded]scenario.Pos{}
	b.factory = &b.app.Factories[0]
	for _, secret := range b.file.Secrets() {
		b.app.secrets.Add("", secret)
	}
	whole := b.resolver(b.settings(plan.Client, b.factory, scenario.InRun, "the run", b.file.Settings), plan.Client,
		b.factory)
	b.embedded = whole.Embedded
	b.plan = whole.whole()
	b.plan.Name = b.file.Name
	if b.plan.Name == "" {
		b.plan.Name = strings.TrimSuffix(baseName(b.file.Path), ".yaml")
	}
	b.labels()
	for i := range b.file.Brokers {
		b.broker(&b.file.Brokers[i])
	}
	b.sites()
	for i := range b.file.Steps {
		b.step(&b.file.Steps[i], whole)
	}
	b.unapplied()
	b.plan.AcceptOwn()
	if last := len(b.plan.Steps) - 1; last >= 0 {
		first := &b.plan.Steps[0]
		first.Before = append(commands(b.file.Before), first.Before...)
		b.plan.Steps[last].After = append(b.plan.Steps[last].After, commands(b.file.After)...)
	}
	for i := range b.file.Thresholds {
		b.threshold(&b.file.Thresholds[i])
	}
	whole.verification(b.plan)
	return b.plan, whole
}

func baseName(path string) string { return path[strings.LastIndexAny(path, "/@")+1:] }

func (b *builder) resolver(s *setting.Values, role plan.Role, f *driver.Factory) *resolver {
	return &resolver{
		Values: s, role: role, own: *f, factories: b.app.Factories, libraries: b.app.libraries, secrets: b.app.secrets,
		bodies: b.bodies, shipped: b.app.Scenarios, scenario: true,
	}
}

func (b *builder) labels() {
	labels := map[string]string{}
	for _, l := range b.file.Labels {
		if err := setting.CheckLabel(l.Key, l.Text); err != nil {
			b.bad(l.Pos, "", "the label %.80q: %v", l.Key, err)
		}
		labels[l.Key] = l.Text
	}
	maps.Copy(labels, b.plan.Labels) // labels of flags
	if len(labels) > 0 {
		b.plan.Labels = labels
	}
}

// settings returns the values of entries of the file, variables and flags; later ones take precedence. Only variables
// and flags of the given places are applied.
func (b *builder) settings(
	role plan.Role, f *driver.Factory, places scenario.Scope, to string, lists ...[]scenario.Entry,
) *setting.Values {
	v := setting.Defaults()
	table := setting.Table(role, f)
	for _, entries := range lists {
		for _, e := range entries {
			i := slices.IndexFunc(table, func(s setting.Setting) bool { return s.Name == e.Key })
			if i < 0 {
				continue
			}
			for _, text := range e.Texts {
				if table[i].Files {
					text = b.beside(text)
				}
				if err := v.Read(&table[i], setting.File, text); err != nil { // another value may be valid
					b.mistakes = append(b.mistakes, b.file.Mistake(e.Pos, e.Key+": "+err.Error(), ""))
				}
			}
		}
	}
	for i := range table {
		s := &table[i]
		output := places == scenario.InRun && s.Places == 0
		if s.Places&places != 0 || output {
			b.over(v, s, f, to)
		}
	}
	return v
}

// beside resolves the path of a file that the scenario names, which is relative to the scenario's folder.
func (b *builder) beside(path string) string {
	if filepath.IsAbs(path) || scenario.IsShipped(b.file.Path) {
		return path
	}
	return filepath.Join(filepath.Dir(b.file.Path), path)
}

// over applies the variable and the flag of a setting. If the file sets a limit of the load, they change that entry and
// add none elsewhere.
func (b *builder) over(v *setting.Values, s *setting.Setting, f *driver.Factory, to string) {
	if (s.Name == "duration" || s.Name == "message-count") && !v.Has(s.Name) && b.given(s.Name) {
		return
	}
	list, errs := b.in.given.Apply(v, s, b.applies(s, f))
	b.wrong(errs...)
	for _, p := range list {
		switch {
		case p.Skipped:
			b.skipped[p.Label] = append(b.skipped[p.Label], to)
		case to != "the run":
			b.applied[p.Label] = append(b.applied[p.Label], to)
		}
	}
}

// wrong adds mistakes that have no place in the file, each once.
func (b *builder) wrong(errs ...error) {
	for _, err := range errs {
		if !slices.ContainsFunc(b.errs, func(o error) bool { return o.Error() == err.Error() }) {
			b.errs = append(b.errs, err)
		}
	}
}

// given reports whether the defaults, a group or a step of the file have a setting.
func (b *builder) given(key string) bool {
	has := func(list []scenario.Entry) bool {
		return slices.ContainsFunc(list, func(e scenario.Entry) bool { return e.Key == key })
	}
	given := has(b.file.Defaults)
	for i := range b.file.Groups {
		given = given || has(b.file.Groups[i].Entries)
	}
	for i := range b.file.Steps {
		given = given || has(b.file.Steps[i].Entries)
		for _, u := range b.file.Steps[i].Uses {
			given = given || has(u.Entries)
		}
	}
	return given
}

// bad adds a mistake at a place of the file, once.
func (b *builder) bad(pos scenario.Pos, hint, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if !slices.ContainsFunc(b.mistakes, func(m scenario.Mistake) bool { return m.Pos == pos && m.Text == text }) {
		b.mistakes = append(b.mistakes, b.file.Mistake(pos, text, hint))
	}
}

// step adds a step with its groups.
func (b *builder) step(of *scenario.Step, whole *resolver) {
	s := b.settings(plan.Client, b.factory, scenario.InStep, "step "+of.Name, b.file.Defaults, of.Entries)
	step := plan.Step{
		Name: of.Name, Duration: s.Duration, Warmup: s.Warmup, Drained: of.Until == scenario.UntilDrained,
		Before: commands(of.Before), After: commands(of.After), Idle: b.idle(of), Marks: s.Marks,
	}
	for i := range of.Uses {
		use := &of.Uses[i]
		at := slices.IndexFunc(b.file.Groups, func(g scenario.Group) bool { return g.Name == use.Group })
		step.Groups = append(step.Groups, b.group(&b.file.Groups[at], use, whole))
	}
	counted := slices.ContainsFunc(step.Groups, func(g *plan.Group) bool { return g.Count > 0 })
	if of.Until == scenario.UntilCount && !counted {
		b.bad(of.Pos, "message-count: 10000 in one of its groups",
			"the step %s lasts until a count, but no group of it has one", of.Name)
	}
	for _, t := range of.Thresholds {
		if d, ok := b.demand(&t); ok {
			step.Thresholds = append(step.Thresholds, d)
		}
	}
	b.plan.Steps = append(b.plan.Steps, step)
}

// idle returns the time without a received message after which a step ends; 0 if silence does not end it.
func (b *builder) idle(of *scenario.Step) time.Duration {
	text, given := entry(of.Entries, setting.KeyIdle)
	if of.Until != scenario.UntilIdle {
		if given {
			b.bad(of.Pos, "until: idle", "idle-time is given, but the step %s does not last until it is idle", of.Name)
		}
		return 0
	}
	if !given {
		if text, given = entry(b.file.Defaults, setting.KeyIdle); !given {
			return setting.DefaultIdle
		}
	}
	d, _ := setting.Idle(text) // already checked
	return d
}

// group returns a group with its settings in a step.
func (b *builder) group(of *scenario.Group, use *scenario.Use, whole *resolver) *plan.Group {
	at := b.brokers[of.Broker]
	role, places := plan.Producer, scenario.InProducerGroup
	if of.Role == scenario.Consumer {
		role, places = plan.Consumer, scenario.InConsumerGroup
	}
	lists := [][]scenario.Entry{b.file.Settings, b.file.Defaults, at.Entries, of.Entries, use.Entries}
	s := b.settings(role, &at.factory, places|scenario.InBroker, "group "+of.Name, lists...)
	s.Threads, s.Embedded, s.Faults = whole.Threads, whole.Embedded, whole.Faults
	embedOver(s, whole.Source("embedded"))
	r := b.resolver(s, role, &at.factory)
	messages, turn := of.Messages, of.Turn
	if len(use.Messages) > 0 {
		messages, turn = use.Messages, use.Turn
	}
	r.mixed = len(messages) > 0
	g := r.group(of.Destinations)
	g.Name = of.Name
	if r.mixed {
		g.Mix = b.messages(of, messages, turn, &at.factory, lists)
	}
	r.embedFits(g)
	for _, side := range g.Sides() {
		side.Name, side.Site = at.Name, at.site
	}
	b.badGroup(of, use.Pos, r.errs)
	b.said = append(b.said, r.notes...)
	return g
}

// badGroup adds mistakes of a group: at a place of the file, unless a variable or flag has made them.
func (b *builder) badGroup(of *scenario.Group, pos scenario.Pos, errs []error) {
	for _, err := range parts(errs) {
		var m *plan.Mistake
		if !errors.As(err, &m) {
			m = &plan.Mistake{Text: err.Error(), Hint: driver.HintOf(err)}
		}
		if i := slices.IndexFunc(b.in.table, func(s setting.Setting) bool { return s.Name == m.Setting }); i >= 0 &&
			b.in.given.Has(&b.in.table[i]) {
			text, hint := named(b.in.named, m.Text, m.Hint)
			b.wrong(&plan.Mistake{Text: b.file.Path + ": group " + of.Name + ": " + text, Hint: hint})
			continue
		}
		b.bad(pos, m.Hint, "group %s: %s", of.Name, strings.ReplaceAll(m.Text, "--", ""))
	}
}

func commands(list []scenario.Command) (texts []string) {
	for _, c := range list {
		texts = append(texts, c.Text)
	}
	return texts
}

// threshold adds a threshold of the file to its step, or to the run.
func (b *builder) threshold(of *scenario.Threshold) {
	d, ok := b.demand(of)
	if !ok {
		return
	}
	if of.Step == "" {
		b.plan.Thresholds = append(b.plan.Thresholds, d)
		return
	}
	for i := range b.plan.Steps {
		if b.plan.Steps[i].Name == of.Step {
			b.plan.Steps[i].Thresholds = append(b.plan.Steps[i].Thresholds, d)
		}
	}
}

func (b *builder) demand(of *scenario.Threshold) (d threshold.Threshold, ok bool) {
	d, err := setting.ParseThreshold(of.Text)
	if err != nil {
		b.bad(of.Pos, "perfmq scenario metrics lists all metrics", "threshold %s %v", setting.Quoted(of.Text), err)
		return d, false
	}
	d.Abort = of.Abort
	if at := (demanded{of.Step, d.String()}); b.demands[at] == (scenario.Pos{}) {
		b.demands[at] = of.Pos
	}
	return d, true
}

// notes returns a note for each flag and variable with the parts of the file that it was applied to.
func (b *builder) notes() (list []string) {
	for _, label := range slices.Sorted(maps.Keys(b.applied)) {
		to := b.applied[label]
		slices.Sort(to)
		list = append(list, label+" applies to "+strings.Join(slices.Compact(to), ", "))
	}
	for _, note := range b.said {
		if !slices.Contains(list, note) {
			list = append(list, note)
		}
	}
	return list
}
