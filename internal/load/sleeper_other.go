//go:build !linux

package load

import (
	"context"
	"errors"
)

func (*Sleeper) sleepPrecisely(context.Context) error {
	return errors.New("this system has no timer that the runtime can wait for")
}
