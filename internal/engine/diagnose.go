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

// diagnose returns what is wrong with the broker of an endpoint; nil if nothing was found. Diagnose is asked once in a
// run: later, a silent broker is an overloaded one.
func (e *Endpoint) diagnose(ctx context.Context) error {
	if e.Factory.Diagnose == nil {
		return nil
	}
	e.once.Do(func() {
		e.asked = make(chan struct{})
		go func() {
			defer close(e.asked)
			e.wrong = e.Factory.Diagnose(ctx, e.OpenOptions)
		}()
	})
	<-e.asked
	return e.wrong
}

// openDiagnosed is openInTime that fails soon, and with the cause, if the broker speaks another protocol.
func openDiagnosed[T any](ctx context.Context, e *Endpoint, f func(context.Context) (T, error)) (opened T, err error) {
	trying, end := context.WithCancelCause(ctx)
	defer end(nil)
	timer := time.AfterFunc(suspicion, func() {
		if wrong := e.diagnose(trying); wrong != nil {
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
		if wrong := e.diagnose(trying); wrong != nil {
			return opened, wrong
		}
	}
	return opened, err
}
