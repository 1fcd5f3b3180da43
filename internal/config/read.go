package config

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/perfmq/perfmq/internal/broker"
	"github.com/perfmq/perfmq/internal/brokerside"
	"github.com/perfmq/perfmq/internal/listen"
	"github.com/perfmq/perfmq/internal/load"
	"github.com/perfmq/perfmq/internal/nearest"
	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/quantity"
	"github.com/perfmq/perfmq/internal/rendezvous"
	"github.com/perfmq/perfmq/internal/threshold"
	"github.com/perfmq/perfmq/pkg/driver"
)

// read reads a value into a field of its type. Values of lists are added.
func (s *Setting) read(field any, text string) error { //nolint:gocyclo // a flat switch over types
	if words := s.Words(); words != nil && !slices.Contains(words, text) {
		return errors.New("must be one of " + strings.Join(words, ", "))
	}
	switch p := field.(type) {
	case *bool:
		return s.readBool(p, text)
	case *int, *int32, *int64, *uint64:
		return s.readWhole(reflect.ValueOf(p).Elem(), text)
	case *time.Duration:
		unit := time.Second
		if s.Tag.Get("unit") == "ms" {
			unit = time.Millisecond
		}
		return parseInto(p, text, func(t string) (time.Duration, error) { return s.readTime(t, unit) })
	case *string:
		*p = text
		return checkText(s.Tag.Get("check"), text)
	case *plan.HostOrder:
		*p = plan.HostOrder(text)
	case *driver.Verdict:
		*p = map[string]driver.Verdict{"release": driver.Release, "reject": driver.Reject}[text]
	case *plan.Rate:
		return parseInto(p, text, parseRate)
	case *load.Work:
		return parseInto(p, text, load.ParseWork)
	case *load.Rate:
		return parseInto(p, text, load.ParseRate)
	case *load.Share:
		return parseInto(p, text, load.ParseShare)
	case *load.Sample:
		return parseInto(p, text, load.ParseSample)
	case *load.Zipf:
		return parseInto(p, text, load.ParseZipf)
	case *plan.Shard:
		return parseInto(p, text, plan.ParseShard)
	case *plan.Moment:
		return parseInto(p, text, plan.ParseMoment)
	case *[]plan.Size:
		return parseInto(p, text, parseSizes)
	case *[]uint64:
		return parseInto(p, text, parseMarks)
	case *[]threshold.Threshold:
		return addTo(p, text, ParseThreshold)
	case *[]string:
		return addTo(p, text, func(t string) (string, error) { return t, checkText("pair", t) })
	case *[]driver.Property:
		return readProperty(p, text)
	case *map[string]string:
		return readLabel(p, text)
	case *brokerside.Endpoint:
		p.URL = text
		return brokerside.CheckURL(text)
	default:
		return fmt.Errorf("has the type %T", field)
	}
	return nil
}

// readTime reads a time; it may be 0 if the tag least begins with 0|.
func (s *Setting) readTime(text string, unit time.Duration) (time.Duration, error) {
	d, err := quantity.Duration(text, unit)
	least, zero := strings.CutPrefix(s.Tag.Get("least"), "0|")
	if shortest, _ := time.ParseDuration(least); err == nil && d < shortest && (d != 0 || !zero) {
		err = fmt.Errorf("%v is shorter than %v", d, shortest)
	}
	return d, err
}

// parseInto sets a field if its text can be parsed.
func parseInto[T any](field *T, text string, parse func(string) (T, error)) error {
	v, err := parse(text)
	if err == nil {
		*field = v
	}
	return err
}

// addTo adds to a list if the text can be parsed.
func addTo[T any](list *[]T, text string, parse func(string) (T, error)) error {
	v, err := parse(text)
	if err == nil {
		*list = append(slices.Clip(*list), v)
	}
	return err
}

func (s *Setting) readBool(p *bool, text string) error {
	if words := s.Words(); words != nil {
		*p = text == words[1]
		return nil
	}
	b, err := strconv.ParseBool(text)
	if err != nil {
		return errors.New("must be true or false")
	}
	*p = b != s.Is("not")
	return nil
}

