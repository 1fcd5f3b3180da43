package cli

import (
	"errors"
	"fmt"

	"github.com/perfmq/perfmq/internal/nearest"
	"github.com/perfmq/perfmq/internal/threshold"
)

func setThreshold(s *settings, text string) error {
	t, err := parseThreshold(text)
	if err == nil {
		s.thresholds = append(s.thresholds, t)
	}
	return err
}

func parseThreshold(text string) (threshold.Threshold, error) {
	t, err := threshold.Parse(text)
	var unknown *threshold.UnknownError
	if errors.As(err, &unknown) {
		var names []string
		for _, m := range threshold.Metrics() {
			names = append(names, m.Name)
		}
		if n := nearest.Nearest(unknown.Name, names); n != "" {
			return t, fmt.Errorf("%w: did you mean %s? perfmq scenario metrics lists all", err, n)
		}
		return t, fmt.Errorf("%w: perfmq scenario metrics lists all", err)
	}
	return t, err
}

func suggestMetrics(*suggestions) (list []string) {
	for _, m := range threshold.Metrics() {
		list = append(list, m.Name+"\t"+m.Help)
	}
	return list
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
