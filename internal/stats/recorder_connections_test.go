package stats

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/result"
)

// TestNotOpened: the broker is not to blame for a lack of perfmq's machine, nor for a wrong --local-address.
func TestNotOpened(t *testing.T) {
	files := fmt.Errorf("connect: %w", os.NewSyscallError("socket", syscall.EMFILE))
	for _, c := range []struct {
		err  error
		want result.Counter
	}{
		{driver.Errorf(driver.ClassConnect, "connect", "", "%w", files), result.OpenUnmade},
		{driver.Errorf(driver.ClassUnsupported, "connect", "", "the local address 192.0.2.1 is not one of this machine"), result.OpenUnmade},
		{driver.Errorf(driver.ClassTimeout, "connect", "", "no answer"), result.OpenTimedOut},
		{driver.Errorf(driver.ClassAuth, "connect", "", "wrong password"), result.OpenRefused},
		{errors.New("anything else"), result.OpenRefused},
	} {
		r := NewConnectionRecorder("")
		r.NotOpened(Measure, c.err)
		require.EqualValues(t, 1, r.Count(c.want), c.err)
		require.EqualValues(t, 1, r.Count(result.OpenUnmade, result.OpenTimedOut, result.OpenRefused))
	}
}