// readWhole reads a whole number, or a number of bytes.
func (s *Setting) readWhole(field reflect.Value, text string) error {
	low, high, _ := strings.Cut(s.Tag.Get("range"), "..")
	lowest, _ := strconv.ParseInt(low, 10, 64) // 0 if there is none
	highest, err := strconv.ParseInt(high, 10, 64)
	largest := int64(plan.MaxMessageSize)
	switch {
	case err == nil:
		largest = highest
	case field.Kind() == reflect.Int || field.Kind() == reflect.Int32:
		highest = math.MaxInt32
	default:
		highest = math.MaxInt64
	}
	var n int64
	if s.Tag.Get("unit") == "bytes" {
		if n, err = quantity.Bytes(text, largest); err == nil && n < lowest {
			err = fmt.Errorf("must be at least %d bytes", lowest)
		}
	} else {
		n, err = quantity.Whole(text, lowest, highest)
	}
	switch {
	case err != nil:
	case field.CanUint():
		field.SetUint(uint64(n)) //nolint:gosec // not negative
	default:
		field.SetInt(n)
	}
	return err
}

// checkText returns the mistake of a text, by the name of the check.
func checkText(name, text string) error {
	switch name {
	case "filled":
		return checkFilled(text)
	case "credential":
		return CheckCredential(text)
	case "address":
		return errors.Join(checkFilled(text), checkUserinfo(text))
	case "management":
		return cmp.Or(brokerside.CheckManagement(text), checkUserinfo(text))
	case "rendezvous":
		return rendezvous.CheckURL(text)
	case "listen":
		return listen.Check(text)
	case "local":
		return plan.CheckLocal(text)
	case "faults":
		_, err := broker.ParseFaults(text)
		return err
	case "offset":
		_, err := driver.ParseStreamOffset(text, time.Now())
		return err
	case "destination":
		_, err := driver.ParseDestination(text)
		return err
	case "pair":
		if key, _, ok := strings.Cut(text, "="); !ok || key == "" {
			return errors.New("must be KEY=VALUE")
		}
	case "run-id":
		const longest = 256
		if text == "" {
			return errEmpty
		}
		return checkLength(len(text), longest)
	}
	return nil
}

var errEmpty = errors.New("is empty")

func checkLength(length, longest int) error {
	if length > longest {
		return fmt.Errorf("must be at most %d bytes long", longest)
	}
	return nil
}

// checkFilled refuses an empty text, and one that consoles cannot print: an empty variable of a script must not let a
// load go to the default broker.
func checkFilled(text string) error {
	if strings.TrimSpace(text) == "" {
		return errEmpty
	}
	if strings.ContainsFunc(text, func(r rune) bool { return !strconv.IsPrint(r) }) {
		return errors.New("has a character that cannot be printed")
	}
	return nil
}

// CheckCredential refuses a user name or password that no broker knows: a file or an editor has added to it. Its errors
// do not show the text.
func CheckCredential(text string) error {
	if strings.Trim(text, " ") != text {
		return errors.New("begins or ends with a blank")
	}
	return checkCharacters(text)
}

func checkCharacters(text string) error {
	wrong := func(r rune) bool { return r == '\ufeff' || unicode.IsControl(r) }
	if !utf8.ValidString(text) || strings.ContainsFunc(text, wrong) {
		return errors.New("has a control character or a byte order mark, or is not UTF-8")
	}
	return nil
}

// checkUserinfo checks user and password of a URL.
func checkUserinfo(url string) error {
	if err := checkCharacters(plan.User(url)); err != nil {
		return fmt.Errorf("the user %w", err)
	}
	if err := checkCharacters(plan.Password(url)); err != nil {
		return fmt.Errorf("the password %w", err)
	}
	return nil
}

func parseRate(text string) (r plan.Rate, err error) {
	if r.Relative, err = plan.ParseRelative(text); r.Relative == nil && err == nil {
		r.Schedule, err = load.ParseSchedule(text)
	}
	return r, err
}

func parseMarks(text string) (list []uint64, err error) {
	for part := range strings.SplitSeq(text, ",") {
		exact, err := quantity.Number(strings.TrimSpace(part))
		switch {
		case err != nil:
			return nil, err
		case !exact.IsInt() || !exact.Num().IsInt64() || exact.Sign() <= 0:
			return nil, errors.New("must be numbers of messages")
		}
		n := exact.Num().Uint64()
		if len(list) > 0 && n <= list[len(list)-1] {
			return nil, errors.New("must rise")
		}
		list = append(list, n)
	}
	return list, nil
}

