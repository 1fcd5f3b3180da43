package plan

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/perfmq/perfmq/internal/quantity"
)

// Size is one of several sizes of messages, of a distribution (Law) or with a weight of its own.
type Size struct {
	Bytes, Weight int
	Law           string
}

// Lognormal is the distribution of sizes whose logarithm is normal.
const Lognormal = "lognormal"

const (
	// lawSizes is the number of sizes of a distribution: few enough to prepare a body of each.
	lawSizes = 64
	// maxOverMedian is the largest size without MAX over the median: it bounds the memory of the bodies.
	maxOverMedian = 32
	maxSigma      = 10
)

// LognormalSizes reads lognormal:MEDIAN:SIGMA[:MAX]. The sizes are the medians of 64 parts of the distribution with
// equal probability. Those above MAX become MAX.
func LognormalSizes(text string) (list []Size, err error) {
	parts := strings.Split(text, ":")
	if len(parts) < 3 || len(parts) > 4 {
		return nil, errors.New("must be like lognormal:2KiB:1.0:64KiB, with median, sigma and maximum")
	}
	median, err := quantity.Bytes(parts[1], MaxMessageSize)
	if err == nil && median == 0 {
		err = errors.New("must be at least 1")
	}
	if err != nil {
		return nil, fmt.Errorf("the median %w", err)
	}
	number, err := quantity.Number(parts[2])
	if err != nil {
		return nil, fmt.Errorf("sigma %w", err)
	}
	sigma, _ := number.Float64()
	if sigma == 0 || sigma > maxSigma {
		return nil, fmt.Errorf("sigma must be above 0, and at most %d", maxSigma)
	}
	most := min(maxOverMedian*median, MaxMessageSize)
	if len(parts) == 4 {
		if most, err = quantity.Bytes(parts[3], MaxMessageSize); err == nil && most < median {
			err = errors.New("must be at least the median")
		}
		if err != nil {
			return nil, fmt.Errorf("the maximum %w", err)
		}
	}
	law := fmt.Sprintf("%s:%s:%s:%s", Lognormal, plainBytes(median), parts[2], plainBytes(most))
	for i := range lawSizes {
		normal := math.Sqrt2 * math.Erfinv(float64(2*i+1)/lawSizes-1) // the quantile of (i + 1/2) / lawSizes
		size := min(math.Round(float64(median)*math.Exp(sigma*normal)), float64(most))
		list = append(list, Size{Bytes: int(max(1, size)), Weight: 1, Law: law})
	}
	return list, nil
}

func plainBytes(n int64) string { return strings.TrimSuffix(quantity.FormatBytes(n), " bytes") }

// law returns the distribution of the group's sizes; empty for none.
func (g *Group) law() string {
	if len(g.Mix) == 0 {
		return ""
	}
	return g.Mix[0].Law
}

// meanBody returns the mean length of bodies with a distribution, all equally likely.
func (g *Group) meanBody() int {
	sum := 0
	for i := range g.Mix {
		sum += g.Mix[i].Size()
	}
	return (sum + len(g.Mix)/2) / len(g.Mix)
}
