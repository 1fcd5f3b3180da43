//go:build unix

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v4"

	"github.com/perfmq/perfmq/internal/musttest"
	perfmqresult "github.com/perfmq/perfmq/pkg/result"
)

// jobArgs returns the arguments and the variables of deploy/kubernetes/job.yaml.
func jobArgs(t *testing.T) (args []string, env map[string]string) {
	t.Helper()
	text := musttest.Get(os.ReadFile("../../deploy/kubernetes/job.yaml"))(t)
	var job struct {
		Spec struct {
			Template struct {
				Spec struct {
					Containers []struct {
						Args []string `yaml:"args"`
						Env  []struct {
							Name  string `yaml:"name"`
							Value string `yaml:"value"`
						} `yaml:"env"`
					} `yaml:"containers"`
				} `yaml:"spec"`
			} `yaml:"template"`
		} `yaml:"spec"`
	}
	require.NoError(t, yaml.Unmarshal(text, &job))
	require.Len(t, job.Spec.Template.Spec.Containers, 1)
	c := job.Spec.Template.Spec.Containers[0]
	env = map[string]string{}
	for _, v := range c.Env {
		env[v.Name] = v.Value
	}
	return c.Args, env
}

// Three processes as the pods of an Indexed Job make one load, with the arguments of deploy/kubernetes/job.yaml, and
// their results are joined: every message is found, and their clocks, which are one, agree.
func TestShardsOfAJob(t *testing.T) {
	t.Parallel()
	args, env := jobArgs(t)
	for _, name := range []string{"PERFMQ_RUN_ID", "PERFMQ_START_AT", "PERFMQ_USER", "PERFMQ_PASSWORD", "JOB_NAME"} {
		require.Contains(t, env, name)
	}
	require.Contains(t, args, "--result=/results/$(JOB_NAME)-$(JOB_COMPLETION_INDEX)")
	url := serve(t).at("amqp")
	base := t.TempDir()
	at := time.Now().Add(8 * time.Second).Truncate(time.Second)
	var shards []*process
	var dirs []string
	for i := range 3 {
		pod := slices.Clone(args)
		for k, arg := range pod {
			name, _, _ := strings.Cut(arg, "=")
			switch name {
			case "--shard":
				pod[k] = "--shard=3"
			case "--url":
				pod[k] = "--url=" + url
			case "--producers", "--consumers":
				pod[k] = name + "=4"
			case "--rate":
				pod[k] = "--rate=900"
			case "--warmup":
				pod[k] = "--warmup=1s"
			case "--duration":
				pod[k] = "--duration=4s"
			case "--result":
				dirs = append(dirs, filepath.Join(base, fmt.Sprintf("load-%d", i)))
				pod[k] = "--result=" + dirs[i]
			}
		}
		var words []string // the check of each run expects flags and values as separate arguments
		for _, arg := range pod {
			name, value, ok := strings.Cut(arg, "=")
			if words = append(words, name); ok {
				words = append(words, value)
			}
		}
		pod = append(words, "--run-id", "uid-1", "--start-at", fmt.Sprint(at.Unix()))
		shards = append(shards, startIn(t, []string{"JOB_NAME=load", fmt.Sprint("JOB_COMPLETION_INDEX=", i)}, pod...))
	}
	for _, p := range shards {
		r := p.wait(limit)
		require.Equal(t, statusOK, r.status, r.stderr)
	}
	all := filepath.Join(base, "all")
	r := run(t, limit, append([]string{"merge", "--result", all}, dirs...)...)
	require.Equal(t, statusOK, r.status, r.stdout)
	m := musttest.Get(perfmqresult.Read(all))(t)
	// A busy machine may not send the last messages in time. The result counts them as unsent.
	require.EqualValues(t, 3600, m.Total.Producers.Sent+*m.Figures.Unsent)
	require.Equal(t, m.Total.Producers.Sent, m.Verification.Total.Once)
	require.InDelta(t, at.UnixMicro(), m.Start, 1e6, "as two readings of the clock agree on a busy machine")
	require.Len(t, m.Parts, 3)
	for i, part := range m.Parts {
		require.Equal(t, perfmqresult.Shard{Number: i + 1, Of: 3}, *part.Shard)
		if part.Clock == nil { // on a machine that sets its clock, or holds a process up, meanwhile: then it says so
			require.Contains(t, strings.Join(m.Outcome.Warnings, "\n"), "is not known", "messages went all ways")
			t.Log(m.Outcome.Warnings)
			continue
		}
		require.LessOrEqual(t, max(part.Clock.Start.Ahead, -part.Clock.Start.Ahead), perfmqresult.Difference(part.Clock.Start.Error))
	}
	r = run(t, limit, append([]string{"verify"}, dirs[:2]...)...)
	require.Equal(t, statusUsage, r.status)
	require.Contains(t, r.stderr, "shards of run ")
}
