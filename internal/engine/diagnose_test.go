package engine

import (
	"context"
	"errors"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/pkg/driver"
)

// A broker that is silent for a second, or refuses in a strange way, is asked once whether it speaks another protocol.
func TestDiagnosed(t *testing.T) {
	wrong := driver.Errorf(driver.ClassProtocol, "", "", "the port speaks STOMP, not AMQP")
	lost := driver.Errorf(driver.ClassConnectionLost, "", "", "closed")
	for _, c := range []struct {
		name      string
		takes     time.Duration // of the opening
		err       error         // of the opening
		diagnosis error
		want      error
		after     time.Duration
		asked     int32
	}{
		{"soon open", 900 * time.Millisecond, nil, wrong, nil, 900 * time.Millisecond, 0},
		{"slow", 5 * time.Second, nil, nil, nil, 5 * time.Second, 1},
		{"silent and wrong", time.Hour, nil, wrong, wrong, 2 * time.Second, 1},
		{"closed and wrong", 0, lost, wrong, wrong, time.Second, 1},
		{"closed", 0, lost, nil, lost, time.Second, 1},
		{"login", 0, driver.Errorf(driver.ClassAuth, "", "", "who"), wrong, nil, 0, 0},
		{"login of a library", 0, driver.Errorf(driver.ClassAuth, "", "", "who"), wrong, wrong, time.Second, 1},
		{"nobody there", 0, driver.Errorf(driver.ClassConnect, "", "", "%w", syscall.ECONNREFUSED), wrong, syscall.ECONNREFUSED, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var asked atomic.Int32
				e := &Endpoint{Broker: &plan.Broker{OpenOptions: driver.OpenOptions{
					URL: "amqp://u@h", User: "u", ConnectTimeout: 10 * time.Second,
				}}}
				if c.name == "login of a library" {
					e.Factory.Client = "go-amqp"
				}
				e.Factory.Diagnose = func(ctx context.Context, _ driver.OpenOptions) error {
					asked.Add(1)
					select {
					case <-time.After(time.Second):
						return c.diagnosis
					case <-ctx.Done():
						return nil
					}
				}
				begin := time.Now()
				errs := make(chan error, 3)
				for range cap(errs) {
					go func() {
						_, err := openDiagnosed(t.Context(), e, func(ctx context.Context) (int, error) {
							select {
							case <-time.After(c.takes):
								return 1, c.err
							case <-ctx.Done():
								return 0, ctx.Err()
							}
						})
						errs <- err
					}()
				}
				for range cap(errs) {
					err := <-errs
					switch {
					case c.want != nil:
						require.ErrorIs(t, err, c.want)
					case c.err != nil:
						require.ErrorIs(t, err, c.err)
					default:
						require.NoError(t, err)
					}
				}
				require.Equal(t, c.after, time.Since(begin))
				require.Equal(t, c.asked, asked.Load())
			})
		})
	}
}

// Without --user the hint names --user, not a wrong password.
func TestNoUser(t *testing.T) {
	cause := errors.New("cause")
	refused := &driver.Error{Class: driver.ClassAuth, Op: "log in", Hint: "check --user and --password", Err: cause}
	for _, c := range []struct{ url, user, want string }{
		{"amqp://h", "", "no user was given: add --user and --password"},
		{"amqp://joe@h", "", "check --user and --password"},
		{"amqp://h", "joe", "check --user and --password"},
	} {
		open := driver.OpenOptions{URL: c.url, User: c.user, ConnectTimeout: time.Minute}
		e := &Endpoint{Broker: &plan.Broker{OpenOptions: open}}
		_, err := openInTime(t.Context(), e, func(context.Context) (int, error) { return 0, refused })
		require.EqualError(t, err, "log in: cause")
		require.Equal(t, c.want, driver.HintOf(err))
		require.Equal(t, driver.ClassAuth, driver.ClassOf(err))
	}
}
