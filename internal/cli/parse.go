package cli

import (
	"errors"
	"math/big"
	"strings"
	"time"

	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/pkg/driver"
)

// parseDuration reads 20s, 1m30s or 250ms, and plain numbers, which may have decimals, in the given unit.
func parseDuration(text, unit string) (time.Duration, error) {
	errForm := errors.New("want a time such as 20, 20s, 1m30s or 250ms; a plain number is in " + unitName(unit))
	if text == "" || strings.ContainsAny(text[:1], "+-") {
		if len(text) > 1 && text[0] == '-' {
			return 0, errors.New("must not be negative")
		}
		return 0, errForm
	}
	if strings.Trim(text, "0123456789.") == "" {
		text += unit
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, errForm
	}
	return d, nil
}

func unitName(unit string) string {
	if unit == "ms" {
		return "milliseconds"
	}
	return "seconds"
}

// sizeUnit returns the bytes of a unit in lower case.
func sizeUnit(name string) (bytes int64, known bool) {
	switch name {
	case "", "b":
		return 1, true
	case "kb":
		return 1e3, true
	case "mb":
		return 1e6, true
	case "gb":
		return 1e9, true
	case "kib":
		return 1 << 10, true
	case "mib":
		return 1 << 20, true
	case "gib":
		return 1 << 30, true
	default:
		return 0, false
	}
}

// parseSize reads the size of a message.
func parseSize(text string) (int, error) {
	n, err := parseBytes(text, plan.MaxMessageSize)
	if errors.Is(err, errTooLarge) {
		return 0, errors.New("want at most 1GiB")
	}
	return int(n), err
}

var errTooLarge = errors.New("is too large")

// parseBytes reads a number of bytes, at most so many: 1024, 10KB (10000), 10KiB (10240), 1.5MiB.
func parseBytes(text string, most int64) (int64, error) {
	errForm := errors.New("want bytes such as 1024, 10KB (10000) or 10KiB (10240)")
	i := strings.IndexFunc(text, func(r rune) bool { return (r < '0' || r > '9') && r != '.' })
	if i < 0 {
		i = len(text)
	}
	digits, unit := text[:i], strings.ToLower(strings.TrimSpace(text[i:]))
	if unit == "k" || unit == "m" || unit == "g" {
		u := strings.ToUpper(unit)
		return 0, errors.New("write " + u + "iB for powers of 1024 or " + u + "B for powers of 1000")
	}
	factor, known := sizeUnit(unit)
	if !known || digits == "" || len(digits) > 20 {
		if strings.HasPrefix(text, "-") {
			return 0, errors.New("must not be negative")
		}
		return 0, errForm
	}
	number, ok := new(big.Rat).SetString(digits)
	if !ok {
		return 0, errForm
	}
	number.Mul(number, new(big.Rat).SetInt64(factor))
	switch {
	case !number.IsInt():
		return 0, errors.New("is not a whole number of bytes")
	case number.Cmp(big.NewRat(most, 1)) > 0:
		return 0, errTooLarge
	}
	return number.Num().Int64(), nil
}

// parseProperty reads key=value; the value may be empty and may hold more equals signs.
func parseProperty(text string) (driver.Property, error) {
	key, value, ok := strings.Cut(text, "=")
	if !ok || key == "" {
		return driver.Property{}, errors.New("want key=value")
	}
	if strings.ContainsAny(key, " \t\r\n\x00") {
		return driver.Property{}, errors.New("want a key without spaces")
	}
	return driver.Property{Key: key, Value: value}, nil
}
