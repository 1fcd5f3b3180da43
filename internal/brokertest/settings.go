//go:build unix

package brokertest

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/perfmq/perfmq/internal/nearest"
)

// brokerSetting is a key of a broker's configuration that a caller may set.
type brokerSetting struct {
	name    string
	normal  string // its value when it is not set; empty: the broker's own default
	check   func(string) error
	newOnly bool // the older version that we start does not know it
}

func settingNames(known []brokerSetting) []string {
	names := make([]string, len(known))
	for i, k := range known {
		names[i] = k.name
	}
	return names
}

// checkSettings returns an error for each key that is not known, is not of that version, or has a value that is not
// allowed.
func checkSettings(set map[string]string, known []brokerSetting, old bool) error {
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(set)) {
		i := slices.IndexFunc(known, func(k brokerSetting) bool { return k.name == key })
		switch {
		case i < 0:
			errs = append(errs, unknownSetting(key, settingNames(known)))
		case old && known[i].newOnly:
			errs = append(errs, fmt.Errorf("setting %s: the older version does not have it", key))
		default:
			if err := known[i].check(set[key]); err != nil {
				errs = append(errs, fmt.Errorf("setting %s=%q: %w", key, set[key], err))
			}
		}
	}
	return errors.Join(errs...)
}

func unknownSetting(key string, known []string) error {
	hint := ""
	if n := nearest.Nearest(key, known); n != "" {
		hint = fmt.Sprintf(" (did you mean %s?)", n)
	}
	return fmt.Errorf("no setting %q%s: use one of %s", key, hint, strings.Join(known, ", "))
}

// settingOr returns the value of a key as set, or else its normal value.
func settingOr(set map[string]string, known []brokerSetting, key string) (string, error) {
	if value, ok := set[key]; ok {
		return value, nil
	}
	for _, k := range known {
		if k.name == key {
			return k.normal, nil
		}
	}
	return "", unknownSetting(key, settingNames(known))
}

func oneOf(values ...string) func(string) error {
	return func(s string) error {
		if !slices.Contains(values, s) {
			return fmt.Errorf("use %s", strings.Join(values, " or "))
		}
		return nil
	}
}

// artemisBytes is a number of bytes as broker.xml has it: 1048576, 1024K, 1M; -1 is no limit.
func artemisBytes(s string) error {
	if s == "-1" {
		return nil
	}
	if _, err := parseBytes(s); err != nil || !regexp.MustCompile(`^\d+[KMG]?$`).MatchString(s) {
		return errors.New("use a number of bytes, for example 1048576, 1024K, 10M or 1G; -1 is no limit")
	}
	return nil
}

// classicBytes is a number of bytes as activemq.xml has it: 1048576, 1024 kb, 1mb.
func classicBytes(s string) error {
	if _, err := parseBytes(s); err != nil {
		return errors.New(`use a number of bytes, for example 1048576, 1024kb, "64 mb" or 1gb`)
	}
	return nil
}

// parseBytes reads a size in either notation; units are powers of 1024.
func parseBytes(s string) (int64, error) {
	m := regexp.MustCompile(`^(\d+) ?(?:([kmg])b?|b)?$`).FindStringSubmatch(strings.ToLower(s))
	if m == nil {
		return 0, fmt.Errorf("%q is not a size", s)
	}
	n, err := strconv.ParseInt(m[1], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("read a size: %w", err)
	}
	unit := map[string]int64{"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}[m[2]]
	if n > math.MaxInt64/unit {
		return 0, fmt.Errorf("%q is too large", s)
	}
	return n * unit, nil
}

// count is a number of messages; -1 is no limit.
func count(s string) error {
	if n, err := strconv.ParseInt(s, 10, 64); err != nil || n < -1 {
		return errors.New("use a number; -1 is no limit")
	}
	return nil
}
