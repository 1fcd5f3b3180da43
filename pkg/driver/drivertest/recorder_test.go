package drivertest_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
)

// recorder is a test that may fail without failing the outer test.
type recorder struct {
	testing.TB // the outer test: methods that recorder does not define act on that
	name       string

	mu       sync.Mutex
	failed   bool
	log      []string
	cleanups []func()
}

// record runs f as a test, with its cleanups.
func record(t testing.TB, f func(testing.TB)) *recorder { return recordNamed(t, "recorder", f) }

func recordNamed(t testing.TB, name string, f func(testing.TB)) *recorder {
	r := &recorder{TB: t, name: name}
	r.protect(func() { f(r) })
	for {
		r.mu.Lock()
		if len(r.cleanups) == 0 {
			r.mu.Unlock()
			return r
		}
		last := r.cleanups[len(r.cleanups)-1]
		r.cleanups = r.cleanups[:len(r.cleanups)-1]
		r.mu.Unlock()
		r.protect(last)
	}
}

// protect runs f, which may end its goroutine.
func (r *recorder) protect(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if p := recover(); p != nil {
				r.Errorf("panic: %v", p)
			}
		}()
		f()
	}()
	<-done
}

func (r *recorder) note(failed bool, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed = r.failed || failed
	r.log = append(r.log, text)
}

func (r *recorder) Helper()                           {}
func (r *recorder) Name() string                      { return r.name }
func (r *recorder) Context() context.Context          { return context.Background() }
func (r *recorder) Errorf(format string, args ...any) { r.note(true, fmt.Sprintf(format, args...)) }
func (r *recorder) Error(args ...any)                 { r.note(true, fmt.Sprint(args...)) }
func (r *recorder) Logf(format string, args ...any)   { r.note(false, fmt.Sprintf(format, args...)) }
func (r *recorder) Log(args ...any)                   { r.note(false, fmt.Sprint(args...)) }
func (r *recorder) Fail()                             { r.note(true, "") }
func (r *recorder) FailNow()                          { r.Fail(); runtime.Goexit() }
func (r *recorder) Fatal(args ...any)                 { r.Error(args...); runtime.Goexit() }
func (r *recorder) Fatalf(format string, args ...any) { r.Errorf(format, args...); runtime.Goexit() }

func (r *recorder) Failed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed
}

func (r *recorder) Cleanup(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cleanups = append(r.cleanups, f)
}

// text is all that was said, without breaks of lines and the names of places.
func (r *recorder) text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	lines := slices.DeleteFunc(strings.Split(strings.Join(r.log, "\n"), "\n"), func(line string) bool {
		return strings.Contains(line, ".go:") || strings.Contains(line, ".s:") || strings.Contains(line, "Error Trace:")
	})
	return strings.Join(strings.Fields(strings.Join(lines, " ")), " ")
}
