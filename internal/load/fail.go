package load

import (
	"errors"
	"math/big"
	"strings"
	"sync/atomic"

	"github.com/perfmq/perfmq/internal/quantity"
	"github.com/perfmq/perfmq/pkg/driver"
)

// Share is a part of a whole, Of/Out, from 0 to 1 and exact. The zero value is a share of 0.
type Share struct{ Of, Out uint64 }

// finest is the smallest share but none: one in a million.
const finest = 1_000_000

// IsZero reports whether the share is 0.
func (s Share) IsZero() bool { return s.Of == 0 }

// IsAll reports whether it is the whole.
func (s Share) IsAll() bool { return s.Of > 0 && s.Of == s.Out }

// String returns the share in the form that [ParseShare] reads: "2.5%".
func (s Share) String() string {
	if s.IsZero() {
		return "0%"
	}
	percent := new(big.Rat).SetFrac64(int64(s.Of)*100, int64(s.Out)).FloatString(4) //nolint:gosec // at most a million
	return strings.TrimSuffix(strings.TrimRight(percent, "0"), ".") + "%"
}

// ParseShare reads a percentage from 0% to 100%, of at most four decimals: 1%, 0.25%.
func ParseShare(text string) (Share, error) {
	const wrong = "must be a percentage from 0% to 100%, of at most four decimals, such as 1% or 0.25%"
	number, isPercent := strings.CutSuffix(strings.TrimSpace(text), "%")
	percent, err := quantity.Number(strings.TrimSpace(number))
	if err != nil || !isPercent || percent.Sign() < 0 || percent.Cmp(big.NewRat(100, 1)) > 0 {
		return Share{}, errors.New(wrong)
	}
	share := percent.Quo(percent, big.NewRat(100, 1))
	if !new(big.Rat).Mul(share, big.NewRat(finest, 1)).IsInt() {
		return Share{}, errors.New(wrong)
	}
	if share.Sign() == 0 {
		return Share{}, nil
	}
	return Share{share.Num().Uint64(), share.Denom().Uint64()}, nil
}

// includes reports whether number n, counted from 1, belongs to the share. Of the first n, n*Of/Out belong to it,
// rounded down.
func (s Share) includes(n uint64) bool { return n%s.Out*s.Of%s.Out < s.Of }

// Fail makes consumers fail on purpose: a share of the deliveries of all its consumers gets a verdict other than
// Accept. It is safe for concurrent use.
type Fail struct {
	share   Share
	verdict driver.Verdict
	n       atomic.Uint64 // deliveries so far
}

// NewFail returns nil for a share of nothing.
func NewFail(share Share, verdict driver.Verdict) *Fail {
	if share.IsZero() {
		return nil
	}
	return &Fail{share: share, verdict: verdict}
}

// next returns the verdict on the next delivery.
func (f *Fail) next() driver.Verdict {
	if f.share.includes(f.n.Add(1)) {
		return f.verdict
	}
	return driver.Accept
}
