package verify

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/perfmq/perfmq/internal/words"
	"github.com/perfmq/perfmq/pkg/driver"
)

// unwatched finds destinations that were sent to, but that no side received from.
func (j *judge) unwatched(r *Result) {
	if len(r.Scopes) == 0 || len(j.absent) > 0 {
		return // a producer alone, or other processes receive
	}
	watched := map[string]bool{}
	for _, s := range r.Scopes {
		watched[s.Destination] = true
	}
	for _, key := range j.order {
		if d := j.sent[key].Destination; !watched[d] && j.sent[key].Count > 0 {
			watched[d] = true
			r.Unwatched = append(r.Unwatched, d)
		}
	}
}

// lostOnQueues reports whether messages were lost on queues, where other consumers may take messages away.
func (r *Result) lostOnQueues() bool {
	return slices.ContainsFunc(r.Scopes, func(s Scope) bool {
		return s.Lost > 0 && strings.HasPrefix(s.Destination, driver.Queue.String()+":")
	})
}

func (j *judge) notes(r *Result) {
	note := func(format string, args ...any) { r.Notes = append(r.Notes, fmt.Sprintf(format, args...)) }
	half := func(others string) {
		note("without the %s no losses are detected: perfmq verify joins the files of all", others)
	}
	t := &r.Total
	for _, run := range slices.Sorted(maps.Keys(j.absent)) {
		note("shards of run %d %s: %s; perfmq merge or perfmq verify joins all and detects losses", run, AbsentNote,
			words.First(j.absent[run], maxNamed, ", "))
	}
	switch {
	case len(j.absent) > 0:
	case len(r.Scopes) == 0:
		half("consumers")
	case len(j.sent) == 0:
		half("producers")
	case j.partial:
		note("with a selector losses are not detected")
	}
	if t.Lost > 0 && r.lostOnQueues() {
		note("messages of the queue's other consumers look lost here")
	}
	if t.Lost > 0 && j.expires {
		note("the broker may have dropped lost messages by their time to live")
	}
	if t.Early > 0 {
		note("messages sent before the subscription existed: %d", t.Early)
	}
	if t.Gaps > 0 {
		note("numbers missing below the highest received: %d; other consumers may have had them", t.Gaps)
	}
}
