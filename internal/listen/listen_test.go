package listen

import (
	"context"
	"net"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/leaktest"
	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/pkg/driver"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

func TestCheck(t *testing.T) {
	for address, want := range map[string]string{
		":9400": "", "127.0.0.1:9400": "", "localhost:0": "", "[::]:1": "", "0.0.0.0:65535": "", "a.b.example:80": "",
		"9400": "must be HOST:PORT", "": "must be HOST:PORT", "h": "must be HOST:PORT", "::1:80": "must be HOST:PORT",
		"h:65536": `port "65536" is not`, "h:-1": `port "-1" is not`, "h:": `port "" is not`, "h:http": `port "http" is not`, "h:+1": `port "+1" is not`,
		"h:01": `port "01" is not`,
	} {
		err := Check(address)
		if want == "" {
			assert.NoError(t, err, address)
			continue
		}
		assert.ErrorContains(t, err, want, address)
	}
}

// TestLoopbackUnlessWrittenOut: what lacks its host is for this machine alone.
func TestLoopbackUnlessWrittenOut(t *testing.T) {
	for address, loopback := range map[string]bool{
		":0": true, "127.0.0.1:0": true, "localhost:0": true, "0.0.0.0:0": false,
	} {
		l, err := TCP(context.Background(), "metrics", "--metrics", address)
		require.NoError(t, err, address)
		assert.Equal(t, loopback, l.Addr().(*net.TCPAddr).IP.IsLoopback(), "%s: %s", address, l.Addr())
		assert.Equal(t, loopback, IsLoopback(address), address)
		require.NoError(t, l.Close())
	}
	for host, want := range map[string]bool{
		"[::1]:80": true, "::1": true, "LOCALHOST.:1": true, "x.localhost": true, "127.9.9.9": true,
		"[::]:80": false, "10.0.0.1:1": false, "localhost.example:1": false, "127.0.0.1.example": false,
	} {
		assert.Equal(t, want, IsLoopback(host), host)
	}
}

func TestErrors(t *testing.T) {
	l := musttest.Get(TCP(t.Context(), "metrics", "--metrics", "127.0.0.1:0"))(t)
	defer l.Close()
	for _, c := range []struct{ address, message, hint string }{
		{l.Addr().String(), "bind: address already in use", "give another port by --metrics"},
		{"192.0.2.1:0", "bind: cannot assign requested address", "an address of this machine"},
		{"9400", "address 9400: missing port in address", "HOST:PORT"},
	} {
		_, err := TCP(t.Context(), "metrics", "--metrics", c.address)
		require.EqualError(t, err, "listen for metrics on "+c.address+": "+c.message)
		assert.Contains(t, driver.HintOf(err), c.hint)
		assert.Equal(t, driver.ClassConnect, driver.ClassOf(err))
	}
}
