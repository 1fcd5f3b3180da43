package gostomp_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/perfmq/perfmq/internal/drivers/library/gostomp"
	"github.com/perfmq/perfmq/internal/drivers/library/librarytest"
	"github.com/perfmq/perfmq/pkg/driver/drivertest"
)

func TestProbe(t *testing.T) {
	t.Parallel()
	librarytest.Probe(t, gostomp.Factory())
}

func TestConformance(t *testing.T) {
	cfg := librarytest.Embedded(t, gostomp.Factory())
	cfg.IgnoreGoroutines = []goleak.Option{ // see the package comment
		goleak.IgnoreTopFunction("github.com/go-stomp/stomp/v3.readLoop"),
		goleak.IgnoreAnyFunction("github.com/go-stomp/stomp/v3.waitWithTimeout"),
		// For half a minute at most, see consumer.gone.
		goleak.IgnoreAnyFunction("github.com/go-stomp/stomp/v3.readReceiptWithTimeout"),
		goleak.IgnoreAnyFunction("github.com/go-stomp/stomp/v3.(*Conn).MustDisconnect"),
		goleak.IgnoreAnyFunction("github.com/perfmq/perfmq/pkg/library.(*Receiver).Settle"),
	}
	cfg.Allocations = 200 // of the library, its use and the embedded broker, per message
	drivertest.Run(t, cfg)
}
