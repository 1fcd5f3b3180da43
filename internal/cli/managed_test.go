//go:build unix

package cli

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/broker"
	"github.com/perfmq/perfmq/internal/managedtest"
	"github.com/perfmq/perfmq/internal/musttest"
	wire "github.com/perfmq/perfmq/internal/wire/amqp"
	"github.com/perfmq/perfmq/pkg/result"
)

const (
	keyName = "RootManageSharedAccessKey"
	key     = "base64+key/="
)

// managed is a told peer of a managed broker, and perfmq against it.
type managed struct {
	*managedtest.Peer
	t *testing.T
}

func startManaged(t *testing.T, vendor managedtest.Vendor, told managedtest.Told) *managed {
	t.Helper()
	t.Parallel()
	told.User, told.Password = keyName, key
	return &managed{managedtest.Start(t, vendor, told), t}
}

// run runs perfmq amqp with a login over TLS, and returns its result.
func (m *managed) run(status int, role string, args ...string) (*result.Result, ended) {
	m.t.Helper()
	dir := filepath.Join(m.t.TempDir(), "result")
	args = append([]string{
		"amqp", role, "--url", m.URL(), "--tls-ca", m.CAFile, "--user", keyName, "--password", key, "--result", dir,
	}, args...)
	got := callReal(args...)
	require.Equal(m.t, status, got.status, "%v\n%s%s", args, got.stdout, got.stderr)
	r, err := result.Read(dir)
	if err != nil { // a run that could not begin
		r = new(result.Result)
	}
	return r, got
}

var (
	idle = &wire.Error{
		Condition:   wire.CondDetachForced,
		Description: "The link 'G2:1:sender' is force detached by the broker. Detach origin: AmqpMessagePublisher.IdleTimerExpired: Idle timeout: 00:10:00.",
	}
	retry = &wire.Error{
		Condition: wire.CondInternal, Description: "The server was unable to process the request; please retry the operation.",
	}
	busy = &wire.Error{
		Condition: "com.microsoft:server-busy", Description: "The request was terminated because the namespace ns is being throttled. Error code : 50009.",
	}
	timedOut = &wire.Error{Condition: "com.microsoft:timeout", Description: "The operation did not complete within the allotted timeout."}
)

// TestServiceBusDetaches: a link that Azure detaches is an outage; the message without an answer is in doubt, and is
// sent again on request.
func TestServiceBusDetaches(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fault              managedtest.Fault
		sent, stored, copy int
	}{
		"idle":           {managedtest.Fault{Detach: idle}, 21, 20, 0},
		"idle, stored":   {managedtest.Fault{Detach: idle, Store: true}, 21, 21, 1},
		"internal error": {managedtest.Fault{Detach: retry, Store: true}, 21, 21, 1},
		"busy":           {managedtest.Fault{Detach: busy}, 21, 20, 0},
	} {
		t.Run(name, func(t *testing.T) {
			m := startManaged(t, managedtest.ServiceBus(), managedtest.Told{
				Sent: map[int]managedtest.Fault{6: c.fault},
				// The first three links are those of consumer and producer, and of the producer again.
				Attach: map[int]*wire.Error{3: busy, 4: busy},
			})
			r, _ := m.run(result.StatusOK, "client", "--message-count", "20", "--max-pending", "1", "--reconnect", "--in-doubt", "resend",
				"--verify", "queue://orders")
			require.EqualValues(t, 20, r.Total.Producers.Completed)
			require.EqualValues(t, 1, r.Total.Producers.Resent)
			require.EqualValues(t, c.stored, r.Total.Consumers.Received)
			require.Len(t, r.Outages, 1)
			require.Equal(t, "closed-by-broker", r.Outages[0].Class)
			require.Contains(t, r.Outages[0].Error, c.fault.Detach.Condition)
			require.EqualValues(t, 1, r.Outages[0].InDoubt)
			require.EqualValues(t, c.copy, r.Verification.Total.Resent)
			require.Zero(t, r.Verification.Total.Lost)
			truth := m.Truth()
			refused := slices.DeleteFunc(truth.Attached, func(a managedtest.Attached) bool { return !a.Refused })
			require.Len(t, refused, 2)
			require.Equal(t, []int{c.sent, c.stored, c.stored, 1}, []int{truth.Sent, truth.Stored, truth.Accepted, truth.Detached})
		})
	}
}

