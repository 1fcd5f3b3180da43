package stomp

import (
	wire "github.com/perfmq/perfmq/internal/wire/stomp"
	"github.com/perfmq/perfmq/pkg/driver"
)

// failing returns the header line, beside its own, of the NACK for the verdict that is not Accept. The effect of a NACK
// differs between brokers: Artemis drops the message, ActiveMQ Classic moves it to the dead letters; RabbitMQ and the
// embedded broker deliver it again, or drop it if they are told not to. All brokers but those ignore the header.
func (d dialect) failing(spec *driver.ConsumerSpec, o *Options, v wire.Version) (header []byte, err error) {
	const flag = "--consumer-fail"
	switch {
	case spec.Failing == driver.Accept:
		return nil, nil
	case v == wire.V10:
		return nil, d.unsupported("leave out "+flag+", or -o version=1.0", "STOMP 1.0 has no NACK")
	case spec.TransactionSize > 0:
		return nil, d.unsupported("leave out "+flag+" or --tx", "a NACK in a transaction is not the same at all brokers")
	case o.Ack == ackAuto || o.Ack == ackClient:
		return nil, d.unsupported("leave out "+flag+", or use -o ack=client-individual",
			"with ack="+o.Ack+" a message cannot fail by itself")
	case d == generic:
		return nil, d.unsupported("", "it is not known what a NACK does")
	case spec.Failing == driver.Reject:
		return []byte("\nrequeue:false"), nil
	case d == rabbitmq, d == perfmq:
		return nil, nil
	default:
		return nil, d.unsupported("--consumer-fail-as reject", "a message cannot be given back: a NACK is its end")
	}
}

// answer settles a message by itself, as the verdict says.
func (k *consumer) answer(v driver.Verdict, ack []byte) {
	if v == driver.Accept || k.failing == driver.Accept {
		k.put(wire.ACK, ack)
		return
	}
	k.putIn(wire.NACK, ack, k.nack)
}
