package rocketmq

import (
	"context"
	"errors"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/perfmq/perfmq/internal/drivers/protocol"
	wire "github.com/perfmq/perfmq/internal/wire/rocketmq"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/transport"
)

// conns are connections by address, opened on demand: of a client, or without load, for questions, and to create and
// remove topics and groups. It is safe for concurrent use.
type conns struct {
	d     *rocketDriver
	owner *client // nil without load

	lock   sync.Mutex
	byAddr map[string]*conn
}

// connect returns the connection to a name server or broker. It opens the connection if need be, as spec says.
func (s *conns) connect(ctx context.Context, addr string, spec *driver.Connection) (*conn, error) {
	s.lock.Lock()
	known := s.byAddr[addr]
	s.lock.Unlock()
	if known != nil && !known.Dead() {
		return known, nil
	}
	opened, err := s.dial(ctx, addr, spec)
	if err != nil {
		return nil, err
	}
	s.lock.Lock()
	surplus := opened
	if other := s.byAddr[addr]; other == nil || other.Dead() {
		s.byAddr[addr], surplus = opened, other
	}
	kept := s.byAddr[addr]
	s.lock.Unlock()
	if surplus != nil {
		surplus.close() // waits for the goroutines that still run
	}
	return kept, nil
}

func (s *conns) dial(ctx context.Context, addr string, spec *driver.Connection) (*conn, error) {
	const maxAddr = 300 // a host's name has at most 253 bytes (RFC 1035, section 3.1)
	host, port, err := net.SplitHostPort(addr)
	if err != nil || len(addr) > maxAddr {
		return nil, driver.Errorf(driver.ClassConnect, "connect to "+transport.Clip(addr, maxName),
			protocol.RocketMQ().Absent, "this is not an address")
	}
	cfg := &s.d.cfg
	nc, raw, err := protocol.RocketMQ().Dial(ctx, transport.Endpoint{Host: host, Port: port}, cfg.Target.TLS, cfg.TLS,
		spec)
	if err != nil {
		return nil, err
	}
	c := newConn(addr, nc, raw, &s.d.mem, cfg.MaxBody, s.d.newSigner(), s.owner)
	c.stages = spec.Stages
	return c, nil
}

func (s *conns) all() []*conn { return s.appendAll(nil) }

// appendAll appends the connections to list.
func (s *conns) appendAll(list []*conn) []*conn {
	s.lock.Lock()
	defer s.lock.Unlock()
	return slices.AppendSeq(list, maps.Values(s.byAddr))
}

// close closes the connections. Others may be opened afterwards.
func (s *conns) close() {
	for _, c := range s.all() {
		c.close()
	}
}

func (d *rocketDriver) newConns(owner *client) *conns {
	return &conns{d: d, owner: owner, byAddr: map[string]*conn{}}
}

// nameServer returns the connection to the first reachable name server, beginning with the last one used; each gets an
// equal share of the time.
func (s *conns) nameServer(ctx context.Context) (*conn, error) {
	deadline, _ := ctx.Deadline()
	hosts, last := s.d.cfg.Target.Hosts, s.d.goodServer.Load()
	return transport.First(ctx, slices.Concat(hosts[last:], hosts[:last]), nil, time.Until(deadline),
		func(ctx context.Context, host transport.Endpoint) (*conn, error) {
			c, err := s.connect(ctx, host.String(), new(driver.Connection))
			if err == nil {
				s.d.goodServer.Store(int32(slices.Index(hosts, host))) //nolint:gosec // of a short list typed by the user
			}
			return c, err
		})
}

// onMasters calls f with the connection to each master of the cluster, in turn, up to the first error.
func (s *conns) onMasters(ctx context.Context, f func(*conn) error) error {
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
		c, err := s.connect(ctx, addr, new(driver.Connection))
		if err != nil {
			return err
		}
		if err := f(c); err != nil {
			return err
		}
	}
	return nil
}

// deleteGroup deletes a consumer group, its offsets, and its topics for redelivery: on the brokers and, in case a
// broker is unreachable, at the name servers.
func (s *conns) deleteGroup(ctx context.Context, group string) error {
	deleteTopics := func(c *conn, code int, err error) error {
		for _, topic := range []string{wire.RetryPrefix + group, wire.DeadPrefix + group} {
			_, failed := c.must(ctx, "delete topic "+topic, code, []string{"topic", topic}, nil)
			err = errors.Join(err, failed)
		}
		return err
	}
	err := s.onMasters(ctx, func(c *conn) error {
		_, err := c.must(ctx, "delete group "+group, wire.ReqDeleteSubscriptionGroup, []string{
			"groupName", group, "cleanOffset", "true", "removeOffset", "true", // the name in 4.9
		}, nil)
		return deleteTopics(c, wire.ReqDeleteTopicInBroker, err)
	})
	deadline, _ := ctx.Deadline()
	hosts := s.d.cfg.Target.Hosts
	for i, host := range hosts {
		each, cancel := context.WithTimeout(ctx, time.Until(deadline)/time.Duration(len(hosts)-i+1))
		c, unreachable := s.connect(each, host.String(), new(driver.Connection))
		cancel()
		if unreachable == nil { // otherwise a name server drops topics by itself
			err = deleteTopics(c, wire.ReqDeleteTopicInNamesrv, err)
		}
	}
	return err
}
