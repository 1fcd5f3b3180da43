//go:build unix

package hostile

import (
	"slices"
	"strconv"
	"strings"
	"time"

	rmq "github.com/perfmq/perfmq/internal/wire/rocketmq"
	"github.com/perfmq/perfmq/pkg/driver"
)

func rocketmqCases() []testCase {
	return slices.Concat(rocketConnect(), rocketFrames(), rocketHeaders(), rocketRoutes(), rocketGroups(), rocketSends(),
		rocketPulls(), rocketLargePulls(), rocketRequests(), rocketEnds())
}

// rocketConnect: before anything like an answer.
func rocketConnect() []testCase {
	at := func(do func(*rocketPeer, *rocketRequest)) func(*wire) {
		return rocketAt(rmq.ReqGetRouteInfoByTopic, do)
	}
	return []testCase{
		{name: "connect: silence", job: producing(), play: (*wire).hear, want: openFails("did not answer", timeout)},
		{name: "connect: deaf", job: producing(), play: (*wire).deaf, want: openFails("did not answer", timeout)},
		{name: "connect: closed at once", job: producing(), play: func(*wire) {}, want: openFails("", lost)},
		{name: "connect: a web server", job: producing(), play: at(rocketEnd("HTTP/1.1 400 Bad Request\r\n\r\n")), want: openFails("", protocol)},
		{name: "connect: AMQP", job: producing(), play: at(rocketEnd("AMQP\x00\x01\x00\x00")), want: openFails("", protocol)},
		{name: "connect: STOMP", job: producing(), play: at(rocketEnd("ERROR\n\n\x00")), want: openFails("", protocol)},
		{name: "connect: a TLS alert", job: producing(), play: at(rocketEnd("\x15\x03\x03\x00\x02\x02\x28")), want: openFails("", protocol)},
		{name: "connect: zeros without end", job: producing(), heavy: true, play: at(rocketEndless("", "\x00")), want: openFails("", protocol)},
		{name: "tls: an answer in clear", job: tls(producing()), play: sayAndHear(rocketFrame(0, 0, 1, "", nil, "")), want: openFails("", driver.ClassTLS)},
		{name: "tls: silence", job: tls(producing()), play: (*wire).hear, want: openFails("", timeout)},
		{name: "tls: closed", job: tls(producing()), play: func(*wire) {}, want: openFails("", driver.ClassTLS, connect)},
		{name: "tls: a handshake message without end", job: tls(producing()), heavy: true, play: endlessHandshake, want: openFails("", driver.ClassTLS)},
	}
}

// rocketFrames: frames with false lengths.
func rocketFrames() []testCase {
	at := func(do func(*rocketPeer, *rocketRequest)) func(*wire) {
		return rocketAt(rmq.ReqGetRouteInfoByTopic, do)
	}
	var list []testCase
	for _, n := range []uint32{0, 3, 1<<31 - 1, 1<<32 - 4, 18 << 20} {
		length := strconv.FormatUint(uint64(n), 10)
		list = append(list, testCase{
			name: "frame: of " + length + " bytes", job: producing(), heavy: n == 1<<31-1, want: openFails(length+" bytes", protocol),
			play: at(rocketEndless(rocketHead(n, rmq.Binary, 17), "body")),
		})
	}
	return append(list,
		testCase{name: "frame: the largest, and silence", job: producing(), heavy: true, want: openFails("did not answer", timeout), play: at(rocketSay(rocketHead(16<<20, rmq.Binary, 17)))},
		testCase{name: "frame: a header of 16 MB", job: producing(), heavy: true, want: openFails("header", protocol), play: at(rocketEndless(rocketHead(16<<20, rmq.JSON, 16<<20-4), " "))},
		testCase{name: "frame: a header of nothing", job: producing(), want: openFails("", protocol), play: at(rocketSay(rocketHead(4, rmq.Binary, 0)))},
		testCase{name: "frame: truncated in its length", job: producing(), want: openFails("", lost), play: at(rocketEnd("\x00\x00"))},
		testCase{name: "frame: trickled without end", job: producing(), want: openFails("did not answer", timeout), play: at(func(p *rocketPeer, _ *rocketRequest) {
			for p.say(rocketHead(1<<20, rmq.Binary, 20)); p.say("x"); {
				<-time.After(time.Millisecond)
			}
		})},
		testCase{name: "frame: byte by byte", job: patiently(), want: works(), play: at(func(p *rocketPeer, q *rocketRequest) {
			p.slowly(rocketFrame(0, q.opaque, 1, "", nil, p.route("b", "1", "1")))
		})},
		testCase{name: "frame: answers to something else without end", job: producing(), heavy: true, want: openFails("did not answer", timeout), play: at(func(p *rocketPeer, q *rocketRequest) {
			p.endless(rocketFrame(0, q.opaque+64, 1, "", nil, p.route("b", "1", "1")))
		})},
	)
}

