package load

import (
	"context"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// fdSleeper sleeps on a timer of the kernel (timerfd_create(2)) that the runtime's network poller watches as it does a
// socket. So the goroutine is woken when the timer fires instead of at the runtime's next full millisecond, and holds
// no thread while it sleeps.
type fdSleeper struct {
	fd     int
	file   *os.File
	unhook func() bool
	buf    [8]byte
}

func newPreciseSleeper(ctx context.Context) (sleeper, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("create timer: %w", err)
	}
	file := os.NewFile(uintptr(fd), "timerfd")
	// Deadlines work only on files that the poller watches: without it a read would occupy a thread, for ever.
	if err := file.SetReadDeadline(time.Time{}); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("watch timer: %w", err)
	}
	s := &fdSleeper{fd: fd, file: file}
	s.unhook = context.AfterFunc(ctx, func() { _ = file.SetReadDeadline(time.Unix(1, 0)) }) // wakes the reader
	return s, nil
}

func (s *fdSleeper) sleep(d time.Duration) bool {
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(d))}
	if err := unix.TimerfdSettime(s.fd, 0, &spec, nil); err != nil {
		return false
	}
	_, err := s.file.Read(s.buf[:])
	return err == nil
}

func (s *fdSleeper) close() {
	s.unhook()
	_ = s.file.Close()
}
