//go:build unix

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/perfmq/perfmq/internal/brokertest"
	"github.com/perfmq/perfmq/internal/brokertest/peerbench"
	"github.com/perfmq/perfmq/pkg/result"
)

// clusterPlan is a shipped plan of the cluster evaluation. Its title has the messages a second that this measured.
type clusterPlan struct{ scenario, title string }

func clusterPlans() []clusterPlan {
	return []clusterPlan{
		{"cluster/plan-1", "plan 1: not persistent, not durable (7541 to 7760)"},
		{"cluster/plan-2", "plan 2: persistent, not durable (6663 to 7189)"},
		{"cluster/plan-3", "plan 3: persistent, durable (3 to 25)"},
	}
}

// clusterDeployments returns the names of the clusters on the page.
func clusterDeployments() []string {
	return []string{
		"activemq-pair", "activemq-jdbc", "activemq-journaled", "activemq-network", "artemis-pair", "artemis-replicated",
	}
}

// clusters carries out the plans of the cluster evaluation on each cluster, and writes the table of their rates.
func (s *session) clusters(ctx context.Context, length time.Duration, out string) error {
	made, err := originNow(ctx, &deployment{})
	if err != nil {
		return err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# Plans of a cluster evaluation\n\n`go run ./internal/brokertest/cmd/failures -clusters %s` starts "+
		"each cluster and carries out `perfmq run @cluster/plan-1` to `plan-3`\nfor that time, over STOMP and a failover "+
		"URL, with testdata/cluster.xml as the body. Do not edit this page.\n\nThe figures are messages received a "+
		"second, on average after the warm-up; in brackets those of the JMeter evaluation of other\nversions on other "+
		"machines. Brokers, database and perfmq shared one machine with %d processors, of which %.0f%% were in use before, "+
		"on %s:\nthe figures show that the plans run and that no message was lost or damaged, not what the clusters can do."+
		"\n\n| cluster |", length, runtime.NumCPU(), 100*made.Busy, made.Began.UTC().Format(time.DateOnly))
	for _, p := range clusterPlans() {
		fmt.Fprintf(&b, " %s |", p.title)
	}
	b.WriteString("\n| --- |" + strings.Repeat(" ---: |", len(clusterPlans())) + "\n")
	var errs []error
	for _, d := range deployments() {
		if !slices.Contains(clusterDeployments(), d.name) {
			continue
		}
		row, err := s.cluster(ctx, d, length)
		if errs = append(errs, err); err == nil {
			b.WriteString(row)
		}
	}
	return errors.Join(append(errs, write(out, b.String()))...)
}

// cluster returns the row of one cluster.
func (s *session) cluster(ctx context.Context, d *deployment, length time.Duration) (text string, err error) {
	c, err := d.launch(ctx, &failure{})
	if err != nil {
		return "", fmt.Errorf("start %s: %w", d.name, err)
	}
	defer func() { err = errors.Join(err, c.close()) }()
	e := &c.endpoints[slices.IndexFunc(c.endpoints, func(e endpoint) bool { return e.protocol == "stomp" })]
	url := "failover:(tcp://" + strings.Join(e.hosts, ",tcp://") + ")?randomize=false"
	text = "| " + c.title + " |"
	for _, p := range clusterPlans() {
		dir := filepath.Join(s.dir, d.name+"-"+filepath.Base(p.scenario))
		if err := os.RemoveAll(dir); err != nil {
			return "", err
		}
		told, err := peerbench.Perfmq(ctx, s.perfmq, "run", "@"+p.scenario, "--set", "time="+length.String(), "--url", url,
			"--user", brokertest.User, "--password", brokertest.Password, "--body-file", "testdata/cluster.xml", "--result", dir,
			"--silent").CombinedOutput()
		r, readErr := result.Read(dir)
		if readErr != nil || r.Figures.Received == nil {
			return "", fmt.Errorf("%s on %s: %w\n%s", p.scenario, d.name, cmp.Or(readErr, err), told)
		}
		text += fmt.Sprintf(" %.0f", *r.Figures.Received)
		if err != nil { // what failed is worth the page
			text += fmt.Sprintf(" (%s)", strings.Join(r.Outcome.Problems, "; "))
		}
		text += " |"
		fmt.Fprintf(os.Stderr, "%s\n", text)
	}
	return text + "\n", nil
}
