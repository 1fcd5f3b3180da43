//go:build unix

package hostile

import (
	"bytes"
	"compress/zlib"
	"strconv"
	"strings"
	"time"

	rmq "github.com/perfmq/perfmq/internal/wire/rocketmq"
	"github.com/perfmq/perfmq/pkg/driver"
)

// rocketSends: answers to sends.
func rocketSends() []testCase {
	at := func(do func(*rocketPeer, *rocketRequest)) func(*wire) { return rocketAt(rmq.ReqSendMessageV2, do) }
	soon := producing("send-timeout=200ms")
	return []testCase{
		{name: "send: silence", job: soon, want: runFails("no answer in time", timeout).after(0), play: at(rocketSay(""))},
		{name: "send: silence, and the end of the run", job: patiently(), want: quiet(0), play: at(rocketSay(""))},
		{name: "send: closed", job: patiently(), want: runFails("", lost).after(0), play: at(rocketEnd(""))},
		{name: "send: answers three times", job: patiently(), want: works(), play: at(func(p *rocketPeer, q *rocketRequest) {
			p.confirm(q)
			p.peer.confirmed.Add(-2)
			p.confirm(q)
			p.confirm(q)
		})},
		{name: "send: answers to what was never sent", job: soon, want: runFails("no answer in time", timeout).after(0), play: at(func(p *rocketPeer, q *rocketRequest) {
			for _, n := range []uint32{64, 128, 1 << 20, 1 << 31, 1<<32 - 64} {
				p.say(rocketFrame(0, q.opaque+n, 1, "", nil, ""))
			}
		})},
		{name: "send: answers in JSON", job: patiently(), want: works(), play: at(func(p *rocketPeer, q *rocketRequest) {
			p.peer.confirmed.Add(1)
			rocketAnswerJSON(`{"code":0,"flag":1,"language":"JAVA","opaque":%d,"extFields":{"msgId":"1"},"serializeTypeCurrentRPC":"JSON","version":1}`)(p, q)
		})},
		{name: "send: answers in JSON with all that it allows", job: patiently(), want: works(), play: at(func(p *rocketPeer, q *rocketRequest) {
			p.peer.confirmed.Add(1)
			rocketAnswerJSON(" { \"code\" : 0, \"x\":[{}, null, true, 1.5e300, \"\\ud800\"], \"flag\": 1,\r\n\t\"opaque\":%d , \"remark\":null, \"extFields\":null } ")(p, q)
		})},
		{name: "send: each is refused", job: patiently(), want: runFails("full", driver.ClassFull).after(0), play: at(rocketRefuse(2, "the pool is full"))},
		{name: "send: an unknown code", job: patiently(), want: runFails("code 31000", driver.ClassOther).after(0), play: at(rocketRefuse(31000, "what?"))},
		{name: "send: a frame of 2^31-1 bytes", job: patiently(), heavy: true, want: runFails("2147483647", tooLarge, protocol).after(0), play: at(rocketEndless(rocketHead(1<<31-1, 1, 17), "x"))},
		{name: "send: a batch is never answered", job: producing("send=batch", "send-timeout=200ms"), want: runFails("no answer in time", timeout).after(0), play: rocketAt(rmq.ReqSendBatchMessage, rocketSay(""))},
		{name: "send: a half message without an id", job: patiently("transactional=true"), want: works(), play: at(func(p *rocketPeer, q *rocketRequest) {
			p.peer.confirmed.Add(1)
			p.answer(q, 0, "", nil, "")
		})},
		{name: "send: a half message with an id of garbage", job: patiently("transactional=true"), want: works(), play: at(func(p *rocketPeer, q *rocketRequest) {
			p.peer.confirmed.Add(1)
			p.answer(q, 0, "", map[string]string{"msgId": strings.Repeat("z", 32), "transactionId": zeros(100_000), "queueOffset": "far"}, "")
		})},
		{name: "send: the broker does not read", job: producing("send-timeout=200ms").messages(200), want: runFails("", timeout).after(0), play: at(func(p *rocketPeer, _ *rocketRequest) { p.deaf() })},
	}
}

// pulled is a case's act for the first pull of a queue.
func pulled(do func(*rocketPeer, *rocketRequest)) func(*wire) {
	return rocketAt(rmq.ReqPullMessage, func(p *rocketPeer, q *rocketRequest) {
		if p.firstPull(q) {
			do(p, q)
		}
	})
}

// pulledBody answers the first pull of a queue with that body.
func pulledBody(body string) func(*wire) {
	return pulled(func(p *rocketPeer, q *rocketRequest) {
		p.peer.delivered.Add(10)
		p.pulledSome(q, 10, body)
	})
}

