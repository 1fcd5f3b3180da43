package stomp

import (
	"strconv"
	"strings"

	"github.com/perfmq/perfmq/pkg/driver"
)

// declared reports whether the user wants the destination declared as a queue of a certain type.
func (d dialect) declared(dest driver.Destination, o *Options) (bool, error) {
	switch {
	case o.Declare == declareNo:
		return false, nil
	case d != rabbitmq:
		return false, d.unsupported("leave out -o declare", "queues are declared on RabbitMQ only")
	case dest.Kind != driver.Queue || strings.HasPrefix(dest.Name, "/"):
		return false, d.unsupported("leave out -o declare, or use queue://NAME", "only a queue can be declared, by its name")
	}
	return true, nil
}

// declaration returns the headers of SEND and SUBSCRIBE that give the type and arguments with which a queue is declared
// (RabbitMQ's STOMP plug-in, "Queue properties"). They go along with each message.
func (o *Options) declaration() []driver.Property {
	headers := []driver.Property{{Key: "x-queue-type", Value: o.Declare}}
	if o.MaxPriority > 0 {
		headers = append(headers, driver.Property{Key: "x-max-priority", Value: strconv.Itoa(o.MaxPriority)})
	}
	return headers
}

// checkPriority refuses priorities that a queue of RabbitMQ would ignore. The server is the header of CONNECTED.
func (d dialect) checkPriority(dest driver.Destination, o *Options, server string) error {
	switch {
	case d != rabbitmq, strings.HasPrefix(dest.Name, "/"):
		return nil
	case o.Declare == kindStream:
		return d.unsupported("leave out --priority", "streams have no priorities")
	case o.Declare == kindQuorum && majorOf(server) < 4:
		return d.unsupported("leave out --priority", "quorum queues have no priorities before RabbitMQ 4")
	case o.Declare == kindQuorum, o.MaxPriority > 0:
		return nil
	default:
		return d.unsupported("say -o declare=classic -o max-priority=9, or declare it with x-max-priority and name it "+
			"/amq/queue/NAME",
			"a queue has no priorities unless it is declared with them")
	}
}

// majorOf returns the first number of RabbitMQ/4.0.5; 0 if there is none.
func majorOf(server string) int {
	_, version, _ := strings.Cut(server, "/")
	major, _, _ := strings.Cut(version, ".")
	n, _ := strconv.Atoi(major)
	return n
}

// takeStream makes k the only consumer of a stream: each would receive all messages; consumers of a queue share them.
func (k *consumer) takeStream(spec *driver.ConsumerSpec) error {
	d := k.conn.driver
	if d.cfg.Options.Declare != kindStream {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.streams[spec.Destination.Name] {
		return k.conn.dialect.unsupported("use --consumers 1", "each consumer of a stream gets all messages")
	}
	k.stream = spec.Destination.Name
	d.streams[k.stream] = true
	return nil
}

func (k *consumer) freeStream() {
	if k.stream == "" {
		return
	}
	d := k.conn.driver
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.streams, k.stream)
}
