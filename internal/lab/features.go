//go:build unix

package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/perfmq/perfmq/pkg/driver/drivertest"
)

// featuresCommand turns the results of the conformance suite, in the folder that PERFMQ_TEST_FEATURES named, into a
// table of features by broker and protocol. A failed check is in the table, and makes the command fail.
func featuresCommand() command {
	short := false
	return command{
		name: "features", help: "the table of features from the results of the conformance suite",
		flags: func(fs *flag.FlagSet) {
			fs.BoolVar(&short, "short", false, "only the features that brokers lack, in words")
		},
		run: func(_ context.Context, s *session) error {
			list, err := readFeatures(s.dir)
			if err != nil {
				return err
			}
			t := featureTable{results: list}
			text := t.markdown()
			if short {
				text = t.short()
			}
			return errors.Join(write(s.out, text), t.failures())
		},
	}
}

// readFeatures returns the results in the folder, by broker and protocol.
func readFeatures(dir string) ([]drivertest.Results, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, fmt.Errorf("look into %s: %w", dir, err)
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s has no results: run the conformance tests with PERFMQ_TEST_FEATURES=%s (an absolute path)",
			dir, dir)
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
		return strings.Compare(a.Broker+"\x00"+a.Protocol, b.Broker+"\x00"+b.Protocol)
	})
	return list, nil
}

// featureTable is a row per result, a column per feature, and notes on the features that brokers lack.
type featureTable struct {
	results []drivertest.Results
	notes   []string
}

// feature is a feature, how users ask for it, and its head in a table.
type feature struct {
	feature     drivertest.Feature
	title, flag string
}

func featureColumns() []feature {
	return []feature{
		{drivertest.Queues, "Queues", ""},
		{drivertest.Topics, "Topics", ""},
		{drivertest.DurableSubscription, "Durable", "durable subscriptions, `--durable`"},
		{drivertest.SharedSubscription, "Shared", "shared subscriptions, `--shared`"},
		{drivertest.Persistent, "Persistent", "persistent messages, `--persistent`"},
		{drivertest.TTL, "Expiry", "`--ttl`"},
		{drivertest.Priority, "Priority", "`--priority`"},
		{drivertest.Group, "Groups", "message groups, `--group`"},
		{drivertest.Selector, "Selector", "`--selector`"},
		{drivertest.Credit, "Window", "receive window, `--credit`"},
		{drivertest.Transactions, "Tx send", "sending in transactions, `--commit-interval`"},
		{drivertest.TransactedReceive, "Tx receive", "receiving in transactions, `--tx`"},
		{drivertest.Properties, "Properties", "properties of the user's, `--property`"},
		{drivertest.Redelivered, "Redelivered", "the broker says that it has delivered a message before"},
		{drivertest.Reject, "Reject", "a consumer rejects messages"},
		{drivertest.Release, "Release", "a consumer gives messages back"},
		{drivertest.Delay, "Delayed", "delayed deliveries, `--delivery-delay`"},
		{drivertest.Text, "Text", "messages of text, `--message-type text`"},
		{drivertest.RequestReply, "Requests", "requests and replies, `--reply-to`"},
		{drivertest.DynamicReply, "Dynamic", "dynamic queues for replies"},
	}
}

// The marks that stand in cells.
const (
	markWorks   = "✓"
	markLacks   = "✗"
	markRefuses = "–"
	markFailed  = "**FAILED**"
)

// shortTitle is the name of a protocol where there is little room.
func shortTitle(protocol string) string {
	switch {
	case strings.HasPrefix(protocol, "Apache RocketMQ"):
		return "RocketMQ"
	case strings.HasPrefix(protocol, "STOMP"):
		return "STOMP"
	default:
		return protocol
	}
}

func (t *featureTable) markdown() string {
	var b strings.Builder
	first, rest := head("features")
	b.WriteString(first + "\n\n" + rest + "\n\n")
	columns, rule := []string{"Broker", "Protocol"}, []string{"---", "---"}
	var flags []string
	for _, c := range featureColumns() {
		columns, rule = append(columns, c.title), append(rule, ":-:")
		if c.flag != "" {
			flags = append(flags, c.title+": "+c.flag)
		}
	}
	tableRow(&b, append(columns, "Checks")...)
	tableRow(&b, append(rule, "--:")...)
	for i := range t.results {
		r := &t.results[i]
		cells := []string{r.Broker, shortTitle(r.Protocol)}
		for _, c := range featureColumns() {
			cells = append(cells, t.cell(r, c.feature))
		}
		passed := 0
		for _, c := range r.Checks {
			if c.Passed {
				passed++
			}
		}
		tableRow(&b, append(cells, fmt.Sprintf("%d of %d", passed, len(r.Checks)))...)
	}
	b.WriteString("\n" + strings.Join(flags, "; ") + ".\n")
	if len(t.notes) > 0 {
		b.WriteString("\n")
	}
	for i, note := range t.notes {
		fmt.Fprintf(&b, "%d. %s\n", i+1, note)
	}
	return b.String()
}

// short is the table of docs/protocols.md: the features that the brokers of each protocol lack, in words.
func (t *featureTable) short() string {
	var b strings.Builder
	b.WriteString("| Broker | Protocol | What it lacks, and perfmq refuses |\n| --- | --- | --- |\n")
	for i := range t.results {
		r := &t.results[i]
		var lacks, failed []string
		for _, c := range featureColumns() {
			switch state, _ := found(r, c.feature); state {
			case drivertest.BrokerLacks:
				lacks = append(lacks, strings.ToLower(c.title))
			case drivertest.Broken:
				failed = append(failed, strings.ToLower(c.title))
			case drivertest.Works, drivertest.ProtocolRefuses:
			}
		}
		text := strings.Join(lacks, ", ")
		if text == "" {
			text = "nothing"
		}
		if len(failed) > 0 {
			text += "; " + markFailed + ": " + strings.Join(failed, ", ")
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", r.Broker, shortTitle(r.Protocol), text)
	}
	return b.String()
}

// found returns the finding on a feature; an empty one of results from before it was tested.
func found(r *drivertest.Results, f drivertest.Feature) (state drivertest.State, reason string) {
	for _, found := range r.Features {
		if found.Feature == f {
			return found.State, found.Reason
		}
	}
	return "", ""
}

func (t *featureTable) cell(r *drivertest.Results, f drivertest.Feature) string {
	switch state, reason := found(r, f); state {
	case drivertest.Works:
		return markWorks
	case drivertest.BrokerLacks:
		return fmt.Sprintf("%s (%d)", markLacks, t.note(shortTitle(r.Protocol)+" on "+r.Broker+": "+reason))
	case drivertest.ProtocolRefuses:
		return markRefuses
	case "":
		return "not tested"
	default:
		return markFailed
	}
}

// note returns the number of a note, the same for the same text.
func (t *featureTable) note(text string) int {
	if i := slices.Index(t.notes, text); i >= 0 {
		return i + 1
	}
	t.notes = append(t.notes, text)
	return len(t.notes)
}

// failures are the checks that failed, as an error.
func (t *featureTable) failures() error {
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
