package rocketmq

import wire "github.com/perfmq/perfmq/internal/wire/rocketmq"

const (
	// headRoom is how much larger than a message's body a frame may be.
	headRoom = 1 << 20
	// largestFrame is how large frames may be at least, that of their length included, as in RocketMQ: what is larger
	// than a message may be is read, to be refused with an answer.
	largestFrame = wire.MaxFrame
)

// writer appends answers, in the codec of the request.
type writer struct{ wire.Writer }

// answer begins an answer to r.
func (w *writer) answer(r *wire.Frame, code int, remark string) {
	w.Begin(r.Codec, code, wire.FlagAnswer, r.Opaque, remark)
}

// simple appends an answer without fields and body.
func (w *writer) simple(r *wire.Frame, code int, remark string) {
	w.answer(r, code, remark)
	w.End(0)
}

// withBody appends an answer with a body.
func (w *writer) withBody(r *wire.Frame, body []byte) {
	w.answer(r, wire.ResSuccess, "")
	w.End(len(body))
	w.B = append(w.B, body...)
}

// withNumber appends an answer with one field.
func (w *writer) withNumber(r *wire.Frame, key string, n int64) {
	w.answer(r, wire.ResSuccess, "")
	w.Int(key, n)
	w.End(0)
}
