package report

import (
	"slices"

	"github.com/perfmq/perfmq/internal/safetext"
	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/internal/verify"
	"github.com/perfmq/perfmq/pkg/driver"
)

// The texts of a run are a user's and a broker's: names, and what a broker remarked when it refused something. Here they lose
// the secrets of the run and what is beyond all measure, the same for all outputs. Each output then escapes them as its format
// needs.

func cleanRun(secrets *safetext.Secrets, run stats.Run) stats.Run {
	run.Destinations = cleanTexts(secrets, run.Destinations)
	return run
}

// cleanSnapshot returns s itself if there is nothing to be changed, which is the rule.
func cleanSnapshot(secrets *safetext.Secrets, s *stats.Snapshot) *stats.Snapshot {
	if s == nil || len(s.Protocol) == 0 {
		return s
	}
	c := *s
	c.Protocol = cleanCounters(secrets, s.Protocol)
	return &c
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
	c.Workers = slices.Clone(s.Workers)
	for i := range c.Workers {
		c.Workers[i].Destination = secrets.Field(c.Workers[i].Destination)
	}
	c.Errors = slices.Clone(s.Errors)
	for i := range c.Errors {
		c.Errors[i].First = secrets.Field(c.Errors[i].First)
	}
	if s.Verification != nil {
		c.Verification = CleanVerification(secrets, s.Verification)
	}
	return &c
}

// CleanVerification returns a result whose texts hold no secrets and have a bound. Those of files may be from anywhere.
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
