//go:build unix

// Package brokertest runs real message brokers for tests and benchmarks: it
// fetches their distribution once, starts a broker on free loopback ports with
// a small heap in a temporary folder, and always stops it again.
//
// # Life of a broker
//
//	Maven coordinates --fetch, under a file lock--> cache folder (the distribution, unpacked once)
//	options --write configuration--> temporary folder of one broker --java--> process --ready line--> handle
//	handle: URLs | Pause, Resume, Kill, Stop, Restart | counters read over the broker's own management
//
// A test that needs a broker of its own calls [StartArtemis]. Since a start
// costs about four seconds, tests of a package better share one:
//
//	var artemis brokertest.Shared // started by the first test that asks
//
//	func TestMain(m *testing.M) { brokertest.Main(m, &artemis) }
//
//	func TestSend(t *testing.T) { b := artemis.Artemis(t); ... b.AMQPURL() ... }
//
// and keep apart by using queues of their own. Programs that are not tests call
// [LaunchArtemis]; scripts and people use the command in cmd/broker.
//
// A test fails, and is never skipped, when its broker cannot start: a suite that
// passes without its broker says nothing.
//
// # Processes
//
// A broker is in a process group of its own, and on Linux the kernel kills it
// when the process that started it dies, however that dies. Its output goes to a
// log file in its folder; failures quote the end of it. Folders left behind
// by processes that were killed are removed by the next start.
//
// # Other roots and networks
//
// RabbitMQ 4 is of another Debian than the machine: its packages are unpacked
// into the cache, from the mirror that apt-get uses, and it runs there by chroot
// in a mount namespace that ends with it, of root or in a user namespace
// (debianroot.go). RocketMQ 4.9 listens on all addresses: it runs in a network
// namespace that has only a loopback, whose ports are published on the machine's
// (netns_linux.go). It needs root, and takes part in `make features` only. RocketMQ's proxy would listen
// on all addresses, too: a Java class of ours starts it on loopback (rocketmq_proxy.go).
//
// # Adding a broker
//
// One file each: an option type, a launch function that fetches (cache.go),
// a function that picks ports (ports.go) and writes the configuration, Start, which calls startMain
// (daemon.go), and a handle with its URLs. artemis.go is the example.
package brokertest
