package rocketmq

import (
	"context"
	"errors"
	"net"
	"slices"
	"time"

	"github.com/perfmq/perfmq/internal/drivers/protocol"
	"github.com/perfmq/perfmq/internal/transport"
	wire "github.com/perfmq/perfmq/internal/wire/rocketmq"
	"github.com/perfmq/perfmq/pkg/driver"
)

// session is a set of connections beside those that carry the load, for questions and for making and removing what a
// run needs. They are opened when they are needed. It is for one goroutine at a time.
type session struct {
	d       *rocketDriver
	names   *conn            // to a name server
	brokers map[string]*conn // by address
}

func (d *rocketDriver) newSession() *session { return &session{d: d, brokers: map[string]*conn{}} }

// close closes the connections. The session may be used again.
func (s *session) close() {
	if s.names != nil {
		s.names.close()
		s.names = nil
	}
	for _, c := range s.brokers {
		c.close()
	}
	clear(s.brokers)
}

// dial connects to a name server or broker.
func (d *rocketDriver) dial(ctx context.Context, addr string, peer peer) (*conn, error) {
	const maxAddr = 300 // a host's name has at most 253 bytes (RFC 1035, section 3.1)
	host, port, err := net.SplitHostPort(addr)
	if err != nil || len(addr) > maxAddr {
		return nil, driver.Errorf(driver.ClassConnect, "connect to "+transport.Clip(addr, maxName),
			protocol.RocketMQ().Absent, "this is not an address")
	}
	nc, raw, err := protocol.RocketMQ().Dial(ctx, transport.Endpoint{Host: host, Port: port}, d.cfg.Target.TLS, d.cfg.TLS)
	if err != nil {
		return nil, err
	}
	return newConn(addr, nc, raw, &d.mem, d.cfg.MaxBody, d.newSigner(), peer), nil
}

// nameServer returns the connection to the first name server that can be reached, beginning with that of the last time;
// each gets an equal share of the time.
func (s *session) nameServer(ctx context.Context) (*conn, error) {
	if s.names != nil && !s.names.Dead() {
		return s.names, nil
	}
	deadline, _ := ctx.Deadline()
	hosts := s.d.cfg.Target.Hosts
	order := make([]int, len(hosts))
	for i := range order {
		order[i] = (int(s.d.goodServer.Load()) + i) % len(hosts)
	}
	opened, err := transport.First(ctx, hosts, order, time.Until(deadline),
		func(ctx context.Context, host transport.Endpoint) (*conn, error) {
			c, err := s.d.dial(ctx, host.String(), nil)
			if err == nil {
				s.d.goodServer.Store(int32(slices.Index(hosts, host))) //nolint:gosec // of a list that a person typed
			}
			return c, err
		})
	if err != nil {
		return nil, err
	}
	if s.names != nil {
		s.names.close()
	}
	s.names = opened
	return opened, nil
}

// broker returns the connection to a broker.
func (s *session) broker(ctx context.Context, addr string) (*conn, error) {
	old := s.brokers[addr]
	if old != nil && !old.Dead() {
		return old, nil
	}
	opened, err := s.d.dial(ctx, addr, nil)
	if err != nil {
		return nil, err
	}
	if old != nil {
		old.close()
	}
	s.brokers[addr] = opened
	return opened, nil
}

// onMasters calls f with the connection to each master of the cluster, in turn, up to the first error.
func (s *session) onMasters(ctx context.Context, f func(*conn) error) error {
	const op = "list the brokers"
	ns, err := s.nameServer(ctx)
	if err != nil {
		return err
	}
	var info wire.Cluster
	if err := ns.query(ctx, op, wire.ReqGetBrokerClusterInfo, nil, nil, &info); err != nil {
		return err
	}
	var masters []string
	for _, b := range info.Brokers {
		if b.Addresses[wire.MasterID] != "" {
			masters = append(masters, s.d.brokerAddress(b))
		}
	}
	slices.Sort(masters)
	if len(masters) == 0 {
		return driver.Errorf(driver.ClassConnect, op, "start a broker, or wait until it has registered",
			"the name server knows no broker")
	}
	for _, addr := range slices.Compact(masters) {
		c, err := s.broker(ctx, addr)
		if err != nil {
			return err
		}
		if err := f(c); err != nil {
			return err
		}
	}
	return nil
}

// deleteTopics deletes topics on the brokers and, in case one of those is away, at the name servers.
func (s *session) deleteTopics(ctx context.Context, topics ...string) error {
	err := s.onMasters(ctx, func(c *conn) error { return c.deleteTopics(ctx, wire.ReqDeleteTopicInBroker, topics) })
	deadline, _ := ctx.Deadline()
	hosts := s.d.cfg.Target.Hosts
	for i, host := range hosts {
		each, cancel := context.WithTimeout(ctx, time.Until(deadline)/time.Duration(len(hosts)-i+1))
		c, dialErr := s.d.dial(each, host.String(), nil)
		cancel()
		if dialErr != nil {
			continue // a name server that is away forgets topics by itself
		}
		err = errors.Join(err, c.deleteTopics(ctx, wire.ReqDeleteTopicInNamesrv, topics))
		c.close()
	}
	return err
}

func (c *conn) deleteTopics(ctx context.Context, code int, topics []string) error {
	var errs []error
	for _, topic := range topics {
		_, err := c.must(ctx, "delete topic "+topic, code, []field{{"topic", topic}}, nil)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// deleteGroup deletes a consumer group, where it stands, and its topics for redelivery.
func (s *session) deleteGroup(ctx context.Context, group string) error {
	err := s.onMasters(ctx, func(c *conn) error {
		_, err := c.must(ctx, "delete group "+group, wire.ReqDeleteSubscriptionGroup, []field{
			{"groupName", group}, {"cleanOffset", "true"}, {"removeOffset", "true"}, // as 4.9 calls it
		}, nil)
		return err
	})
	return errors.Join(err, s.deleteTopics(ctx, wire.RetryPrefix+group, wire.DeadPrefix+group))
}
