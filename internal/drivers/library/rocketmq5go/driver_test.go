package rocketmq5go

import (
	"errors"
	"testing"
	"time"

	rmq "github.com/apache/rocketmq-clients/golang/v5"
	v2 "github.com/apache/rocketmq-clients/golang/v5/protocol/v2"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/library"
)

// TestRefusals: what the library cannot do is refused before a connection is opened.
func TestRefusals(t *testing.T) {
	f := Factory()
	open := func(url string) (driver.Driver, error) {
		return f.Open(t.Context(), driver.OpenOptions{URL: url, ConnectTimeout: time.Second, Options: f.NewOptions()})
	}
	_, err := open("rocketmqs+grpc://localhost")
	require.ErrorContains(t, err, "checks no certificates")
	d, err := open("rocketmq+grpc://localhost")
	require.NoError(t, err)
	defer func() { require.NoError(t, d.Close(t.Context())) }()
	for _, spec := range []driver.ProducerSpec{
		{Destination: driver.Destination{Kind: driver.Topic, Name: "A"}},
		{Destination: driver.Destination{Name: "A"}, TTL: time.Second},
		{Destination: driver.Destination{Name: "A"}, CommitInterval: 10},
		{Destination: driver.Destination{Name: "a.b"}},
	} {
		spec.MaxPending, spec.Variants = 1, []driver.Variant{{Body: []byte("x")}}
		_, err := d.Producer(t.Context(), spec, nil)
		require.Equal(t, driver.ClassUnsupported, driver.ClassOf(err), "%v", err)
	}
}

// TestOutcomes: a message without an answer is in doubt, a refused one is not.
func TestOutcomes(t *testing.T) {
	p := &producer{op: "send", sends: library.NewSends("send", nil)}
	for _, c := range []struct {
		err   error
		state driver.State
		class driver.Class
	}{
		{nil, driver.Accepted, driver.ClassNone},
		{&rmq.ErrRpcStatus{Code: int32(v2.Code_TOPIC_NOT_FOUND)}, driver.Rejected, driver.ClassNotFound},
		{&rmq.ErrRpcStatus{Code: int32(v2.Code_MESSAGE_BODY_TOO_LARGE)}, driver.Rejected, driver.ClassTooLarge},
		{&rmq.ErrRpcStatus{Code: int32(v2.Code_TOO_MANY_REQUESTS)}, driver.Rejected, driver.ClassFull},
		{&rmq.ErrRpcStatus{Code: int32(v2.Code_SLAVE_PERSISTENCE_TIMEOUT)}, driver.Unknown, driver.ClassTimeout},
		{status.Error(codes.DeadlineExceeded, "late"), driver.Unknown, driver.ClassTimeout},
		{status.Error(codes.Unavailable, "EOF"), driver.Unknown, driver.ClassConnectionLost},
		{errors.New("no broker available to sendMessage"), driver.Failed, driver.ClassOther},
	} {
		o := p.outcome(c.err)
		require.Equal(t, c.state, o.State, "%v", c.err)
		require.Equal(t, c.class, o.Class, "%v", c.err)
	}
}
