// Command features turns the results of the conformance suite into a Markdown table: which feature works on which broker
// over which protocol.
//
//	PERFMQ_TEST_FEATURES=DIR go test -run Conformance ./internal/drivers/...
//	go run ./internal/brokertest/cmd/features DIR > docs/features.md
//
// Nothing is written by hand: a cell says what [drivertest.Run] found out. A failed check shows in the table, and makes
// the command fail.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/perfmq/perfmq/pkg/driver/drivertest"
)

func main() {
	flag.Usage = func() { fmt.Fprintln(os.Stderr, "usage: features DIR, the folder that PERFMQ_TEST_FEATURES named") }
	flag.Parse()
	if err := run(os.Stdout, flag.Args()); err != nil {
		fmt.Fprintf(os.Stderr, "error: %v\n", err)
		os.Exit(1)
	}
}

func run(out io.Writer, args []string) error {
	if len(args) != 1 {
		return errors.New("want one folder with results of the conformance suite")
	}
	list, err := read(args[0])
	if err != nil {
		return err
	}
	t := table{results: list}
	if _, err := io.WriteString(out, t.markdown()); err != nil {
		return fmt.Errorf("write the table: %w", err)
	}
	return t.failures()
}

// read returns the results in the folder, by protocol and broker.
func read(dir string) ([]drivertest.Results, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, fmt.Errorf("look into %s: %w", dir, err)
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s has no results: run the conformance tests with PERFMQ_TEST_FEATURES=%s (an absolute path)", dir, dir)
	}
	var list []drivertest.Results
	for _, file := range files {
		text, err := os.ReadFile(file) //nolint:gosec // the user named the folder
		if err != nil {
			return nil, fmt.Errorf("read results: %w", err)
		}
		var r drivertest.Results
		if err := json.Unmarshal(text, &r); err != nil {
			return nil, fmt.Errorf("read the results %s: %w", file, err)
		}
		list = append(list, r)
	}
	slices.SortFunc(list, func(a, b drivertest.Results) int {
		return strings.Compare(a.Protocol+"\x00"+a.Broker, b.Protocol+"\x00"+b.Broker)
	})
	return list, nil
}

// table is a column per result, a row per feature, and notes on what brokers lack.
type table struct {
	results []drivertest.Results
	notes   []string
}

// row is a feature and how users ask for it.
type row struct {
	feature drivertest.Feature
	title   string
}

func rows() []row {
	return []row{
		{drivertest.Queues, "Queues"},
		{drivertest.Topics, "Topics"},
		{drivertest.DurableSubscription, "Durable subscriptions (`--durable`)"},
		{drivertest.SharedSubscription, "Shared subscriptions (`--shared`)"},
		{drivertest.Persistent, "Persistent messages (`--persistent`)"},
		{drivertest.TTL, "Expiry (`--ttl`)"},
		{drivertest.Priority, "Priorities (`--priority`)"},
		{drivertest.Group, "Message groups (`--group`)"},
		{drivertest.Selector, "Selectors (`--selector`)"},
		{drivertest.Credit, "Receive window (`--credit`)"},
		{drivertest.Transactions, "Sending in transactions (`--commit-interval`)"},
		{drivertest.TransactedReceive, "Receiving in transactions (`--tx`)"},
	}
}

func (t *table) markdown() string {
	var b strings.Builder
	b.WriteString("# Features by broker and protocol\n\n" +
		"Made by `make features` from the results of the conformance suite (`pkg/driver/drivertest`) on these very brokers.\n" +
		"Do not edit it.\n\n" +
		"- **yes**: tested, it works. Of priorities and persistent messages the suite tests that they are accepted and\n" +
		"  delivered, not in which order the broker delivers or what survives its restart\n" +
		"- no, with a note: the broker lacks it; tested that perfmq says so instead of ignoring it\n" +
		"- –: perfmq does not have it over this protocol; tested that it is refused before anything is sent\n" +
		"- **FAILED**: a test failed\n\n")
	line := func(cells ...string) { b.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
	head, rule := []string{""}, []string{"---"}
	for i := range t.results {
		head, rule = append(head, t.results[i].Protocol+" on "+t.results[i].Broker), append(rule, "---")
	}
	line(head...)
	line(rule...)
	for _, r := range rows() {
		cells := []string{r.title}
		for i := range t.results {
			cells = append(cells, t.cell(&t.results[i], r.feature))
		}
		line(cells...)
	}
	cells := []string{"Checks passed, of all"}
	for i := range t.results {
		passed := 0
		for _, c := range t.results[i].Checks {
			if c.Passed {
				passed++
			}
		}
		cells = append(cells, fmt.Sprintf("%d of %d", passed, len(t.results[i].Checks)))
	}
	line(cells...)
	if len(t.notes) > 0 {
		b.WriteString("\n")
	}
	for i, note := range t.notes {
		fmt.Fprintf(&b, "%d. %s\n", i+1, note)
	}
	return b.String()
}

// cell says what was found out. Results without the feature are from before it was tested.
func (t *table) cell(r *drivertest.Results, f drivertest.Feature) string {
	for _, found := range r.Features {
		if found.Feature != f {
			continue
		}
		switch found.State {
		case drivertest.Works:
			return "**yes**"
		case drivertest.BrokerLacks:
			return fmt.Sprintf("no (%d)", t.note(r.Broker+": "+found.Reason))
		case drivertest.ProtocolRefuses:
			return "–"
		default:
			return "**FAILED**"
		}
	}
	return "not tested"
}

// note returns the number of a note, the same for the same text.
func (t *table) note(text string) int {
	if i := slices.Index(t.notes, text); i >= 0 {
		return i + 1
	}
	t.notes = append(t.notes, text)
	return len(t.notes)
}

// failures are the checks that failed, as an error.
func (t *table) failures() error {
	var errs []error
	for i := range t.results {
		for _, c := range t.results[i].Checks {
			if !c.Passed {
				errs = append(errs, fmt.Errorf("%s on %s: %s failed", t.results[i].Protocol, t.results[i].Broker, c.Name))
			}
		}
	}
	return errors.Join(errs...)
}