// rocketHeaders: headers that are none, or too much.
func rocketHeaders() []testCase {
	at := func(do func(*rocketPeer, *rocketRequest)) func(*wire) {
		return rocketAt(rmq.ReqGetRouteInfoByTopic, do)
	}
	header := func(h string) func(*wire) { return at(rocketAnswerJSON(h)) }
	raw := func(h string) func(*wire) { return at(rocketSay(rocketEnvelope(rmq.Binary, h, ""))) }
	const binaryHead = "\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\x01" // code, language, version, opaque 0, an answer
	many := func(n int) string {
		var b strings.Builder
		for i := range n {
			b.WriteString(`"` + strconv.FormatInt(int64(i), 36) + `":"\u0041",`)
		}
		return b.String() + `"z":""`
	}
	return []testCase{
		{name: "header: a remark of 2^31-1 bytes", job: producing(), want: openFails("", protocol), play: raw(binaryHead + "\x7f\xff\xff\xff" + zeros(8))},
		{name: "header: too short", job: producing(), want: openFails("", protocol), play: raw(binaryHead)},
		{name: "header: not JSON", job: producing(), want: openFails("", protocol), play: header("{{{{{%d")},
		{name: "header: JSON nested 100,000 deep", job: producing(), heavy: true, want: openFails("", protocol), play: header(`{"flag":1,"opaque":%d,"x":` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + "}")},
		{name: "header: JSON with 60,000 fields", job: producing(), heavy: true, want: openFails("", protocol), play: header(`{"code":0,"flag":1,"opaque":%d,"extFields":{` + many(60_000) + "}}")},
		{name: "header: JSON numbers beyond all", job: producing(), want: openFails("", protocol), play: header(`{"code":99999999999999999999,"flag":1,"opaque":%d}`)},
		{name: "header: JSON with fields that are no texts", job: producing(), want: openFails("", protocol), play: header(`{"code":0,"flag":1,"opaque":%d,"extFields":{"a":[1,2]}}`)},
		{name: "header: JSON with invalid UTF-8", job: producing(), want: openFails("", driver.ClassOther, protocol), play: header("{\"code\":1,\"flag\":1,\"opaque\":%d,\"remark\":\"\xff\xfe\x1b\"}")},
		{name: "header: a remark of 10 MB", job: producing(), heavy: true, want: openFails("header", protocol), play: at(func(p *rocketPeer, q *rocketRequest) {
			rocketRefuse(1, strings.Repeat("so many words ", 700_000))(p, q)
		})},
		{name: "header: a remark of control characters", job: producing(), want: openFails("", driver.ClassOther), play: at(rocketRefuse(1, "\x1b[2J\x07\rno\x00way"))},
	}
}

