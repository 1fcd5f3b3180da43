package cli

import (
	"time"

	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/setting"
	"github.com/perfmq/perfmq/pkg/result"
)

// shard fills in which part of a complete plan this process has, and when it begins. The index is that of a Kubernetes
// Job, if it is one.
func (r *resolver) shard(p *plan.Plan, index string) {
	p.BrokerSide.Metrics.TLS = r.TLS // which is loaded by now
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

// derived returns the number of a run that all shards come to by themselves: it is made of the plan and of the moment
// of the start.
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
