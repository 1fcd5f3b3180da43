package result

import "slices"

// The exit statuses of perfmq; [Outcome] has the one of a run.
const (
	StatusOK          = 0
	StatusFailed      = 1
	StatusUsage       = 2
	StatusThreshold   = 3
	StatusConnect     = 4
	StatusUndecided   = 5
	StatusInterrupted = 130
)

// Graver returns the graver of two exit statuses: any failure is graver than an interruption.
func Graver(a, b int) int {
	ranks := []int{
		StatusOK, StatusInterrupted, StatusUndecided, StatusThreshold, StatusFailed, StatusConnect, StatusUsage,
	}
	if slices.Index(ranks, a) >= slices.Index(ranks, b) {
		return a
	}
	return b
}
