//go:build unix

package main

import (
	"fmt"
	"time"
)

// brokersOwn returns, by their numbers, the outages that did not begin at the failure, but when the broker closed
// connections because of an error of its own, as its log says.
func (j *judgement) brokersOwn() map[int]bool {
	own := map[int]bool{}
	for i := range j.result.Outages {
		began := j.result.Outages[i].Time
		if off(began, j.first, j.last).Abs() > onTime && near(began, j.closed) {
			own[i] = true
		}
	}
	if len(own) > 0 {
		j.broken = append(j.broken, fmt.Sprintf("more outages (%d), because of an error of the broker's", len(own)))
	}
	return own
}

// near tells whether something began at one of the moments.
func near(began int64, moments []time.Time) bool {
	for _, m := range moments {
		if off(began, m, m).Abs() <= onTime {
			return true
		}
	}
	return false
}
