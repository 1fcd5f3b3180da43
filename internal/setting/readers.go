package setting

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/perfmq/perfmq/internal/broker"
	"github.com/perfmq/perfmq/internal/load"
	"github.com/perfmq/perfmq/internal/nearest"
	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/quantity"
	"github.com/perfmq/perfmq/internal/threshold"
	"github.com/perfmq/perfmq/pkg/driver"
)

type setter = func(*Values, string) error

func text(field func(*Values) *string) setter {
	return func(s *Values, t string) error {
		*field(s) = t
		return nil
	}
}

// filled takes a text that must not be empty, and of printable characters: an empty variable of a script must not let a
// load go to the default broker, and the consoles print it.
func filled(field func(*Values) *string) setter {
	return func(s *Values, t string) error {
		if strings.TrimSpace(t) == "" {
			return errors.New("is empty: give a value, or leave it out for the default")
		}
		if strings.ContainsFunc(t, func(r rune) bool { return !strconv.IsPrint(r) }) {
			return errors.New("has a character that cannot be printed")
		}
		*field(s) = t
		return nil
	}
}

func setFailOnDisorder(s *Values, t string) error {
	var fail bool
	err := onOff(func(*Values) *bool { return &fail })(s, t)
	s.Allow.Disorder = !fail
	return err
}

func onOff(field func(*Values) *bool) setter {
	return func(s *Values, t string) error {
		b, err := strconv.ParseBool(t)
		if err != nil {
			return errors.New("must be true or false")
		}
		*field(s) = b
		return nil
	}
}

func whole(lowest, highest int, field func(*Values) *int) setter {
	return func(s *Values, t string) error {
		n, err := quantity.Whole(t, int64(lowest), int64(highest))
		if err == nil {
			*field(s) = int(n)
		}
		return err
	}
}

// oneOf takes one of a few words.
func oneOf(words []string, field func(*Values) *string) setter {
	return func(s *Values, t string) error {
		if !slices.Contains(words, t) {
			return errors.New("must be one of " + strings.Join(words, ", "))
		}
		*field(s) = t
		return nil
	}
}

func setFormat(s *Values, t string) error {
	switch strings.ToLower(t) {
	case "json":
		return errors.New("is about the console: --json FILE writes JSON, --json - to standard output")
	case "hdr":
		return errors.New("is about the console: --hdr FILE writes an HdrHistogram log")
	}
	return oneOf(formats(), func(s *Values) *string { return &s.Format })(s, t)
}

func span(unit time.Duration, field func(*Values) *time.Duration) setter {
	return func(s *Values, t string) error {
		d, err := quantity.Duration(t, unit)
		if err == nil {
			*field(s) = d
		}
		return err
	}
}

func setReconnectDelay(s *Values, t string) error {
	err := span(time.Second, func(s *Values) *time.Duration { return &s.ReconnectDelay })(s, t)
	if err == nil && s.ReconnectDelay < time.Millisecond {
		return fmt.Errorf("%v is shorter than 1ms", s.ReconnectDelay)
	}
	return err
}

// The value of --metrics-linger that waits for a scrape, and for how long.
const (
	lingerScrape    = "scrape"
	lingerScrapeMax = time.Minute
)

func setLinger(s *Values, t string) error {
	if s.LingerScrape = t == lingerScrape; s.LingerScrape {
		s.MetricsLinger = lingerScrapeMax
		return nil
	}
	err := span(time.Second, func(s *Values) *time.Duration { return &s.MetricsLinger })(s, t)
	if err != nil {
		return fmt.Errorf("%w, or %s", err, lingerScrape)
	}
	return nil
}

func setRate(s *Values, t string) (err error) {
	if s.Relative, err = plan.ParseRelative(t); s.Relative != nil || err != nil {
		s.Rate = load.Schedule{}
		return err
	}
	s.Rate, err = load.ParseSchedule(t)
	return err
}

func setConsumerRate(s *Values, t string) (err error) {
	s.ConsumerRate, err = load.ParseRate(t)
	return err
}

func setConsumerFail(s *Values, t string) (err error) {
	s.ConsumerFail, err = load.ParseShare(t)
	return err
}

