package load

import (
	"context"
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// fdSleeper sleeps on a timer of the kernel (timerfd_create(2)) that the runtime's network poller watches as it does a
// socket. So the goroutine is woken when the timer fires instead of at the runtime's next full millisecond, and holds
// no thread while it sleeps.
//
// The timer is set, and never read: setting it again makes it unreadable until it fires. Reading a file would wake the
// runtime's monitor thread each time.
type fdSleeper struct {
	file   *os.File
	raw    syscall.RawConn
	unhook func() bool

	spec  unix.ItimerSpec
	armed bool
	err   error
	step  func(fd uintptr) bool // arm, made once so that no sleep allocates
}

// sleepPrecisely lets the sleeper sleep on such a timer.
func (w *Sleeper) sleepPrecisely(ctx context.Context) error {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return fmt.Errorf("create timer: %w", err)
	}
	file := os.NewFile(uintptr(fd), "timerfd")
	// Deadlines work only on files that the poller watches: without it a read would occupy a thread without end.
	if err := file.SetReadDeadline(time.Time{}); err != nil {
		_ = file.Close()
		return fmt.Errorf("watch timer: %w", err)
	}
	s := &fdSleeper{file: file}
	if s.raw, err = file.SyscallConn(); err != nil {
		_ = file.Close()
		return fmt.Errorf("watch timer: %w", err)
	}
	s.step = s.arm
	s.unhook = context.AfterFunc(ctx, func() { _ = file.SetReadDeadline(time.Unix(1, 0)) }) // wakes the sleeper
	w.sleep, w.Close = s.sleep, s.close
	return nil
}

func (s *fdSleeper) sleep(d time.Duration) bool {
	s.spec, s.armed, s.err = unix.ItimerSpec{Value: unix.NsecToTimespec(int64(d))}, false, nil
	err := s.raw.Read(s.step) // calls step until it returns true, each time the timer becomes readable
	return err == nil && s.err == nil
}

// arm sets the timer when the poller expects it to become readable. Called again, it has.
func (s *fdSleeper) arm(fd uintptr) (done bool) {
	if s.armed {
		return true
	}
	s.armed = true
	s.err = unix.TimerfdSettime(int(fd), 0, &s.spec, nil)
	return s.err != nil
}

func (s *fdSleeper) close() {
	s.unhook()
	_ = s.file.Close()
}