// TestServiceBusDetachesConsumer: the messages whose locks are lost with the link come again, and are duplicates.
func TestServiceBusDetachesConsumer(t *testing.T) {
	for name, why := range map[string]*wire.Error{"idle": idle, "internal error": retry} {
		t.Run(name, func(t *testing.T) {
			m := startManaged(t, managedtest.ServiceBus(), managedtest.Told{Delivered: map[int]managedtest.Fault{10: {Detach: why}}})
			r, _ := m.run(result.StatusOK, "client", "--message-count", "30", "--max-pending", "5", "--reconnect", "--verify", "queue://orders")
			require.EqualValues(t, 40, r.Total.Consumers.Received)
			require.EqualValues(t, 10, r.Total.Consumers.Redelivered)
			require.Equal(t, []uint64{30, 10, 10, 0}, []uint64{
				r.Verification.Total.Received, r.Verification.Total.Duplicates, r.Verification.Total.AfterOutage, r.Verification.Total.Lost,
			})
			require.Len(t, r.Outages, 1)
			truth := m.Truth()
			require.Equal(t, []int{30, 40, 30, 10}, []int{truth.Stored, truth.Delivered, truth.Accepted, truth.Returned})
		})
	}
}

// TestServiceBusRefuses: messages that are refused, to be sent again by an application, are rejected; one that timed out
// within the service is in doubt.
func TestServiceBusRefuses(t *testing.T) {
	m := startManaged(t, managedtest.ServiceBus(), managedtest.Told{Sent: map[int]managedtest.Fault{
		3: {Reject: busy}, 4: {Reject: busy}, 9: {Reject: retry}, 12: {Reject: timedOut},
	}})
	r, got := m.run(result.StatusFailed, "client", "--message-count", "20", "--max-pending", "1", "--verify", "queue://orders")
	require.Equal(t, []uint64{16, 3, 1}, []uint64{r.Total.Producers.Completed, r.Total.Producers.Rejected, r.Total.Producers.Unconfirmed})
	require.Equal(t, map[string]map[string]uint64{"rejected": {"full": 2, "other": 1}, "unconfirmed": {"timeout": 1}}, r.Total.Producers.Failures)
	require.EqualValues(t, 1, r.Verification.Total.UnconfirmedMissing)
	require.Zero(t, r.Verification.Total.Lost)
	require.EqualValues(t, 16, r.Total.Consumers.Received)
	require.Contains(t, got.stdout, "throttled: The request was terminated")
	require.Equal(t, 4, m.Truth().Refused)
}

// TestServiceBusEntities: a topic's subscription, dead letters, a large message.
func TestServiceBusEntities(t *testing.T) {
	m := startManaged(t, managedtest.ServiceBus(), managedtest.Told{Subscriptions: []string{"topic1/sub"}})
	m.run(result.StatusOK, "producer", "--message-count", "7", "topic://topic1")
	r, _ := m.run(result.StatusOK, "consumer", "--message-count", "7", "queue://topic1/Subscriptions/sub")
	require.EqualValues(t, 7, r.Total.Consumers.Received)

	r, _ = m.run(result.StatusOK, "client", "--message-count", "5", "--consumer-fail", "100%", "--consumer-fail-as", "reject", "queue://orders")
	require.EqualValues(t, 5, r.Total.Consumers.Received)
	r, _ = m.run(result.StatusOK, "consumer", "--message-count", "5", "queue://orders/$DeadLetterQueue")
	require.EqualValues(t, 5, r.Total.Consumers.Received)

	r, got := m.run(result.StatusFailed, "producer", "--message-count", "1", "--message-size", "300KiB", "queue://orders")
	require.Zero(t, r.Total.Producers.Completed)
	require.Contains(t, got.stdout+got.stderr, "the broker takes no more than 262144")
	require.Equal(t, 12, m.Truth().Stored)
}

