package run

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/rendezvous"
	"github.com/perfmq/perfmq/internal/threshold"
	"github.com/perfmq/perfmq/pkg/result"
)

// meet joins the rendezvous, which gives the number of the run. It is false if a signal ended the wait.
func (r *Run) meet(halt chan string) (err error, ended bool) {
	head, err := r.describe()
	if err != nil {
		return err, true
	}
	hash, err := result.Hash(head.Plan)
	if err != nil {
		return err, true
	}
	of := rendezvous.Shard{
		Shard: *head.Shard, Version: r.Version.Number, PlanHash: hash, Host: head.Host.Name,
		ClockShift: r.Plan.ClockShift,
	}
	whole := plan.Step{Thresholds: r.Plan.Thresholds} // without a name
	for _, s := range append([]plan.Step{whole}, r.Plan.Steps...) {
		for _, t := range s.Thresholds {
			if t.Abort {
				of.Aborts = append(of.Aborts, threshold.Abort{Step: s.Name, Threshold: t.String()})
			}
		}
	}
	if !r.Outputs.Silent {
		r.Say("note: waiting for the other shards at " + r.Meeting.URL)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	err, ended = UntilSignal(r.Signals, func() (err error) {
		r.member, err = rendezvous.Join(ctx, r.Meeting, of, halt, r.Say)
		return err
	})
	if !ended || err != nil {
		return err, ended
	}
	r.Plan.RunID = r.member.RunID
	if r.Outputs.Result == "" {
		if r.temporary, err = os.MkdirTemp("", "perfmq-shard-"); err != nil {
			return err, true
		}
		r.Outputs.SetFolder(filepath.Join(r.temporary, "result"), r.Plan)
	}
	r.member.Dir = r.Outputs.Result
	return nil, true
}

// leave hands the result over to the rendezvous. A folder of its own stays if that is not possible.
func (r *Run) leave(e *Ending) {
	if r.member == nil {
		return
	}
	limit := time.Hour // each request has a limit, and so has a time without progress
	if e.Abandoned {
		limit = lastGrace
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	bye := rendezvous.Goodbye{Status: e.Status()}
	switch s := e.Summary; {
	case r.member.Ended():
	case e.Abandoned, e.Interrupted:
		bye.Early = "was interrupted"
	case s == nil:
		bye.Early = "could not begin: " + r.Secrets.Line(cmp.Or(e.Err, errors.New("no load was made")).Error())
	case s.Err != nil:
		bye.Early = "failed: " + r.Secrets.Line(s.Err.Error())
	}
	err, ended := UntilSignal(r.Signals, func() error { return r.member.Leave(ctx, bye, !e.Abandoned) })
	if e.Summary != nil && (err != nil || !ended) {
		e.Closing = errors.Join(e.Closing, err)
		r.Say("note: the result of this shard is in " + r.Outputs.Result)
		return
	}
	if r.temporary != "" {
		e.Closing = errors.Join(e.Closing, os.RemoveAll(r.temporary))
	}
}
