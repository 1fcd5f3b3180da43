package config

import (
	"time"

	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/pkg/result"
)

// JobIndex is the variable that tells a pod of a Kubernetes Indexed Job which one it is, counted from 0.
const JobIndex = "JOB_COMPLETION_INDEX"

// setShard sets this process's part of a complete plan and the moment of its start.
func (r *resolver) setShard(p *plan.Plan) {
	r.Side.Metrics.TLS = p.Brokers()[0].TLS // loaded by now
	now := time.Now()
	at := r.StartAt
	if m := at.Mistake(now); m != nil {
		r.errs = append(r.errs, m)
	}
	p.StartAt = at.Of(now)
	if p.Shard.IsZero() {
		if r.RunID != "" && !r.Has("shard") {
			r.add(plan.Needs("--run-id", "--shard"))
		}
		return
	}
	if p.Shard.Number == 0 {
		of, err := p.Shard.At(r.JobIndex)
		if err != nil {
			r.refuse("give --shard 1/"+p.Shard.String(), "--shard %s: %s=%s %v", p.Shard, JobIndex, Quoted(r.JobIndex),
				err)
		}
		if p.Shard = of; p.Shard.Number == 0 {
			p.Shard.Number = 1
		}
	}
	if p.Embedded {
		r.add(plan.Excludes("--shard", "--embedded"))
	}
	switch {
	case r.RunID != "":
		p.RunID = plan.RunNumber(r.RunID)
	case !at.At.IsZero():
		p.RunID = r.deriveRunID(p)
	}
}

// deriveRunID returns a run number from the plan and the moment of the start, so that all shards compute the same
// number.
func (r *resolver) deriveRunID(p *plan.Plan) int64 {
	text, err := plan.JSON(p, r.Secrets.Field)
	if err == nil {
		var hash string
		if hash, err = result.Hash(text); err == nil {
			return plan.RunNumber(hash + " " + p.StartAt.UTC().Format(time.RFC3339Nano))
		}
	}
	r.errs = append(r.errs, err)
	return 0
}