// TestServiceBusTokens: a token is put for each node before its link, and one that is wrong ends the run.
func TestServiceBusTokens(t *testing.T) {
	for _, token := range []string{"eyJ0eXAi.header.signature", "SharedAccessSignature sr=ns&sig=x&se=1&skn=send"} {
		t.Run(token[:3], func(t *testing.T) {
			m := startManaged(t, managedtest.ServiceBus(), managedtest.Told{Token: token})
			r, _ := m.run(result.StatusOK, "client", "-o", "sasl=cbs", "--password", token, "--message-count", "20", "queue://orders")
			require.EqualValues(t, 20, r.Total.Consumers.Received)
			require.Equal(t, []string{"amqps://127.0.0.1/orders", "amqps://127.0.0.1/orders"}, m.Truth().Audiences)
			_, got := m.run(result.StatusConnect, "producer", "-o", "sasl=cbs", "--password", token+"x", "queue://orders")
			require.Contains(t, got.stderr, "the broker does not accept the token: InvalidSignature")
			require.NotContains(t, got.stdout+got.stderr, token)
			require.Equal(t, 20, m.Truth().Stored)
		})
	}
}

// TestServiceBusLogin: a wrong key is no reason to try again.
func TestServiceBusLogin(t *testing.T) {
	m := startManaged(t, managedtest.ServiceBus(), managedtest.Told{})
	_, got := m.run(result.StatusConnect, "producer", "--password", "wrong", "--reconnect", "queue://orders")
	require.Contains(t, got.stderr, "the broker does not accept the login")
	require.Empty(t, m.Truth().Attached)
}

// TestIBMMQ: the capability makes a queue of an address, and nothing needs a second session: also not the question
// whether a lost message may still come.
func TestIBMMQ(t *testing.T) {
	m := startManaged(t, managedtest.IBMMQ(), managedtest.Told{Sent: map[int]managedtest.Fault{11: {Lose: true}}})
	r, _ := m.run(result.StatusFailed, "client", "--message-count", "50", "--max-pending", "10", "--drain-timeout", "2s", "--verify", "queue://DEV.QUEUE.1")
	require.Equal(t, []uint64{49, 1}, []uint64{r.Verification.Total.Received, r.Verification.Total.Lost})
	require.EqualValues(t, 50, r.Total.Producers.Completed)
	require.Equal(t, 49, m.Truth().Accepted)

	m.run(result.StatusOK, "client", "--message-count", "20", "topic://dev/topic")
	var kinds []string
	for _, a := range m.Truth().Attached {
		kinds = append(kinds, a.Kind+" "+a.Name)
	}
	require.Equal(t, []string{"queue DEV.QUEUE.1", "queue DEV.QUEUE.1", "topic dev/topic", "topic dev/topic"}, kinds)
	m.NoViolations(t)

	for _, refused := range []struct {
		status int
		role   string
		args   []string
		says   string
	}{
		{result.StatusUsage, "producer", []string{"--commit-interval", "10"}, "IBM MQ over AMQP: there are no transactions"},
		{result.StatusUsage, "consumer", []string{"--tx"}, "IBM MQ over AMQP: there are no transactions"},
		{result.StatusUsage, "consumer", []string{"--consumer-fail", "10%"}, "IBM MQ over AMQP: consumers can only accept messages"},
		{result.StatusConnect, "producer", []string{"--producers", "2", "--shared-connections"}, "the broker's limit of sessions per connection is 1"},
	} {
		_, got := m.run(refused.status, refused.role, append(refused.args, "--message-count", "10", "queue://DEV.QUEUE.1")...)
		require.Contains(t, got.stderr, refused.says)
	}

	// Messages that were sent ahead are not released; they return with the link.
	m.run(result.StatusOK, "producer", "--message-count", "50", "queue://Q")
	r, _ = m.run(result.StatusOK, "consumer", "--message-count", "10", "queue://Q")
	require.EqualValues(t, 10, r.Total.Consumers.Received)
	require.Equal(t, 40, m.Kept("Q"))
	require.Zero(t, m.Truth().Refused)
	m.NoViolations(t)
}

