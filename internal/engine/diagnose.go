package engine

import (
	"context"
	"errors"
	"syscall"
	"time"

	"github.com/perfmq/perfmq/pkg/driver"
)

// suspicion is how long a broker may take to answer a connection before perfmq asks whether it is one of the protocol.
const suspicion = time.Second

// diagnose returns what is wrong with the broker of an endpoint; nil if nothing was found. It blocks for as long as
// Diagnose, which is asked once in a run: later, a silent broker is an overloaded one.
func (r *run) diagnose(ctx context.Context, e *Endpoint) error {
	if e.Factory.Diagnose == nil {
		return nil
	}
	known, asked := r.diagnoses.LoadOrStore(e.Protocol+" "+e.URL, make(chan error, 1))
	answer := known.(chan error) //nolint:forcetypeassert // there is nothing else in the map
	if !asked {
		answer <- e.Factory.Diagnose(ctx, e.OpenOptions)
	}
	err := <-answer
	answer <- err // for the next one
	return err
}

// openDiagnosed is openInTime that fails soon, and with the cause, if the broker speaks another protocol.
func openDiagnosed[T any](
	ctx context.Context, r *run, e *Endpoint, f func(context.Context) (T, error),
) (opened T, err error) {
	trying, end := context.WithCancelCause(ctx)
	defer end(nil)
	timer := time.AfterFunc(suspicion, func() {
		if wrong := r.diagnose(trying, e); wrong != nil {
			end(wrong)
		}
	})
	defer timer.Stop()
	opened, err = openInTime(trying, e, f)
	switch {
	case err == nil, ctx.Err() != nil, errors.Is(err, syscall.ECONNREFUSED):
		return opened, err
	case trying.Err() != nil:
		return opened, context.Cause(trying)
	}
	class := driver.ClassOf(err)
	if class == driver.ClassAuth && e.Factory.Client != "" { // go-amqp has no type for an answer in another protocol
		class = driver.ClassProtocol
	}
	switch class {
	case driver.ClassConnect, driver.ClassConnectionLost, driver.ClassTimeout, driver.ClassProtocol, driver.ClassTLS:
		if wrong := r.diagnose(trying, e); wrong != nil {
			return opened, wrong
		}
	}
	return opened, err
}
