package cli

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/perfmq/perfmq/internal/broker/store"
	"github.com/perfmq/perfmq/internal/load"
	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/run"
	"github.com/perfmq/perfmq/internal/threshold"
	"github.com/perfmq/perfmq/pkg/driver"
)

// settings are the values of all flags, each read by itself; what they mean together is for the plan.
type settings struct {
	url, consumerURL               string
	protocol, consumerProtocol     string
	client                         string
	user, password, passwordFile   string
	clientID                       string
	tls                            driver.TLS
	connectTimeout, drainTimeout   time.Duration
	numDestinations                int
	producers, consumers           int
	threads                        int
	sharedConnections              bool
	consumerConnections            int
	maxPending                     int
	rate                           load.Schedule
	relative                       *plan.Relative
	count                          uint64
	duration, warmup               time.Duration
	messageSizes                   []sized
	bodyFile, fill                 string
	persistent                     bool
	ttl                            time.Duration
	priority                       int
	messageGroup                   string
	properties                     []driver.Property
	commitInterval                 int
	durable, keepSubscription, tx  bool
	txSize                         int
	shared                         int
	selector                       string
	credit, maxMessageSize         int
	consumerWork                   load.Work
	consumerRate                   load.Rate
	showLatency, silent, dryRun    bool
	format                         string
	jsonFile, hdrFile, metricsAddr string
	resultDir                      string
	metricsLinger                  time.Duration
	options                        []string
	labels                         map[string]string
	waitForBroker                  time.Duration
	thresholds                     []threshold.Threshold
	verifySettings
	embedded bool
	faults   store.Faults

	origins map[string]origin // of the flags that are not at their default
	bad     map[string]bool   // flags whose value could not be read
}

// newSettings returns the defaults.
func newSettings() *settings {
	return &settings{
		client: driver.Native, txSize: 1, connectTimeout: 10 * time.Second, drainTimeout: 30 * time.Second,
		numDestinations: 1, producers: 1, consumers: 1, maxPending: 1, messageSizes: []sized{{1024, 1}}, fill: string(plan.Random), priority: -1, format: run.Artemis,
		maxMessageSize: driver.DefaultMaxBody,
		origins:        map[string]origin{}, bad: map[string]bool{},
	}
}

// has tells whether the user gave the flag, in whatever way.
func (s *settings) has(flag string) bool { _, ok := s.origins[flag]; return ok }

type setter = func(*settings, string) error

func text(field func(*settings) *string) setter {
	return func(s *settings, t string) error {
		*field(s) = t
		return nil
	}
}

// filled takes a text that must not be empty: an empty variable of a script must not let a load go to the default broker.
func filled(field func(*settings) *string) setter {
	return func(s *settings, t string) error {
		if strings.TrimSpace(t) == "" {
			return errors.New("is empty: give a value, or leave it out for the default")
		}
		*field(s) = t
		return nil
	}
}

func onOff(field func(*settings) *bool) setter {
	return func(s *settings, t string) error {
		b, err := strconv.ParseBool(t)
		if err != nil {
			return errors.New("want true or false")
		}
		*field(s) = b
		return nil
	}
}

func whole(lowest, highest int, field func(*settings) *int) setter {
	return func(s *settings, t string) error {
		n, err := strconv.Atoi(t)
		switch {
		case err != nil:
			return errors.New("want a whole number")
		case n < lowest && highest == math.MaxInt32:
			return fmt.Errorf("want a whole number of at least %d", lowest)
		case n < lowest || n > highest:
			return fmt.Errorf("want a whole number from %d to %d", lowest, highest)
		}
		*field(s) = n
		return nil
	}
}

// oneOf takes one of a few words.
func oneOf(words []string, field func(*settings) *string) setter {
	return func(s *settings, t string) error {
		if !slices.Contains(words, t) {
			return errors.New("want one of " + strings.Join(words, ", "))
		}
		*field(s) = t
		return nil
	}
}

func span(unit string, field func(*settings) *time.Duration) setter {
	return func(s *settings, t string) error {
		d, err := parseDuration(t, unit)
		if err == nil {
			*field(s) = d
		}
		return err
	}
}

func setRate(s *settings, t string) (err error) {
	if s.relative, err = plan.ParseRelative(t); s.relative != nil || err != nil {
		s.rate = load.Schedule{}
		return err
	}
	s.rate, err = load.ParseSchedule(t)
	return err
}

func setConsumerRate(s *settings, t string) (err error) {
	s.consumerRate, err = load.ParseRate(t)
	return err
}

func setConsumerWork(s *settings, t string) (err error) {
	s.consumerWork, err = load.ParseWork(t)
	return err
}

func setCount(s *settings, t string) error {
	n, err := strconv.ParseUint(t, 10, 63)
	if err != nil {
		return errors.New("want a whole number of messages, 0 for no limit")
	}
	s.count = n
	return nil
}

// size takes a number of bytes of at least lowest.
func size(lowest int, field func(*settings) *int) setter {
	return func(s *settings, t string) error {
		n, err := parseSize(t)
		switch {
		case err != nil:
			return err
		case n < lowest:
			return fmt.Errorf("want at least %d bytes", lowest)
		}
		*field(s) = n
		return nil
	}
}

func setProperty(s *settings, t string) error {
	p, err := parseProperty(t)
	if err != nil {
		return err
	}
	for i := range s.properties {
		if s.properties[i].Key == p.Key { // the flag over the environment, the later over the earlier
			s.properties[i] = p
			return nil
		}
	}
	s.properties = append(s.properties, p)
	return nil
}

// The bounds of labels.
const (
	maxLabels   = 64
	maxLabelLen = 1024
)

func setLabel(s *settings, t string) error {
	name, text, ok := strings.Cut(t, "=")
	switch {
	case !ok || name == "" || strings.ContainsFunc(name, func(r rune) bool { return !isLabelRune(r) }):
		return errors.New("want NAME=TEXT, with letters, digits, - and _ in the name")
	case len(t) > maxLabelLen:
		return fmt.Errorf("want at most %d bytes", maxLabelLen)
	}
	if s.labels == nil {
		s.labels = map[string]string{}
	}
	s.labels[name] = text
	if len(s.labels) > maxLabels {
		return fmt.Errorf("want at most %d labels", maxLabels)
	}
	return nil
}

func isLabelRune(r rune) bool {
	return r == '_' || r == '-' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
}

func setOption(s *settings, t string) error {
	if key, _, ok := strings.Cut(t, "="); !ok || key == "" {
		return errors.New("want key=value")
	}
	s.options = append(s.options, t)
	return nil
}

// quoted returns a value as it can stand in a message: as it is if it is plain.
func quoted(value string) string {
	if value == "" || strings.ContainsFunc(value, func(r rune) bool { return r <= ' ' || r == '"' || !strconv.IsPrint(r) }) {
		return strconv.Quote(value)
	}
	return value
}
