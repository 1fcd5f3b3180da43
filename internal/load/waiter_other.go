//go:build !linux

package load

import (
	"context"
	"errors"
)

func newPreciseSleeper(context.Context) (sleeper, error) {
	return nil, errors.New("this system has no timer that the runtime can wait for")
}
