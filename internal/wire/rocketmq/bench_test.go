package rocketmq_test

import (
	"testing"

	wire "github.com/perfmq/perfmq/internal/wire/rocketmq"
)

// sendAnswer is as RocketMQ 5 answers a send, with a header in JSON whatever the codec of the request.
const sendAnswer = `{"code":0,"extFields":{"queueId":"3","TRACE_ON":"true","MSG_REGION":"DefaultRegion","msgId":"7F00000100002A9F0000000000001092",` +
	`"queueOffset":"12"},"flag":1,"language":"JAVA","opaque":77,"serializeTypeCurrentRPC":"JSON","version":513}`

const messageProperties = "time\x011700000000000000\x02perfmq_id\x011-2-3-4\x02UNIQ_KEY\x010123456789ABCDEF0123456789ABCDEF\x02"

func BenchmarkParse(b *testing.B) {
	var w wire.Writer
	w.Begin(wire.Binary, wire.ResSuccess, wire.FlagAnswer, 77, "FOUND")
	for _, key := range []string{"suggestWhichBrokerId", "nextBeginOffset", "minOffset", "maxOffset"} {
		w.Int(key, 1234567)
	}
	w.End(0)
	for name, frame := range map[string][]byte{"json": jsonFrame(sendAnswer, ""), "binary": w.B[wire.LengthSize:]} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			var f wire.Frame
			for b.Loop() {
				if f.Parse(frame) != nil || f.Get("maxOffset") == nil && f.Get("queueOffset") == nil {
					b.Fatal("not read")
				}
			}
		})
	}
}

func BenchmarkMessage(b *testing.B) {
	host := []byte{127, 0, 0, 1, 0, 0, 0, 9}
	h := wire.MessageHead{QueueOffset: 7, LogOffset: 7, Born: 1, BornHost: host, Stored: 2, StoreHost: host}
	out := wire.AppendMessage(nil, &h, make([]byte, 1024), "topic", []byte(messageProperties))
	b.Run("append", func(b *testing.B) {
		b.ReportAllocs()
		body, properties := make([]byte, 1024), []byte(messageProperties)
		for b.Loop() {
			out = wire.AppendMessage(out[:0], &h, body, "topic", properties)
		}
	})
	b.Run("cut", func(b *testing.B) {
		b.ReportAllocs()
		var m wire.Message
		for b.Loop() {
			if _, err := m.Cut(out); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkAnswer(b *testing.B) {
	for name, codec := range map[string]wire.Codec{"json": wire.JSON, "binary": wire.Binary} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			var w wire.Writer
			for b.Loop() {
				w.B = w.B[:0]
				w.Begin(codec, wire.ResSuccess, wire.FlagAnswer, 77, "")
				w.Text("msgId", "7F00000100002A9F0000000000001092")
				w.Int("queueId", 3)
				w.Int("queueOffset", 1234567)
				w.End(0)
			}
		})
	}
}