// rocketRoutes: where the queues of a topic are said to be.
func rocketRoutes() []testCase {
	route := func(body func(p *rocketPeer) string) func(*wire) {
		return rocketAt(rmq.ReqGetRouteInfoByTopic, func(p *rocketPeer, q *rocketRequest) { p.answer(q, rmq.ResSuccess, "", nil, body(p)) })
	}
	queues := func(read, write string) func(*wire) {
		return route(func(p *rocketPeer) string { return p.route("b", read, write) })
	}
	text := func(body string) func(*wire) { return route(func(*rocketPeer) string { return body }) }
	var list []testCase
	for _, n := range []string{"2147483647", "4294967296", "100000"} {
		list = append(list,
			testCase{name: "route: " + n + " queues to send to", job: producing(), heavy: n == "2147483647", want: openFails(n, protocol), play: queues("1", n)},
			testCase{name: "route: " + n + " queues to receive from", job: consuming(), heavy: n == "2147483647", want: openFails(n, protocol), play: queues(n, "1")},
		)
	}
	brokers := func(n int, same bool) func(*wire) {
		return route(func(p *rocketPeer) string {
			var data, queues []string
			for i := range n {
				name := "b"
				if !same {
					name += strconv.Itoa(i)
				}
				data, queues = append(data, p.broker(name)), append(queues, rocketQueues(name, "1000", "1000"))
			}
			return `{"brokerDatas":[` + strings.Join(data, ",") + `],"queueDatas":[` + strings.Join(queues, ",") + `]}`
		})
	}
	return append(list,
		testCase{name: "route: no queues", job: producing(), want: openFails("may be written", driver.ClassAuth), play: queues("0", "0")},
		testCase{name: "route: 2000 brokers of 1000 queues", job: producing(), heavy: true, want: openFails("", protocol), play: brokers(2000, false)},
		testCase{name: "route: one broker 2000 times", job: consuming(), heavy: true, want: openFails("", protocol), play: brokers(2000, true)},
		testCase{name: "route: no brokers", job: producing("create-topic=false"), want: openFails("", driver.ClassNotFound), play: text("{}")},
		testCase{name: "route: truncated", job: producing(), want: openFails("", protocol), play: text(`{"brokerDatas":[{"brokerName":"b"`)},
		testCase{name: "route: nested 100,000 deep", job: producing(), heavy: true, want: openFails("", protocol), play: text(strings.Repeat(`{"a":[`, 100_000))},
		testCase{name: "route: an array of 900 KB", job: producing("create-topic=false"), heavy: true, want: openFails("", driver.ClassNotFound, protocol), play: text(`{"queueDatas":[` + strings.Repeat("{},", 300_000) + "{}]}")},
		testCase{name: "route: keys without quotes", job: patiently(), want: works(), play: route(func(p *rocketPeer) string { return strings.ReplaceAll(p.route("b", "1", "1"), `"0":`, "0:") })},
		testCase{name: "route: an address of 100 KB", job: producing(), want: openFails("", connect, protocol), play: route(func(p *rocketPeer) string {
			return strings.ReplaceAll(p.route("b", "1", "1"), p.peer.listener.Addr().String(), strings.Repeat("a", 100_000)+":1")
		})},
		testCase{name: "route: an address where nobody listens", job: producing(), want: openFails("refused", connect), play: route(func(p *rocketPeer) string {
			return strings.ReplaceAll(p.route("b", "1", "1"), p.peer.listener.Addr().String(), "127.0.0.1:1")
		})},
		testCase{name: "route: no such topic, for ever", job: producing(), want: openFails("", timeout), play: rocketAt(rmq.ReqGetRouteInfoByTopic, rocketRefuse(rmq.ResTopicNotExist, "no topic"))},
		testCase{name: "cluster: 16 MB", job: producing(), heavy: true, want: openFails("bytes", protocol), play: rocketNoTopicThen(rmq.ReqGetBrokerClusterInfo, rocketArray(`{"brokerAddrTable":{`, `"a":{},`, 2<<20, `"b":{}}}`))},
		testCase{name: "cluster: the topic is refused", job: producing(), want: openFails("no room", driver.ClassOther), play: rocketNoTopicThen(rmq.ReqUpdateAndCreateTopic, rocketRefuse(1, "no room"))},
	)
}

