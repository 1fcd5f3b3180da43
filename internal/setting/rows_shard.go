package setting

import (
	"errors"

	"github.com/perfmq/perfmq/internal/plan"
)

// JobIndex is the variable that tells a pod of a Kubernetes Indexed Job which one it is, counted from 0.
const JobIndex = "JOB_COMPLETION_INDEX"

// maxRunID is the length of the longest name of a run in bytes.
const maxRunID = 256

func shardRows() []Setting {
	return []Setting{
		{
			Name: "shard", Section: SectionHosts, Arg: "NUMBER/COUNT",
			Help: "do the part NUMBER of COUNT of the run, such as 2/5: the producers and consumers are dealt out in turn, " +
				"and all shards together send what one " +
				"process would, at the same moments. COUNT alone, such as 5, takes the number from " + JobIndex +
				" of a Kubernetes Indexed Job. perfmq merge joins the results",
			Set: func(s *Values, t string) (err error) {
				s.Shard, err = plan.ParseShard(t)
				return err
			},
		},
		{
			Name: "run-id", Section: SectionHosts, Arg: argName, Default: "made of --start-at and the plan",
			Help: "name of the run that all shards have in common: a text that no other run has, such as that of a job",
			Set: func(s *Values, t string) error {
				switch {
				case t == "":
					return errors.New("is empty")
				case len(t) > maxRunID:
					return errors.New("must be at most 256 bytes long")
				}
				s.RunID = t
				return nil
			},
		},
		{
			Name: "start-at", Section: SectionHosts, Arg: "MOMENT", Default: "when connected",
			Help: "begin the load then, by the clock of this machine: 2026-03-01T12:00:00Z, seconds since 1970, or from now " +
				"on, such as +10s",
			Set: func(s *Values, t string) (err error) {
				s.StartAt, err = plan.ParseMoment(t)
				return err
			},
		},
	}
}