// tenMessages is the body of an answer with ten messages that are all the same but for their offset.
func tenMessages(m rocketMessage) string {
	var b []byte
	for i := range 10 {
		m.offset = uint64(i) //nolint:gosec // small
		b = m.append(b)
	}
	return string(b)
}

// rocketPulls: answers to pulls.
func rocketPulls() []testCase {
	good := rocketMessage{topic: "q", body: []byte("body")}
	with := func(change func(*rocketMessage)) string {
		m := good
		change(&m)
		return tenMessages(m)
	}
	// patched is one message with other bytes at an offset.
	patched := func(at int, text string) string {
		b := good.append(nil)
		return string(append(append(b[:at:at], text...), b[at+len(text):]...))
	}
	fields := func(next string) func(*wire) {
		return pulled(func(p *rocketPeer, q *rocketRequest) {
			p.peer.delivered.Add(10)
			p.answer(q, rmq.ResSuccess, "", map[string]string{"nextBeginOffset": next}, tenMessages(good))
		})
	}
	return []testCase{
		{name: "pull: silence", job: consuming(), want: quiet(0), play: pulled(rocketSay(""))},
		{name: "pull: closed", job: consuming(), want: runFails("", lost).after(0), play: pulled(rocketEnd(""))},
		{name: "pull: closed in mid-frame", job: consuming(), want: runFails("", lost).after(0), play: pulled(rocketEnd(rocketHead(1000, 1, 100) + "half"))},
		{name: "pull: silence in mid-frame", job: consuming(), want: quiet(0), play: pulled(rocketSay(rocketHead(1000, 1, 100) + "half"))},
		{name: "pull: the answer twice", job: consuming().messages(11), want: quiet(10), play: pulled(func(p *rocketPeer, q *rocketRequest) {
			p.deliver(q, 10)
			p.deliver(q, 10)
		})},
		{name: "pull: an answer without a next offset", job: consuming(), want: works(), play: pulled(func(p *rocketPeer, q *rocketRequest) {
			p.peer.delivered.Add(10)
			p.answer(q, 0, "", nil, tenMessages(good))
		})},
		{name: "pull: a next offset of the past", job: consuming(), want: works(), play: fields("-9223372036854775808")},
		{name: "pull: success with nothing in it, for ever", job: consuming(), want: quiet(0), play: rocketAt(rmq.ReqPullMessage, rocketBody(""))},
		{name: "pull: the offset moved, for ever", job: consuming(), want: quiet(0), play: rocketAt(rmq.ReqPullMessage, rocketRefuse(21, ""))},
		{name: "pull: refused with 900 KB", job: consuming(), heavy: true, want: runFails("no", driver.ClassNotFound).after(0), play: rocketAt(rmq.ReqPullMessage, rocketRefuse(26, strings.Repeat("no group ", 100_000)))},
		{name: "pull: a message of 0 bytes", job: consuming(), want: runFails("", protocol).after(0), play: pulledBody(patched(0, "\x00\x00\x00\x00"))},
		{name: "pull: a message of 2^31-1 bytes", job: consuming(), want: runFails("", protocol).after(0), play: pulledBody(patched(0, "\x7f\xff\xff\xff"))},
		{name: "pull: an unknown mark", job: consuming(), want: runFails("", protocol).after(0), play: pulledBody(patched(4, "\x01\x02\x03\x04"))},
		{name: "pull: a body of 2^31-1 bytes", job: consuming(), want: runFails("", protocol).after(0), play: pulledBody(patched(84, "\x7f\xff\xff\xff"))},
		{name: "pull: hosts that are not there", job: consuming(), want: runFails("", protocol).after(0), play: pulledBody(patched(36, "\xff\xff\xff\xff"))},
		{name: "pull: garbage after the messages", job: consuming().messages(11), want: runFails("", protocol).after(10), play: pulledBody(tenMessages(good) + "garbage")},
		{name: "pull: properties that are none", job: consuming(), want: works(), play: pulledBody(with(func(m *rocketMessage) { m.properties = "\x01\x02\x01\x01\x02time\x02time\x01\x02perfmq_id\x01x-\x02" }))},
		{name: "pull: times beyond all ages", job: consuming(), want: works(), play: pulledBody(with(func(m *rocketMessage) { m.properties = "time\x01-9223372036854775808\x02" }))},
		{name: "pull: messages of another topic", job: consuming(), want: works(), play: pulledBody(with(func(m *rocketMessage) { m.topic = strings.Repeat("\xff", 255) }))},
	}
}

