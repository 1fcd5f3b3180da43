//go:build unix

package brokertest

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"
)

// Shared is a broker that the tests of a package share: started by the first
// test that asks, so that a run without such tests costs nothing, and ended by
// [Main]. The zero value is ready for use; set the options before the first use.
// It is safe for concurrent use by parallel tests.
type Shared struct {
	ArtemisOptions []ArtemisOption

	once    sync.Once
	artemis *Artemis
	err     error
}

// Artemis returns the shared broker. The test fails when it could not start, or
// when an earlier test ended it: a test that kills or pauses its broker wants
// one of its own, from [StartArtemis].
func (s *Shared) Artemis(tb testing.TB) *Artemis {
	tb.Helper()
	s.once.Do(func() {
		// Not the test's context: the broker outlives it.
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
		defer cancel()
		s.artemis, s.err = LaunchArtemis(ctx, s.ArtemisOptions...)
	})
	if s.err != nil {
		tb.Fatalf("this test needs an Artemis broker: %v", s.err)
	}
	if !s.artemis.Alive() {
		tb.Fatalf("the shared broker has ended; use StartArtemis in the test that ended it; the end of its log:\n%s", s.artemis.LogTail())
	}
	return s.artemis
}

// Close ends the broker if it was started. Main calls it.
func (s *Shared) Close() error {
	s.once.Do(func() { s.err = fmt.Errorf("the shared broker was closed before it was used") })
	if s.artemis == nil {
		return nil
	}
	return s.artemis.Close()
}

// Main is the body of a TestMain: it runs the tests and ends the brokers that
// they shared. The exit status stays with the testing package, which takes it
// from m when TestMain returns.
func Main(m *testing.M, shared ...*Shared) {
	m.Run()
	for _, s := range shared {
		if err := s.Close(); err != nil {
			fmt.Fprintf(os.Stderr, "warning: %v\n", err)
		}
	}
}
