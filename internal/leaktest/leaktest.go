// Package leaktest looks for goroutines that tests leave behind, with the patience that a machine with much else to do
// needs: goleak by itself waits for less than half a second.
package leaktest

import (
	"testing"
	"time"

	"go.uber.org/goleak"
)

// patience is the time that goroutines may take to end.
const patience = time.Minute

// Find returns an error that lists the goroutines that are still there after a minute; nil as soon as there are none.
func Find(options ...goleak.Option) error {
	deadline := time.Now().Add(patience)
	for {
		err := goleak.Find(options...)
		if err == nil || time.Now().After(deadline) {
			return err
		}
	}
}

// Main is for TestMain: it runs the tests, and fails if they leave goroutines behind.
func Main(m *testing.M, options ...goleak.Option) {
	goleak.VerifyTestMain(patient{m, options}, options...)
}

type patient struct {
	m       *testing.M
	options []goleak.Option
}

// Run implements [goleak.TestingM].
func (p patient) Run() int {
	code := p.m.Run()
	if code == 0 {
		_ = Find(p.options...) // which VerifyTestMain reports
	}
	return code
}