// packed returns n bytes, compressed.
func packed(n int) []byte {
	var b bytes.Buffer
	w := zlib.NewWriter(&b)
	_, _ = w.Write(make([]byte, n))
	_ = w.Close()
	return b.Bytes()
}

// bomb returns a compressed stream of n MiB of zeros, and no end: a kilobyte for each MiB, the same for all but the
// first.
func bomb(n int) []byte {
	var b bytes.Buffer
	w := zlib.NewWriter(&b)
	var ends []int
	for chunk := make([]byte, 1<<20); len(ends) < 3; ends = append(ends, b.Len()) {
		_, _ = w.Write(chunk)
		_ = w.Flush()
	}
	return append(b.Bytes()[:ends[1]:ends[1]], bytes.Repeat(b.Bytes()[ends[1]:ends[2]], n-2)...)
}

// rocketLargePulls: answers to pulls that try to exhaust memory.
func rocketLargePulls() []testCase {
	compressed := func(body []byte, flag uint32) func(*wire) {
		return pulledBody(tenMessages(rocketMessage{topic: "q", sysFlag: 1 | flag, body: body}))
	}
	const most = driver.DefaultMaxBody
	// each answers each pull of each of n queues with one message of that size.
	each := func(queues, size int) func(*wire) {
		return rocketAt(rmq.ReqPullMessage, func(p *rocketPeer, q *rocketRequest) {
			from, err := strconv.ParseUint(q.fields["queueOffset"], 10, queueShift)
			queue, err2 := strconv.ParseUint(q.fields["queueId"], 10, 20)
			if err != nil || err2 != nil || q.fields["topic"][0] == '%' {
				return
			}
			p.peer.delivered.Add(1)
			time := "time\x01" + strconv.FormatUint(queue<<queueShift|from, 10) + "\x02"
			p.pulledLarge(q, rocketMessage{offset: from, topic: "q", properties: time}, size)
		}, rocketAct{rmq.ReqGetRouteInfoByTopic, func(p *rocketPeer, q *rocketRequest) {
			n := strconv.Itoa(queues)
			p.answer(q, rmq.ResSuccess, "", nil, p.route("b", n, n))
		}})
	}
	return []testCase{
		{name: "bomb: 3 GB of zeros", job: consuming(), heavy: true, want: runFails("more than the 16777216 that perfmq accepts", tooLarge).after(0), play: pulledBody(string(rocketMessage{topic: "q", sysFlag: 1, body: bomb(3 << 10)}.append(nil)))},
		{name: "bomb: one byte too many", job: consuming(), want: runFails("more than the 16777216 that perfmq accepts", tooLarge).after(0), play: compressed(packed(most+1), 0)},
		{name: "bomb: the largest bodies", job: consuming(), heavy: true, want: works(), play: compressed(packed(most), 0)},
		{name: "bomb: a body that is not compressed", job: consuming(), want: runFails("", protocol).after(0), play: compressed([]byte("not compressed"), 0)},
		{name: "bomb: a compressed body with a wrong checksum", job: consuming(), want: runFails("", protocol).after(0), play: compressed(append(packed(1000)[:10], "\xff\xff\xff\xff\xff\xff"...), 0)},
		{name: "bomb: compressed by something else", job: consuming(), want: runFails("LZ4 or ZSTD", driver.ClassUnsupported).after(0), play: compressed([]byte("x"), 1<<8)},
		{name: "bomb: a preset dictionary", job: consuming(), want: runFails("", protocol).after(0), play: compressed([]byte("\x78\xbb\x00\x00\x00\x01abc"), 0)},
		{name: "large: the largest messages in eight queues", job: ordered(consuming().messages(10)), heavy: true, want: works(), play: each(8, most)},
		{name: "large: messages of 256 KB in a hundred queues", job: ordered(consuming().messages(150)), heavy: true, want: works(), play: each(100, 256<<10)},
		{name: "large: a message of 18 MB", job: consuming(), want: runFails("bytes; perfmq accepts at most", tooLarge, protocol).after(0), play: each(1, 18<<20)},
		{name: "large: the largest frame, and silence", job: consuming(), heavy: true, want: quiet(0), play: pulled(rocketSay(rocketHead(16<<20, 1, 17)))},
		{name: "large: answers to pulls without end", job: ordered(consuming().watched(time.Second).messages(1 << 30)), heavy: true, want: want{quiet: true, some: -1}, play: each(8, 1000)},
	}
}

