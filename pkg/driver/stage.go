package driver

import "time"

// Stage is a part of the opening of a producer or consumer, or its closing.
type Stage uint8

// The stages. The first three belong to a connection: a worker that shares the connection of another does not report
// them.
const (
	// StageConnect: the TCP connection, with the resolution of the host's name.
	StageConnect Stage = iota
	// StageTLS: the TLS handshake.
	StageTLS
	// StageLogin: from the connected, or encrypted, socket to the broker's acceptance. AMQP: SASL and open; STOMP:
	// CONNECT to CONNECTED; RocketMQ: the first request with an answer.
	StageLogin
	// StageAttach: the link, the subscription, the route to the destination. It includes all that the driver asks the
	// broker between the login and the opened producer or consumer.
	StageAttach
	// StageClose: from the end of the last message in flight until the broker has confirmed our leaving, and the end of
	// a connection without other workers.
	StageClose
	NumStages int = iota
)

// String returns the stage's name, which is also the name of its latency in a result.
func (s Stage) String() string {
	names := [...]string{"connect", "tls", "login", "attach", "close"}
	if int(s) < len(names) {
		return names[s]
	}
	return "invalid"
}

// Stages receives the length of each stage of a producer or consumer that ended well: once for each connection that the
// opening makes, and for each host that it tries. A stage without an exchange with the broker is not reported. A stage
// begins where the one before has ended, so that their sum is at most the time of the call. They are reported before
// the call that opens or closes returns. The function is safe for concurrent use.
type Stages func(Stage, time.Duration)

// Ended reports a stage that ends now, and returns the present time: the next stage begins.
func (f Stages) Ended(s Stage, began time.Time) time.Time {
	now := time.Now()
	if f != nil {
		f(s, now.Sub(began))
	}
	return now
}
