package cli

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/run"
	"github.com/perfmq/perfmq/internal/setting"
	"github.com/perfmq/perfmq/internal/sweep"
)

// preparations is the folder for the results of steps that run once per cell.
const preparations = "prepare"

// prepares reports whether a plan has steps that run once.
func prepares(p *plan.Plan) bool { return len(once(p).Steps) > 0 }

// unprepared refuses preparations whose messages would be removed before the runs begin.
func (w *sweeper) unprepared(p *plan.Plan) error {
	if !prepares(p) || w.between != setting.BetweenPurge && w.between != setting.BetweenFresh {
		return nil
	}
	return &plan.Mistake{
		Text: w.of.path + ": between-runs: " + w.between + ": no run would find the messages of the steps with once: true",
		Hint: "between-runs: keep, or reread over RocketMQ; or leave once out, so that each run has the step",
	}
}

// prepareCell runs the preparing steps of a cell, unless an equal preparation ran before. A failed preparation is not
// repeated before the next call of perfmq.
func (w *sweeper) prepareCell(r *sweep.Run, ready prepared) int {
	of := once(ready.plan)
	if len(of.Steps) == 0 {
		return exitOK
	}
	hash, err := hashOfPreparation(of)
	if err != nil {
		w.a.errors.print(err)
		return exitUsage
	}
	settings := *ready.settings
	say := func(format string, args ...any) {
		if !settings.Silent {
			w.a.errors.say(w.a.secrets.Line("note: " + fmt.Sprintf(format, args...)))
		}
	}
	if status, tried := w.prepared[hash]; tried {
		if status != exitOK {
			say("%s is left out: its preparation has failed", r.Folder)
		}
		return status
	}
	if !settings.Embedded && slices.Contains(w.state.Prepared, hash) {
		return exitOK // the embedded broker of an earlier call has ended
	}
	p := sweep.Run{
		Cell: r.Cell, Values: r.Values, Folder: preparations + "/" + hash[:8], State: sweep.Running,
		Attempts: 1,
	}
	dir, earlier, err := w.folder(&p)
	if err != nil {
		w.a.errors.print(err)
		return exitFailed
	}
	into(of, &settings, dir)
	identify(of, &p)
	say("preparing %s", cmp.Or(w.state.Title(r.Values), w.state.Name))
	if earlier != "" && !settings.Embedded {
		say("an earlier preparation has failed or was interrupted, and this one adds to the messages that it has sent: "+
			"where that matters, "+
			"purge the queues and begin again; its result is now %s", earlier)
	}
	status := w.load(&p, prepared{plan: of, settings: &settings})
	if status == exitThreshold {
		status = exitOK
	}
	w.prepared[hash] = status
	if status == exitOK {
		w.state.Prepared = append(w.state.Prepared, hash)
	}
	return status
}

// hashOfPreparation identifies a preparation by its plan, and by the labels if it has commands, which see them.
func hashOfPreparation(p *plan.Plan) (string, error) {
	hash, err := hashOf(p)
	commands := slices.ContainsFunc(p.Steps, func(s plan.Step) bool { return len(s.Before)+len(s.After) > 0 })
	if err != nil || !commands || len(p.Labels) == 0 {
		return hash, err
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %q", hash, p.Labels))
	return hex.EncodeToString(sum[:]), nil
}

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
	case setting.BetweenReread:
		return run.Reread(ready.plan, "perfmq-"+name)
	case setting.BetweenPurge:
		if ready.settings.Embedded {
			return nil
		}
		removed, err := run.Empty(w.a.Signals, ready.plan)
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