// rocketRequests: requests of the broker.
func rocketRequests() []testCase {
	const second = time.Second
	afterHeartbeat := func(do func(*rocketPeer, *rocketRequest)) func(*wire) {
		return rocketAt(rmq.ReqHeartBeat, func(p *rocketPeer, q *rocketRequest) {
			p.behave(q)
			do(p, q)
		})
	}
	check := rocketMessage{topic: "q", body: []byte("body"), properties: "UNIQ_KEY\x01" + strings.Repeat("A", 40) + "\x02PGROUP\x01g\x02perfmq-tx\x01c\x02"}.append(nil)
	return []testCase{
		{name: "request: unknown ones", job: patiently(), want: works(), play: afterHeartbeat(func(p *rocketPeer, _ *rocketRequest) {
			for _, code := range []int{0, 1, 39, 40, 220, 221, 307, 326, 65535} {
				p.say(rocketFrame(code, 7, 0, "", nil, "garbage"))
				p.say(rocketFrame(code, 7, 2, "", map[string]string{"consumerGroup": zeros(1000)}, ""))
			}
		})},
		{name: "request: the members have changed, without end", job: consuming().watched(second).messages(1 << 30), heavy: true, want: want{quiet: true, some: -1}, play: afterHeartbeat(func(p *rocketPeer, q *rocketRequest) {
			go p.endless(rocketFrame(rmq.ReqNotifyConsumerIDsChanged, 7, 2, "", map[string]string{"consumerGroup": "perfmq-queue-q"}, ""))
		})},
		{name: "request: checks of nobody's messages", job: patiently("transactional=true"), want: works(), play: afterHeartbeat(func(p *rocketPeer, _ *rocketRequest) {
			for range 1000 {
				p.say(rocketFrame(rmq.ReqCheckTransactionState, 7, 2, "", map[string]string{"commitLogOffset": "1"}, string(check)))
			}
		})},
		{name: "request: checks of garbage", job: patiently("transactional=true"), want: works(), play: afterHeartbeat(func(p *rocketPeer, _ *rocketRequest) {
			for n := range check {
				p.say(rocketFrame(rmq.ReqCheckTransactionState, 7, 2, "", nil, string(check[:n])))
			}
		})},
		{
			name: "request: checks without end, of a broker that does not read", heavy: true, want: runFails("", lost, timeout, protocol).after(0),
			job: producing("transactional=true", "send-timeout=40s"), play: rocketAt(rmq.ReqSendMessageV2, func(p *rocketPeer, _ *rocketRequest) {
				p.endless(rocketFrame(rmq.ReqCheckTransactionState, 7, 2, "", map[string]string{"commitLogOffset": "1", "transactionId": zeros(500)}, string(check)))
			}),
		},
	}
}

// rocketEnds: how it ends.
func rocketEnds() []testCase {
	return []testCase{
		{name: "end: leaving the group is not answered", job: consuming(), want: works(), play: rocketAt(rmq.ReqUnregisterClient, rocketSay(""))},
		{name: "end: leaving the group is answered by a close", job: consuming(), want: works(), play: rocketAt(rmq.ReqUnregisterClient, rocketEnd(""))},
		{name: "end: the offset is refused", job: consuming(), want: works(), play: rocketAt(rmq.ReqUpdateConsumerOffset, rocketRefuse(1, "no"))},
		{name: "end: the offset is answered by a frame without end", job: consuming(), want: works(), play: rocketAt(rmq.ReqUpdateConsumerOffset, rocketEndless(rocketHead(16<<20, 1, 17), "x"))},
		{name: "end: the queues are not unlocked", job: consuming(), want: works(), play: rocketAt(42, rocketSay(""))},
		{name: "end: a topic's group is not deleted", job: topical(consuming()), want: works(), play: rocketAt(207, rocketSay(""))},
		{name: "end: a topic's group is deleted with garbage", job: topical(consuming()), want: works(), play: rocketAt(207, rocketEndless("", "\xff"))},
		{name: "end: the cluster is of 2000 brokers", job: topical(consuming()), want: works(), play: rocketAt(rmq.ReqGetBrokerClusterInfo, func(p *rocketPeer, q *rocketRequest) {
			var brokers []string
			for i := range 2000 {
				brokers = append(brokers, `"b`+strconv.Itoa(i)+`":`+strings.ReplaceAll(p.broker("b"), "127.0.0.1", "127.0."+strconv.Itoa(i/200)+"."+strconv.Itoa(i%200)))
			}
			p.answer(q, 0, "", nil, `{"brokerAddrTable":{`+strings.Join(brokers, ",")+"}}")
		})},
	}
}