// failures are the verdicts with which consumers fail.
func failures() []string { return []string{driver.Release.String(), driver.Reject.String()} }

func setConsumerFailAs(s *Values, t string) error {
	word := ""
	err := oneOf(failures(), func(*Values) *string { return &word })(s, t)
	if s.ConsumerFailAs = driver.Release; word == driver.Reject.String() {
		s.ConsumerFailAs = driver.Reject
	}
	return err
}

func setConsumerWork(s *Values, t string) (err error) {
	s.ConsumerWork, err = load.ParseWork(t)
	return err
}

func setMarks(s *Values, t string) error {
	var list []uint64
	for _, text := range strings.Split(t, ",") {
		exact, err := quantity.Number(strings.TrimSpace(text))
		if err != nil {
			return err
		}
		if !exact.IsInt() || !exact.Num().IsInt64() || exact.Sign() <= 0 {
			return errors.New("must be numbers of messages")
		}
		n := exact.Num().Uint64()
		if len(list) > 0 && n <= list[len(list)-1] {
			return errors.New("must rise")
		}
		list = append(list, n)
	}
	s.Marks = list
	return nil
}

func setCount(s *Values, t string) error {
	n, err := quantity.Whole(t, 0, math.MaxInt64)
	if err == nil {
		s.Count = uint64(n) //nolint:gosec // it is not negative
	}
	return err
}

// size takes a number of bytes of at least lowest.
func size(lowest int, field func(*Values) *int) setter {
	return func(s *Values, t string) error {
		n, err := parseSize(t)
		switch {
		case err != nil:
			return err
		case n < lowest:
			return fmt.Errorf("must be at least %d bytes", lowest)
		}
		*field(s) = n
		return nil
	}
}

// parseSize reads the size of a message.
func parseSize(text string) (int, error) {
	n, err := quantity.Bytes(text, plan.MaxMessageSize)
	return int(n), err
}

func setProperty(s *Values, t string) error {
	p, err := parseProperty(t)
	if err != nil {
		return err
	}
	for i := range s.Properties {
		if s.Properties[i].Key == p.Key { // the flag over the environment, the later over the earlier
			s.Properties[i] = p
			return nil
		}
	}
	s.Properties = append(s.Properties, p)
	return nil
}

// The bounds of labels.
const (
	maxLabels   = 64
	maxLabelLen = 1024
)

func setLabel(s *Values, t string) error {
	name, text, ok := strings.Cut(t, "=")
	if !ok {
		name = "" // the whole is none
	}
	if err := CheckLabel(name, text); err != nil {
		return err
	}
	if s.Labels == nil {
		s.Labels = map[string]string{}
	}
	s.Labels[name] = text
	if len(s.Labels) > maxLabels {
		return fmt.Errorf("must be one of at most %d labels", maxLabels)
	}
	return nil
}

// CheckLabel finds mistakes in a label.
func CheckLabel(name, text string) error {
	switch {
	case name == "" || strings.ContainsFunc(name, func(r rune) bool { return !isLabelRune(r) }):
		return errors.New("must be NAME=TEXT, with letters, digits, - and _ in the name")
	case len(name)+len("=")+len(text) > maxLabelLen:
		return fmt.Errorf("must be at most %d bytes long", maxLabelLen)
	}
	return nil
}

func isLabelRune(r rune) bool {
	return r == '_' || r == '-' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
}

func setOption(s *Values, t string) error {
	if key, _, ok := strings.Cut(t, "="); !ok || key == "" {
		return errors.New("must be KEY=VALUE")
	}
	s.Options = append(s.Options, t)
	return nil
}

// setMessageSizes reads one size, or several as fio's bssplit has them: 1KiB/80:64KiB/20. Without weights they are
// equal.
func setMessageSizes(s *Values, t string) error {
	var list []Sized
	for _, part := range strings.Split(t, ":") {
		text, weight, weighted := strings.Cut(part, "/")
		n, err := parseSize(text)
		if err != nil {
			return err
		}
		one := Sized{n, 1}
		if weighted {
			if one.Weight, err = Weight(weight); err != nil {
				return fmt.Errorf("must be SIZE/WEIGHT:SIZE/WEIGHT, such as 1KiB/80:64KiB/20: a weight %w", err)
			}
		}
		if list = append(list, one); len(list) > driver.MaxVariants {
			return fmt.Errorf("must be at most %d sizes", driver.MaxVariants)
		}
	}
	s.MessageSizes = list
	return nil
}

