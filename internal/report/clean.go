package report

import (
	"maps"
	"slices"

	"github.com/perfmq/perfmq/internal/safetext"
	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/internal/threshold"
	"github.com/perfmq/perfmq/internal/verify"
	"github.com/perfmq/perfmq/pkg/driver"
)

// The texts of a run come from users and brokers: names, labels, error messages. These functions remove the secrets of
// the run and shorten long texts, once for all outputs. Each output then escapes the texts for its format.

func cleanRun(secrets *safetext.Secrets, run stats.Run) stats.Run {
	run.Destinations = cleanTexts(secrets, run.Destinations)
	run.Scenario = secrets.Short(run.Scenario)
	run.Steps = slices.Clone(run.Steps)
	for i := range run.Steps {
		run.Steps[i] = secrets.Short(run.Steps[i])
	}
	run.Groups = slices.Clone(run.Groups)
	for i := range run.Groups {
		run.Groups[i].Name = secrets.Short(run.Groups[i].Name)
	}
	run.Labels = cleanLabels(secrets, run.Labels)
	return run
}

// maxLabels is the maximum number of labels in an output. Command lines and scenarios cannot have more.
const maxLabels = 64

// cleanLabels shortens labels so that all of them fit into one line of a file.
func cleanLabels(secrets *safetext.Secrets, labels map[string]string) map[string]string {
	if len(labels) == 0 {
		return nil
	}
	clean := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		if len(clean) == maxLabels {
			break
		}
		short := secrets.Short(name)
		if _, there := clean[short]; !there {
			clean[short] = secrets.Short(labels[name])
		}
	}
	return clean
}

// cleanSnapshot returns s itself if it has no text to clean, which is the usual case.
func cleanSnapshot(secrets *safetext.Secrets, s *stats.Snapshot) *stats.Snapshot {
	if s == nil {
		return nil
	}
	step := secrets.Short(s.Step)
	if len(s.Protocol) == 0 && step == s.Step && len(s.Depths) == 0 && len(s.Groups) == 0 {
		return s
	}
	c := *s
	c.Step, c.Depths = step, cleanDepths(secrets, s.Depths)
	c.Protocol = cleanCounters(secrets, s.Protocol)
	c.Groups = slices.Clone(s.Groups)
	for i := range c.Groups {
		c.Groups[i].Name = secrets.Short(c.Groups[i].Name)
	}
	return &c
}

func cleanGroups(secrets *safetext.Secrets, list []stats.GroupSummary) []stats.GroupSummary {
	list = slices.Clone(list)
	for i := range list {
		list[i].Name = secrets.Short(list[i].Name)
	}
	return list
}

func cleanSummary(secrets *safetext.Secrets, s *stats.Summary) *stats.Summary {
	if s == nil {
		return nil
	}
	c := *s
	c.Reason = secrets.Field(s.Reason)
	c.Problems = cleanTexts(secrets, s.Problems)
	c.Warnings = cleanTexts(secrets, s.Warnings)
	c.LeftBehind = cleanTexts(secrets, s.LeftBehind)
	c.Protocol = cleanCounters(secrets, s.Protocol)
	c.Limit.Text = secrets.Field(s.Limit.Text)
	c.Side = cleanSide(secrets, s.Side)
	c.Brokers, c.BrokerCount = cleanBrokers(secrets, s.Brokers), cleanBrokerCount(secrets, s.BrokerCount)
	c.Workers = slices.Clone(s.Workers)
	for i := range c.Workers {
		c.Workers[i].Destination = secrets.Field(c.Workers[i].Destination)
		c.Workers[i].Hosts = slices.Clone(c.Workers[i].Hosts)
		for k := range c.Workers[i].Hosts {
			c.Workers[i].Hosts[k].Host = secrets.Field(c.Workers[i].Hosts[k].Host)
		}
	}
	c.Hosts = slices.Clone(s.Hosts)
	for i := range c.Hosts {
		c.Hosts[i].Name = secrets.Field(c.Hosts[i].Name)
	}
	c.Errors = slices.Clone(s.Errors)
	for i := range c.Errors {
		c.Errors[i].Examples = cleanTexts(secrets, c.Errors[i].Examples)
	}
	c.Outages = slices.Clone(s.Outages)
	for i := range c.Outages {
		o := &c.Outages[i]
		o.Error, o.Attempt = secrets.Field(o.Error), secrets.Field(o.Attempt)
	}
	c.Thresholds = cleanOutcomes(secrets, s.Thresholds)
	c.Groups = cleanGroups(secrets, s.Groups)
	c.Steps = slices.Clone(s.Steps)
	for i := range c.Steps {
		step := &c.Steps[i]
		step.Name, step.Reason = secrets.Short(step.Name), secrets.Field(step.Reason)
		step.Limit.Text = secrets.Field(step.Limit.Text)
		step.Thresholds = cleanOutcomes(secrets, step.Thresholds)
		step.Groups = cleanGroups(secrets, step.Groups)
	}
	c.Commands = slices.Clone(s.Commands)
	for i := range c.Commands {
		command := &c.Commands[i]
		command.Step, command.Command, command.Output = secrets.Short(command.Step), secrets.Field(command.Command),
			secrets.Field(command.Output)
	}
	if s.Verification != nil {
		c.Verification = CleanVerification(secrets, s.Verification)
	}
	return &c
}

// CleanVerification returns a copy of r with texts that have no secrets and a bounded length. Texts from files may have
// any origin.
func CleanVerification(secrets *safetext.Secrets, r *verify.Result) *verify.Result {
	c := *r
	c.Scopes = slices.Clone(r.Scopes)
	for i := range c.Scopes {
		s := &c.Scopes[i]
		s.Destination, s.Subscription = secrets.Field(s.Destination), secrets.Field(s.Subscription)
	}
	c.Unwatched = cleanTexts(secrets, r.Unwatched)
	c.Notes = cleanTexts(secrets, r.Notes)
	return &c
}

func cleanOutcomes(secrets *safetext.Secrets, outcomes []threshold.Outcome) []threshold.Outcome {
	list := slices.Clone(outcomes)
	for i := range list {
		list[i].Step = secrets.Short(list[i].Step)
	}
	return list
}

func cleanTexts(secrets *safetext.Secrets, texts []string) []string {
	list := slices.Clone(texts)
	for i := range list {
		list[i] = secrets.Field(list[i])
	}
	return list
}

func cleanCounters(secrets *safetext.Secrets, counters []driver.Counter) []driver.Counter {
	list := slices.Clone(counters)
	for i := range list {
		list[i].Name = secrets.Field(list[i].Name)
	}
	return list
}
