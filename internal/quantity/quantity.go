// Package quantity reads numbers, sizes and times as people write them: 1k, 1e6, 10M, 64KiB, 1m30s. It is the only
// parser of them: flags, variables, scenario files, rates, thresholds, faults and options of protocols all take the
// same spellings.
//
// Values are exact: no decimal is rounded through a floating-point number. Errors state the valid values, in
// one line; the caller names the value.
package quantity

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"
)

// The bounds of the input, so that no text costs memory or time.
const (
	maxText     = 64
	maxExponent = 30
)

var errNegative = errors.New("must not be negative")

// scan reads the digits at the beginning of text, with decimals and an exponent, and returns the rest of it.
func scan(text string) (value *big.Rat, rest string, ok bool) {
	if len(text) > maxText {
		return nil, "", false
	}
	end := digits(text, 0)
	if end < len(text) && text[end] == '.' {
		end = digits(text, end+1)
	}
	if strings.Trim(text[:end], ".") == "" {
		return nil, "", false
	}
	if end < len(text) && (text[end] == 'e' || text[end] == 'E') {
		from := end + 1
		if from < len(text) && (text[from] == '+' || text[from] == '-') {
			from++
		}
		if to := digits(text, from); to > from {
			if n, err := strconv.Atoi(text[end+1 : to]); err != nil || n > maxExponent || n < -maxExponent {
				return nil, "", false
			}
			end = to
		}
	}
	value, ok = new(big.Rat).SetString(text[:end])
	return value, text[end:], ok
}

// digits returns the end of the digits of text from i on.
func digits(text string, i int) int {
	for i < len(text) && text[i] >= '0' && text[i] <= '9' {
		i++
	}
	return i
}

// Number reads a number that is not negative: 30000, 0.5, 1e6, or 30k, 1.5M, 2G, in powers of 1000.
func Number(text string) (*big.Rat, error) {
	if strings.HasPrefix(text, "-") {
		return nil, errNegative
	}
	value, suffix, ok := scan(text)
	factor := thousands(suffix)
	if !ok || factor == 0 {
		return nil, errors.New("must be a number such as 30000, 0.5, 30k or 1e6; k, M and G are powers of 1000")
	}
	return value.Mul(value, new(big.Rat).SetInt64(factor)), nil
}

// thousands returns the factor of a suffix; 0 if there is no such suffix.
func thousands(suffix string) int64 {
	return map[string]int64{"": 1, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9}[suffix]
}

// Whole reads a whole number, written as in [Number], from lowest to highest. Errors name a highest of math.MaxInt32 or
// math.MaxInt64 only if the number is above it.
func Whole(text string, lowest, highest int64) (int64, error) {
	value, err := Number(text)
	if err == nil && value.IsInt() && value.Num().IsInt64() {
		if n := value.Num().Int64(); n >= lowest && n <= highest {
			return n, nil
		}
	}
	open := highest == math.MaxInt64 || highest == math.MaxInt32
	switch {
	case err == nil && open && value.Cmp(new(big.Rat).SetInt64(highest)) > 0:
		return 0, fmt.Errorf("must be at most %d", highest)
	case open:
		return 0, fmt.Errorf("must be a whole number of at least %d", lowest)
	default:
		return 0, fmt.Errorf("must be a whole number from %d to %d", lowest, highest)
	}
}

// Bytes reads a number of bytes, at most so many: 1024, 10k or 10KB (10000), 10KiB (10240), 1.5MiB.
func Bytes(text string, most int64) (int64, error) {
	if strings.HasPrefix(text, "-") {
		return 0, errNegative
	}
	value, unit, ok := scan(text)
	factor := byteUnit(strings.TrimSpace(unit))
	if !ok || factor == 0 {
		return 0, errors.New("must be a number of bytes such as 1024, 10k or 10KB (10000), or 10KiB (10240)")
	}
	value.Mul(value, new(big.Rat).SetInt64(factor))
	switch {
	case !value.IsInt():
		return 0, errors.New("is not a whole number of bytes")
	case value.Cmp(new(big.Rat).SetInt64(most)) > 0:
		return 0, fmt.Errorf("must be at most %s", FormatBytes(most))
	}
	return value.Num().Int64(), nil
}

// byteUnit returns the factor of a unit of bytes; 0 if there is no such unit.
func byteUnit(unit string) int64 {
	return cmp.Or(thousands(unit), map[string]int64{
		"b": 1, "kb": 1e3, "mb": 1e6, "gb": 1e9,
		"ki": 1 << 10, "mi": 1 << 20, "gi": 1 << 30, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30,
	}[strings.ToLower(unit)])
}

// FormatBytes writes a number of bytes as [Bytes] reads it, with a unit of powers of 1024 if it is a whole number of
// them.
func FormatBytes(n int64) string {
	for _, unit := range []struct {
		size int64
		name string
	}{{1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
		if n >= unit.size && n%unit.size == 0 {
			return strconv.FormatInt(n/unit.size, 10) + unit.name
		}
	}
	return strconv.FormatInt(n, 10) + " bytes"
}

// Duration reads a time that is not negative: 20s, 1m30s, 250ms, or a plain number of the given unit, such as 20, 0.5
// or 1e3. Without a unit (0) a plain number is a mistake, but for 0.
func Duration(text string, unit time.Duration) (time.Duration, error) {
	if strings.HasPrefix(text, "-") {
		return 0, errNegative
	}
	value, rest, ok := scan(text)
	if ok && rest == "" && (unit > 0 || value.Sign() == 0) {
		value.Mul(value, new(big.Rat).SetInt64(int64(unit)))
		whole := new(big.Int).Quo(value.Num(), value.Denom())
		if !whole.IsInt64() {
			return 0, errors.New("must be at most 292 years")
		}
		return time.Duration(whole.Int64()), nil
	}
	if d, err := time.ParseDuration(text); err == nil && ok && len(text) <= maxText {
		return d, nil
	}
	if ok && rest == "M" {
		return 0, errors.New("must be a time: minutes are written m, such as 10m")
	}
	if unit == 0 {
		return 0, errors.New("must be a time such as 20s, 1m30s or 250ms")
	}
	name := map[time.Duration]string{time.Millisecond: "milliseconds", time.Second: "seconds"}[unit]
	return 0, fmt.Errorf("must be a time such as 20, 20s, 1m30s or 250ms; a plain number is in %s", name)
}
