//go:build unix

package hostile

// goAMQPExceptions are the cases that the AMQP driver cannot meet because of github.com/Azure/go-amqp v1.7.0. They do not
// run: some would take all memory, or never end.
func goAMQPExceptions() map[string]string {
	all := map[string]string{}
	for reason, cases := range map[string][]string{
		"takes frames of up to 2^31-1 bytes, whatever it has announced (Conn.readFrame)": {
			"connect: a header without end", "sasl: a frame of 2^31-1 bytes", "begin: a frame of 2^31-1 bytes", "attach: a frame of 2^31-1 bytes",
			"disposition: a frame of 2^31-1 bytes", "frame: of 2^31-1 bytes", "frame: a thousand times the announced",
			"frame: of 16 MiB, as if none were known", "frame: of one byte more than announced", "large: a frame of one byte more than announced",
			"large: a frame of 2^31-1 bytes", "large: a frame of 100 MiB",
		},
		"does not say how large a frame is that it refuses": {
			"sasl: a frame of 2^32-1 bytes", "frame: of 2^31 bytes", "frame: of 2^32-1 bytes", "large: a frame of 2^32-1 bytes",
		},
		"keeps 8 bytes per empty frame (Conn.readFrame)": {
			"sasl: empty frames without end", "frame: empty ones without end", "flood: empty frames", "flood: empty frames for a producer",
			"end: close is answered by empty frames without end",
		},
		"looks at each number of a disposition's range, and never ends if the last is 2^32-1 (Session.mux)": {
			"disposition: of 0 to 2^32-1", "disposition: of 0 to 2^31", "disposition: of 0 to 2^32-1, again and again",
			"flood: dispositions of all that there can be",
		},
		"compares delivery numbers without regard to RFC 1982, so that a range around zero has nothing in it": {
			"disposition: of a range around zero",
		},
		"computes credit in uint32: a count of the past leaves four billion": {
			"credit: of a count that is long past",
		},
		"does not answer drain": {
			"credit: to be drained before it is used",
		},
		"gathers a message without a limit unless the broker names one (Receiver.muxReceive)": {
			"large: more without end", "large: more of one byte without end", "large: a message that is too large",
		},
		"needs several times the memory of a message": {
			"large: the largest messages",
		},
		"takes messages beyond the credit that it gave, and keeps them": {
			"flood: messages beyond all credit", "flood: messages of a broker that reads no dispositions",
		},
		"queues frames without a limit between its goroutines": {
			"attach: links that nobody asked for", "flood: aborted messages", "large: more of nothing without end",
			"credit: echoes without end", "credit: echoes without end, of a broker that does not read",
		},
		"does not look at the type of a frame": {
			"sasl: a frame of AMQP", "frame: of SASL", "frame: of an unknown type",
		},
		"takes an extended header for the body": {
			"frame: an extended header",
		},
		"reports the end of a frame as the end of the connection": {
			"frame: a descriptor without a value",
		},
		"takes any max-frame-size": {
			"open: frames of at most 0 bytes", "open: frames of at most 511 bytes",
		},
		"does not read why a broker closes instead of opening": {
			"open: refused",
		},
		"takes nothing for a message": {
			"transfer: no message at all",
		},
	} {
		for _, name := range cases {
			all[name] = "go-amqp " + reason
		}
	}
	return all
}
