package cli

import (
	"time"

	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/setting"
	"github.com/perfmq/perfmq/pkg/result"
)

// shard sets this process's part of a complete plan and the moment of its start. index is the completion index of a
// Kubernetes Job, or empty.
func (r *resolver) shard(p *plan.Plan, index string) {
	r.Side.Metrics.TLS = r.TLS // loaded by now
	now := time.Now()
	if m := r.StartAt.Mistake(now); m != nil {
		r.errs = append(r.errs, m)
	}
	p.StartAt = r.StartAt.Of(now)
	p.Shard = r.Shard
	if p.Shard.IsZero() {
		if r.RunID != "" && !r.Has("shard") {
			r.refuse("add --shard NUMBER/COUNT, or leave it out",
				"--run-id is for the shards of one run: other processes have each a number of their own")
		}
		return
	}
	if p.Shard.Number == 0 {
		if index == "" {
			r.refuse("give one of them, such as --shard 1/"+p.Shard.String(),
				"--shard %s: which of the shards is this? %s of a Kubernetes Indexed Job is not set",
				p.Shard, setting.JobIndex)
			p.Shard.Number = 1
		} else if at, err := p.Shard.At(index); err != nil {
			r.refuse("give --shard the number of completions of the Job", "%s=%s %v", setting.JobIndex, setting.Quoted(index),
				err)
			p.Shard.Number = 1
		} else {
			p.Shard = at
		}
	}
	if r.Embedded {
		r.refuse("start one with perfmq broker, and give its --url",
			"--shard %s does not go with --embedded: each shard would have a broker of its own", p.Shard)
	}
	switch {
	case r.RunID != "":
		p.RunID = plan.RunNumber(r.RunID)
	case !r.StartAt.At.IsZero():
		p.RunID = r.derived(p)
	}
}

// derived returns a run number from the plan and the moment of the start, so that all shards compute the same number.
func (r *resolver) derived(p *plan.Plan) int64 {
	text, err := plan.JSON(p, r.secrets.Field)
	if err == nil {
		var hash string
		if hash, err = result.Hash(text); err == nil {
			return plan.RunNumber(hash + " " + p.StartAt.UTC().Format(time.RFC3339Nano))
		}
	}
	r.errs = append(r.errs, err)
	return 0
}