func thresholds(field func(*Values) *[]threshold.Threshold) setter {
	return func(s *Values, text string) error {
		t, err := ParseThreshold(text)
		if err == nil {
			*field(s) = append(*field(s), t)
		}
		return err
	}
}

// mostMeant is the maximum number of metrics in a suggestion.
const mostMeant = 4

// ParseThreshold reads a demand on a metric, and suggests the metric that was probably meant.
func ParseThreshold(text string) (threshold.Threshold, error) {
	t, err := threshold.Parse(text)
	var unknown *threshold.UnknownError
	if errors.As(err, &unknown) {
		return t, fmt.Errorf("%w: %s", err, strings.TrimSpace(meantMetric(unknown)+" perfmq scenario metrics lists all"))
	}
	return t, err
}

// meantMetric returns a hint at the metrics that were probably meant by an unknown one; "" if there are none.
func meantMetric(unknown *threshold.UnknownError) string {
	name := strings.ToLower(strings.ReplaceAll(unknown.Name, "_", "."))
	what, statistic, _ := strings.Cut(name, ".")
	switch digits := strings.TrimSuffix(statistic, "th"); {
	case statistic == "median":
		statistic = "p50"
	case statistic == "avg" || statistic == "average":
		statistic = "mean"
	case digits != "" && strings.Trim(digits, "0123456789.") == "":
		statistic = "p" + digits
	}
	var meant, names []string
	switch what {
	case "rate", "throughput", "tps", "mps", "speed":
		meant = []string{"completed.avg", "received.avg"}
	case "error", "errors", "failures":
		meant = []string{"failed", "rejected"}
	case "latency", "rt", "time", "e2e":
		statistic = cmp.Or(statistic, "p99")
		meant = []string{"response." + statistic, "ack." + statistic, "transfer." + statistic}
	}
	metrics := threshold.Metrics()
	seldom := func(m threshold.Metric) int { return int(m.Needs & (threshold.Reconnection | threshold.Stalls)) }
	slices.SortStableFunc(metrics, func(a, b threshold.Metric) int { return seldom(a) - seldom(b) })
	for _, m := range metrics {
		names = append(names, m.Name)
		of := strings.HasSuffix(m.Name, "."+unknown.Name) || strings.HasPrefix(m.Name, unknown.Name+".")
		if of && m.Unit.Reads(unknown.Value) || m.Name == what+"."+statistic {
			meant = append(meant, m.Name)
		}
	}
	if len(meant) == 0 {
		return nearest.Hint(unknown.Name, names, "%s", "")
	}
	return "did you mean " + strings.Join(meant[:min(len(meant), mostMeant)], ", or ") + "?"
}

func setFaults(s *Values, t string) (err error) {
	s.Faults, err = broker.ParseFaults(t)
	return err
}

// parseProperty reads key=value; the value may be empty and may hold more equals signs.
func parseProperty(text string) (driver.Property, error) {
	key, value, ok := strings.Cut(text, "=")
	if !ok || key == "" {
		return driver.Property{}, errors.New("must be KEY=VALUE")
	}
	if strings.ContainsAny(key, " \t\r\n\x00") {
		return driver.Property{}, errors.New("must have a key without spaces")
	}
	return driver.Property{Key: key, Value: value}, nil
}

// Weight reads the share of one of several messages.
func Weight(text string) (int, error) {
	n, err := quantity.Whole(text, 1, plan.MaxWeight)
	return int(n), err
}

// Quoted returns a value as it can stand in a message: as it is if it is plain.
func Quoted(value string) string {
	if value == "" || strings.ContainsFunc(value,
		func(r rune) bool { return r <= ' ' || r == '"' || !strconv.IsPrint(r) }) {
		return strconv.Quote(value)
	}
	return value
}
