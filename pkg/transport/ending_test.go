package transport

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/pkg/driver"
)

// TestEnding: of many causes at once one counts. Whoever sees that the connection is over finds the cause.
func TestEnding(t *testing.T) {
	near, far := net.Pipe()
	raw := Meter(near)
	e := NewConn(Endpoint{}, raw, raw, &Buffers{})
	require.False(t, e.Dead())
	require.NoError(t, e.Why())
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			<-e.Over()
			first := e.Why()
			require.Error(t, first)
			e.Fail(errors.New("a later cause"))
			require.Same(t, first, e.Why())
		})
		group.Go(func() { e.Fail(errors.New("a cause")) })
	}
	group.Wait()
	require.True(t, e.Dead())
	_, err := far.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF)
	require.ErrorIs(t, e.Out.Put(func(b []byte) []byte { return b }), e.Why())
	e.Out.Wait()
}

func TestExplain(t *testing.T) {
	require.NoError(t, Explain("send", nil))
	for _, c := range []struct {
		err   error
		class driver.Class
		text  string
	}{
		{ErrClosed, driver.ClassConnectionLost, "send: the connection was closed"},
		{context.DeadlineExceeded, driver.ClassTimeout, "send: no answer from the broker"},
		{io.ErrUnexpectedEOF, driver.ClassConnectionLost, "send: the broker closed the connection without saying why"},
		{net.ErrClosed, driver.ClassConnectionLost, "send: the connection broke"},
		{driver.Errorf(driver.ClassFull, "", "wait", "no room"), driver.ClassFull, "send: no room"},
		{driver.Errorf(driver.ClassFull, "commit", "wait", "no room"), driver.ClassFull, "commit: no room"},
	} {
		err := Explain("send", c.err)
		require.Equal(t, c.class, driver.ClassOf(err))
		require.ErrorContains(t, err, c.text)
		require.NotEmpty(t, driver.HintOf(err))
	}
	require.Equal(t, "ab...", Clip("abcdef", 2))
	require.Equal(t, "abcdef", Clip("abcdef", 6))
}

// TestSettings: all mistakes in the settings of a driver are reported at once.
func TestSettings(t *testing.T) {
	type options struct {
		Mode string `opt:"mode" enum:"fast,slow"`
		Size int    `opt:"size"`
	}
	p := &Protocol{Title: "X", Schemes: []string{"x"}, Encrypted: []string{"xs"}, PlainPort: "1", TLSPort: "2", Lists: true}
	further := func(s *Settings[options], fail Fail) {
		if s.Options.Size > 9 {
			fail("make it smaller", "option size=%d: must be at most 9", s.Options.Size)
		}
	}
	s, err := Check(p, driver.OpenOptions{URL: "x://u:p@a;b:3;", ConnectTimeout: 5}, options{Mode: "slow"}, further)
	require.NoError(t, err)
	require.Equal(t, Target{Hosts: []Endpoint{{"a", "1"}, {"b", "3"}}, User: "u", Password: "p"}, s.Target)
	require.Equal(t, options{Mode: "slow"}, s.Options)
	_, err = Check(p, driver.OpenOptions{URL: "x://a:0", Options: &options{Mode: "odd", Size: 10}}, options{}, further)
	for _, want := range []string{"connect timeout", `port "0"`, "option mode=odd: must be one of fast, slow", "size=10"} {
		require.ErrorContains(t, err, want)
	}
	require.Contains(t, driver.HintOf(err), "make it smaller")
	_, err = Check(p, driver.OpenOptions{URL: "x://a", ConnectTimeout: 5, Options: &struct{}{}}, options{Mode: "fast"}, further)
	require.ErrorContains(t, err, "not those of X")
}