// parseSizes reads one size, or several as fio's bssplit has them: 1KiB/80:64KiB/20, without weights equal ones;
// or those of a distribution.
func parseSizes(text string) (list []plan.Size, err error) {
	if strings.HasPrefix(text, plan.Lognormal+":") {
		return plan.LognormalSizes(text)
	}
	for part := range strings.SplitSeq(text, ":") {
		size, weight, weighted := strings.Cut(part, "/")
		n, err := quantity.Bytes(size, plan.MaxMessageSize)
		if err != nil {
			return nil, err
		}
		w := int64(1)
		if weighted {
			if w, err = quantity.Whole(weight, 1, plan.MaxWeight); err != nil {
				return nil, fmt.Errorf("must be like 1KiB/80:64KiB/20: a weight %w", err)
			}
		}
		if list = append(list, plan.Size{Bytes: int(n), Weight: int(w)}); len(list) > driver.MaxVariants {
			return nil, plan.TooMany("sizes", len(list), driver.MaxVariants)
		}
	}
	return list, nil
}

// readProperty adds a property, or replaces one of the same key: the flag wins over the environment, the later over the
// earlier.
func readProperty(list *[]driver.Property, text string) error {
	key, value, _ := strings.Cut(text, "=")
	if err := checkText("pair", text); err != nil {
		return err
	}
	if strings.ContainsAny(key, " \t\r\n\x00") {
		return errors.New("must have a key without spaces")
	}
	*list = slices.Clone(*list)
	i := slices.IndexFunc(*list, func(p driver.Property) bool { return p.Key == key })
	if i < 0 {
		*list = append(*list, driver.Property{Key: key, Value: value})
		return nil
	}
	(*list)[i].Value = value
	return nil
}

// The bounds of labels.
const (
	maxLabels   = 64
	maxLabelLen = 1024
)

func readLabel(labels *map[string]string, text string) error {
	name, value, ok := strings.Cut(text, "=")
	if !ok {
		name = "" // the whole is none
	}
	if err := CheckLabel(name, value); err != nil {
		return err
	}
	if *labels == nil {
		*labels = map[string]string{}
	}
	(*labels)[name] = value
	if len(*labels) > maxLabels {
		return plan.TooMany("labels", len(*labels), maxLabels)
	}
	return nil
}

// CheckLabel finds mistakes in a label.
func CheckLabel(name, text string) error {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"
	if name == "" || strings.Trim(name, letters) != "" {
		return errors.New("must be NAME=TEXT, the name of letters, digits, - and _")
	}
	return checkLength(len(name)+len("=")+len(text), maxLabelLen)
}

// ParseThreshold reads a threshold, and suggests the metrics that were probably meant.
func ParseThreshold(text string) (threshold.Threshold, error) {
	t, err := threshold.Parse(text)
	var unknown *threshold.UnknownError
	if !errors.As(err, &unknown) {
		return t, err
	}
	var meant, names []string
	for _, m := range threshold.Metrics() {
		names = append(names, m.Name)
		const most = 4                                                              // in a suggestion
		_, wrong := threshold.Parse(strings.Replace(text, unknown.Name, m.Name, 1)) // of a value of another unit
		of := strings.HasSuffix(m.Name, "."+unknown.Name) || strings.HasPrefix(m.Name, unknown.Name+".")
		if of && wrong == nil && len(meant) < most {
			meant = append(meant, m.Name)
		}
	}
	hint := nearest.Hint(unknown.Name, names, "%s", "")
	if len(meant) > 0 {
		hint = "did you mean " + strings.Join(meant, ", or ") + "?"
	}
	return t, fmt.Errorf("%w: %s", err, strings.TrimSpace(hint+" perfmq scenario metrics lists all"))
}

// Quoted returns a value as it can stand in a message: as it is if it is plain.
func Quoted(value string) string {
	if value == "" || strings.ContainsFunc(value,
		func(r rune) bool { return r <= ' ' || r == '"' || !strconv.IsPrint(r) }) {
		return strconv.Quote(value)
	}
	return value
}
