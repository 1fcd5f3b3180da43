package cli

import (
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/perfmq/perfmq/internal/nearest"
	"github.com/perfmq/perfmq/internal/threshold"
)

func setThreshold(s *settings, text string) error {
	t, err := threshold.Parse(text)
	var unknown *threshold.UnknownError
	if errors.As(err, &unknown) {
		var names []string
		for _, m := range threshold.Metrics() {
			names = append(names, m.Name)
		}
		if n := nearest.Nearest(unknown.Name, names); n != "" {
			return fmt.Errorf("%w: did you mean %s? perfmq scenario metrics lists all", err, n)
		}
		return fmt.Errorf("%w: perfmq scenario metrics lists all", err)
	}
	if err == nil {
		s.thresholds = append(s.thresholds, t)
	}
	return err
}

func suggestMetrics(*suggestions) (list []string) {
	for _, m := range threshold.Metrics() {
		list = append(list, m.Name+"\t"+m.Help)
	}
	return list
}

// scenarioCommand is perfmq scenario.
func (a *app) scenarioCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "scenario", Short: "What runs can be judged by", GroupID: groupOther, Args: cobra.ArbitraryArgs, RunE: a.wantCommand}
	cmd.AddCommand(&cobra.Command{
		Use: "metrics", Short: "List the metrics of --threshold", Args: noArguments,
		Long: `List the metrics that --threshold can be about, with their units.

Counts and latencies are of the messages due after the warm-up, unless the list says otherwise. Rates are messages per second
of the time between the warm-up and the drain; for them a value may be "90% of target", the target being --rate.`,
		RunE: func(*cobra.Command, []string) error {
			var b strings.Builder
			w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
			for _, m := range threshold.Metrics() {
				_, _ = fmt.Fprintf(w, "%s\t%s\t%s\n", m.Name, m.Unit, m.Help)
			}
			_ = w.Flush() // a strings.Builder takes all
			_, err := a.Stdout.Write([]byte(b.String()))
			return err
		},
	})
	return cmd
}

// judge returns the exit status of a run that succeeded otherwise, and says which thresholds it did not keep.
func (a *app) judge(outcomes []threshold.Outcome) int {
	status := exitOK
	for i := range outcomes {
		if !outcomes[i].Kept {
			a.errors.write("threshold: "+outcomes[i].String(), "")
			status = exitThreshold
		}
	}
	return status
}
