// Package clocktest makes moments as they are after the wall clock was set, for tests. The clock of the machine stays.
package clocktest

import (
	"testing"
	"time"
	"unsafe"
)

// Set returns a moment of [time.Now] as it would be if the wall clock had been set by whole seconds before. The
// monotonic reading is the same.
func Set(t testing.TB, moment time.Time, by time.Duration) time.Time {
	t.Helper()
	const nanosecondBits = 30 // the seconds of the wall clock are above them, in the first word of a Time
	set := moment
	*(*uint64)(unsafe.Pointer(&set)) += uint64(by/time.Second) << nanosecondBits //nolint:gosec // no other way to make one
	if set.Sub(moment) != 0 || set.Round(0).Sub(moment.Round(0)) != by.Truncate(time.Second) {
		t.Fatalf("times of this version of Go are not as expected: %v set by %v is %v", moment, by, set)
	}
	return set
}
