package plan

import (
	"bytes"
	"math/rand/v2"
	"unicode/utf8"

	"github.com/perfmq/perfmq/pkg/driver"
)

// MaxMessageSize is the largest body that a plan may ask for, in bytes.
const MaxMessageSize = 1 << 30

// alphabet has 64 characters, so that six bits of a random number select one without bias.
const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

// The fills of bodies. Empty is [Random].
const (
	// Random is text: letters and digits that an operator can look at on a broker's console, from a generator with a fixed
	// seed (PCG). A broker or a link that compresses gains the quarter that plain text always gives.
	Random = "random"
	// Compressible is the same text, with one sentence again and again in each third part: deflate (gzip) makes it half
	// as long.
	Compressible = "compressible"
	// Zeros are bytes of value 0.
	Zeros = "zeros"
)

// Body returns a payload of --message-size: the same bytes in every run and release, and on every machine. A shorter
// one is the beginning of a longer one.
func Body(size int, fill string) []byte {
	body := make([]byte, size)
	switch fill {
	case Zeros:
	case Compressible:
		const part = 2 * len(sentence) // of random text before each sentence
		source := rand.NewPCG(1, 2)
		for i := 0; i < size; i += part + len(sentence) {
			randomText(source, body[i:min(i+part, size)])
			copy(body[min(i+part, size):], sentence)
		}
	default:
		randomText(rand.NewPCG(1, 2), body)
	}
	return body
}

// sentence is the text that compressible bodies repeat.
const sentence = "perfmq sends compressible text. "

func randomText(source *rand.PCG, body []byte) {
	const charactersPerNumber = 10 // of six bits each, from 64
	for i := 0; i < len(body); i += charactersPerNumber {
		bits := source.Uint64()
		for j := i; j < min(i+charactersPerNumber, len(body)); j++ {
			body[j] = alphabet[bits&63]
			bits >>= 6
		}
	}
}

// text finds the bodies that cannot be sent as text.
func (v *validator) text() {
	list := v.group.Mix
	for _, m := range list {
		if !m.Text {
			continue
		}
		const hint = "--message-type bytes sends any body"
		// A body of --message-size is not made yet; it is ASCII, and may be of zeros.
		v.refuse(!utf8.Valid(m.Body), hint, "--message-type text: the body is not UTF-8: %s", m.BodySource())
		v.refuse(v.stomp && (m.Fill == Zeros && m.BodySize > 0 || bytes.IndexByte(m.Body, 0) >= 0), hint,
			"--message-type text: the body has a NUL, which ends a text of STOMP: %s", m.BodySource())
	}
}

// CheckBody returns a [*Mistake] if no broker of the protocol takes bodies of that many bytes.
func CheckBody(f *driver.Factory, size int) error {
	if f.Name == "rocketmq" && size == 0 {
		return Wrong("give --message-size 1 or more", "%s does not take empty bodies", f.Title)
	}
	return nil
}

// MakeBodies makes the bodies of --message-size, once the plan turned out to be valid. Equal ones are shared.
func (p *Plan) MakeBodies() {
	made := map[string][]byte{}
	for _, g := range p.distinct() {
		for i := range g.Mix {
			v := &g.Mix[i]
			if v.Body != nil {
				continue
			}
			source := v.BodySource()
			if made[source] == nil {
				made[source] = Body(v.BodySize, v.Fill)
			}
			v.Body = made[source]
		}
	}
}
