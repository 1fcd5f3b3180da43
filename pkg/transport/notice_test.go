package transport_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/transport"
)

var _ driver.Watched = (*transport.Notice)(nil)

// TestNotice: the first reason is passed on once, whether the end comes before or after the function is set.
func TestNotice(t *testing.T) {
	t.Parallel()
	first, second := errors.New("first"), errors.New("second")
	for _, early := range []bool{true, false} {
		var n transport.Notice
		var got []error
		if early {
			n.End(first)
		}
		n.OnEnd(func(why error) { got = append(got, why) })
		n.End(first)
		n.End(second)
		require.Equal(t, []error{first}, got)
	}
	var n transport.Notice
	n.End(first) // nobody listens
}
