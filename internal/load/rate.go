package load

import (
	"errors"
	"math"
	"math/big"
	"math/bits"
	"strings"
	"time"

	"github.com/perfmq/perfmq/internal/quantity"
)

// Rate is a number of messages per second as an exact fraction, so that no rounding adds up over days. The zero value
// means no target: as fast as possible.
type Rate struct {
	messages uint64 // per...
	nanos    uint64 // ...so many nanoseconds
}

// maxRate bounds rates so that two messages are due at different nanoseconds.
const maxRate = 1_000_000_000

// ParseRate reads a number of messages per second, such as 30000, 30k, 0.5 or 33.333: above zero, at most 1e9, and
// exact to nine decimals.
func ParseRate(s string) (Rate, error) {
	r, err := quantity.Number(strings.TrimPrefix(s, "+"))
	if err != nil || r.Sign() == 0 || r.Cmp(big.NewRat(maxRate, 1)) > 0 {
		return Rate{}, errors.New("must be messages per second, a number above 0 and at most 1000000000, such as 30000, " +
			"30k or 0.5")
	}
	perNano := new(big.Rat).Quo(r, big.NewRat(int64(time.Second), 1))
	num, den := perNano.Num(), perNano.Denom()
	if !num.IsUint64() || !den.IsUint64() {
		return Rate{}, errors.New("must have at most nine decimals")
	}
	return Rate{messages: num.Uint64(), nanos: den.Uint64()}, nil
}

// IsZero reports whether there is no target.
func (r Rate) IsZero() bool { return r.messages == 0 }

// PerSecond returns the rate as a number, for display.
func (r Rate) PerSecond() float64 {
	if r.IsZero() {
		return 0
	}
	return float64(r.messages) * float64(time.Second) / float64(r.nanos)
}

// String returns the rate in the form that [ParseRate] reads, without an exponent; 0 for no target.
func (r Rate) String() string {
	if r.IsZero() {
		return "0"
	}
	perSecond := new(big.Rat).SetFrac(new(big.Int).SetUint64(r.messages), new(big.Int).SetUint64(r.nanos))
	perSecond.Mul(perSecond, big.NewRat(int64(time.Second), 1))
	decimals, _ := perSecond.FloatPrec()
	return perSecond.FloatString(decimals)
}

// billionths returns the rate in billionths of a message per second; it is false if that is no whole number.
func (r Rate) billionths() (n uint64, ok bool) {
	const perNano = 1_000_000_000_000_000_000 // billionths of a message per second in a message per nanosecond
	if r.IsZero() {
		return 0, true
	}
	return perNano / r.nanos * r.messages, perNano%r.nanos == 0
}

// At returns the intended time of message n (counted from 0 over all producers) from the start of the load:
// n / rate, rounded down to a nanosecond. It is a pure function: the error of no message depends on another.
// Times beyond the range of a Duration (292 years) are returned as the largest one.
func (r Rate) At(n uint64) time.Duration {
	hi, lo := bits.Mul64(n, r.nanos)
	if hi >= r.messages {
		return math.MaxInt64
	}
	q, _ := bits.Div64(hi, lo, r.messages)
	if q > math.MaxInt64 {
		return math.MaxInt64
	}
	return time.Duration(q)
}
