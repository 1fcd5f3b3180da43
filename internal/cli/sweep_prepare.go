package cli

import (
	"errors"
	"fmt"
	"slices"

	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/run"
	"github.com/perfmq/perfmq/internal/setting"
	"github.com/perfmq/perfmq/internal/sweep"
)

// identify sets the variables by which the commands of a plan know their run.
func identify(p *plan.Plan, r *sweep.Run) {
	p.Environ = append(slices.Clip(p.Environ), fmt.Sprintf("PERFMQ_CELL=%d", r.Cell), fmt.Sprintf("PERFMQ_REPEAT=%d",
		r.Repeat))
}

// separate keeps the messages of a run apart from those of earlier runs.
func (w *sweeper) separate(r *sweep.Run, ready prepared) error {
	name := fmt.Sprintf("%s-%d-%d", w.state.ID, r.Cell, r.Repeat)
	if r.Attempts > 1 {
		name += fmt.Sprintf("-%d", r.Attempts)
	}
	identify(ready.plan, r)
	switch w.between {
	case setting.BetweenFresh:
		ready.plan.Rename(func(destination string) string { return destination + "-" + name })
	case setting.BetweenPurge:
		if ready.settings.Embedded {
			return nil
		}
		removed, err := run.Empty(w.a.Signals, ready.plan, w.a.driver)
		if removed > 0 && !w.first.settings.Silent {
			were := fmt.Sprintf("%d messages were", removed)
			if removed == 1 {
				were = "1 message was"
			}
			w.a.errors.say("note: " + were + " removed from the queues before the run")
		}
		return err
	}
	return nil
}

// notSeparated reports an error of separate, and returns the exit status.
func (w *sweeper) notSeparated(err error) int {
	if errors.Is(err, run.ErrStopped) {
		w.a.errors.say(err.Error())
		return exitInterrupted
	}
	w.a.errors.print(err)
	return exitConnect
}