// TestSolace: the prefixes of its open frame make addresses of names, durable subscriptions keep messages, and the
// summary names the broker.
func TestSolace(t *testing.T) {
	m := startManaged(t, managedtest.Solace(), managedtest.Told{})
	_, got := m.run(result.StatusOK, "client", "--message-count", "20", "queue://orders")
	require.Contains(t, got.stdout, "Solace PubSub+ 3560 10.4.1.189")
	durable := []string{"--durable", "--clientID", "c", "--keep-subscription", "topic://a/b"}
	m.run(result.StatusOK, "client", append([]string{"--message-count", "10"}, durable...)...)
	m.run(result.StatusOK, "producer", "--message-count", "15", "topic://a/b")
	r, _ := m.run(result.StatusOK, "consumer", append([]string{"--message-count", "15"}, durable...)...)
	require.EqualValues(t, 15, r.Total.Consumers.Received)
	var addresses []string
	for _, a := range m.Truth().Attached {
		addresses = append(addresses, a.Address)
	}
	require.Equal(t, []string{"queue://orders", "queue://orders", "topic://a/b", "topic://a/b", "topic://a/b", "topic://a/b"}, addresses)
}

// TestAmazonMQ: the standby becomes active during the load. Nothing is lost, and what is in doubt is sent again.
func TestAmazonMQ(t *testing.T) {
	m := startManaged(t, managedtest.AmazonMQ(), managedtest.Told{
		Sent: map[int]managedtest.Fault{30: {FailOver: true, Store: true}},
	})
	r, got := m.run(result.StatusOK, "client", "--url", m.Failover(), "--in-doubt", "resend", "--max-pending", "1",
		"--message-count", "200", "--verify", "queue://orders")
	require.Contains(t, got.stdout, "ActiveMQ 5.18.6")
	truth, total := m.Truth(), r.Verification.Total
	require.EqualValues(t, 200, r.Total.Producers.Completed)
	require.EqualValues(t, 200, total.Received)
	require.Zero(t, total.Lost)
	require.EqualValues(t, 1, r.Total.Producers.Resent)
	require.EqualValues(t, 1, total.Resent)
	require.Equal(t, []int{201, 201}, []int{truth.Stored, truth.Accepted})
	require.Len(t, r.Outages, 1)
	require.EqualValues(t, 1, r.Outages[0].InDoubt)
	for _, w := range r.Workers {
		require.Len(t, w.BrokerHosts, 2, w.Name)
	}
	for _, a := range truth.Attached {
		require.Equal(t, "queue://orders", a.Address)
	}
}

// TestAmazonMQOverSTOMP: the failover list of STOMP over TLS, with the standby first.
func TestAmazonMQOverSTOMP(t *testing.T) {
	m := startManaged(t, managedtest.AmazonMQ(), managedtest.Told{})
	b := musttest.Get(broker.Start(broker.Config{Listen: map[string]string{broker.STOMP: "127.0.0.1:0"}}))(t)
	front := m.Front(t, b.Addr(broker.STOMP))
	t.Cleanup(b.Close) // before the front, whose connections end with it
	url := "failover:(stomp+ssl://" + m.Standby() + ",stomp+ssl://" + front + ")?randomize=false"
	dir := filepath.Join(t.TempDir(), "result")
	got := callReal("stomp", "client", "--url", url, "--tls-ca", m.CAFile, "--user", keyName, "--password", key, "--result", dir,
		"--message-count", "50", "--max-pending", "10", "--verify", "queue://orders")
	require.Equal(t, result.StatusOK, got.status, got.stdout+got.stderr)
	r := musttest.Get(result.Read(dir))(t)
	require.EqualValues(t, 50, r.Verification.Total.Once)
	require.EqualValues(t, 50, b.Stats().Total.Stored)
	require.Empty(t, r.Outages)
}