// rocketNoTopicThen is rocketAt for a name server that does not know the topic, so that it is to be created.
func rocketNoTopicThen(code int, do func(*rocketPeer, *rocketRequest)) func(*wire) {
	return rocketAt(code, do, rocketAct{rmq.ReqGetRouteInfoByTopic, rocketRefuse(rmq.ResTopicNotExist, "no topic")})
}

// rocketGroups: a consumer becomes a member of its group.
func rocketGroups() []testCase {
	at := rocketAt
	var list []testCase
	for _, one := range []struct {
		name string
		code int
	}{
		{"heartbeat", rmq.ReqHeartBeat},
		{"group", rmq.ReqGetSubscriptionGroupConfig},
		{"members", rmq.ReqGetConsumerListByGroup},
		{"lock", rmq.ReqLockBatchMQ},
		{"offset", rmq.ReqQueryConsumerOffset},
	} {
		list = append(list,
			testCase{name: one.name + ": silence", job: consuming(), want: openFails("", timeout), play: at(one.code, rocketSay(""))},
			testCase{name: one.name + ": closed", job: consuming(), want: openFails("", lost), play: at(one.code, rocketEnd(""))},
			testCase{name: one.name + ": a frame of 2^31-1 bytes", job: consuming(), want: openFails("2147483647", protocol, tooLarge), play: at(one.code, rocketEndless(rocketHead(1<<31-1, 1, 17), "x"))},
			testCase{name: one.name + ": garbage", job: consuming(), want: openFails("", protocol), play: at(one.code, rocketSay("\x00\x00\x00\x08garbage!"))},
		)
	}
	return append(list,
		testCase{name: "members: nobody", job: consuming(), want: openFails("", timeout), play: at(rmq.ReqGetConsumerListByGroup, rocketBody(`{"consumerIdList":[]}`))},
		testCase{name: "members: others only", job: consuming(), want: openFails("", timeout), play: at(rmq.ReqGetConsumerListByGroup, rocketBody(`{"consumerIdList":["a","b"]}`))},
		testCase{name: "members: 300,000 others", job: consuming(), heavy: true, want: openFails("", timeout), play: at(rmq.ReqGetConsumerListByGroup, rocketArray(`{"consumerIdList":[`, `"",`, 300_000, `""]}`))},
		testCase{name: "members: nested", job: consuming(), want: openFails("", protocol), play: at(rmq.ReqGetConsumerListByGroup, rocketBody(`{"consumerIdList":`+strings.Repeat("[", 100_000)))},
		testCase{name: "lock: nothing", job: consuming(), want: works(), play: at(rmq.ReqLockBatchMQ, rocketBody(`{"lockOKMQSet":[]}`))},
		testCase{name: "offset: a text", job: consuming(), want: openFails("no offset", protocol), play: at(rmq.ReqGetMinOffset, func(p *rocketPeer, q *rocketRequest) {
			p.answer(q, 0, "", map[string]string{"offset": "far"}, "")
		}, rocketAct{rmq.ReqQueryConsumerOffset, rocketBody("")})},
		testCase{name: "offset: negative", job: consuming(), want: works(), play: at(rmq.ReqQueryConsumerOffset, func(p *rocketPeer, q *rocketRequest) {
			p.answer(q, 0, "", map[string]string{"offset": "-5"}, "")
		})},
		testCase{name: "offset: the last of all", job: consuming(), want: quiet(0), play: at(rmq.ReqQueryConsumerOffset, func(p *rocketPeer, q *rocketRequest) {
			p.answer(q, 0, "", map[string]string{"offset": "9223372036854775807"}, "")
		})},
	)
}

// patiently is a job of a producer that waits for answers for longer than a busy machine needs.
func patiently(options ...string) job {
	return producing(append([]string{"send-timeout=40s"}, options...)...)
}
