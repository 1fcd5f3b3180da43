package plan

import (
	"fmt"
	"math/rand/v2"

	"github.com/perfmq/perfmq/pkg/driver"
)

// MaxMessageSize is the largest body that a plan may ask for, in bytes.
const MaxMessageSize = 1 << 30

// alphabet has 64 characters, so that six bits of a random number select one without bias.
const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

// Body returns the payload of --message-size: the same bytes in every run and on every machine, letters and digits that an
// operator can look at on a broker's console, from a generator with a fixed seed (PCG) so that neither a broker nor a
// link that compresses gets more than the quarter that plain text always gives.
func Body(size int) []byte {
	const charactersPerNumber = 10 // of six bits each, from 64
	source := rand.NewPCG(1, 2)
	body := make([]byte, size)
	for i := 0; i < size; i += charactersPerNumber {
		bits := source.Uint64()
		for j := i; j < min(i+charactersPerNumber, size); j++ {
			body[j] = alphabet[bits&63]
			bits >>= 6
		}
	}
	return body
}

// CheckBody returns a [*Mistake] if no broker of the protocol takes bodies of that many bytes.
func CheckBody(f *driver.Factory, size int) error {
	if least, _ := bodyLimits(f); size < least {
		return mistake(fmt.Sprintf("give --message-size %d or more", least), "%s does not take empty bodies", f.Title)
	}
	return nil
}

// bodyLimits returns the smallest body that a protocol allows, and the largest that its brokers take unless they are told
// otherwise (0 if there is no such size), in bytes. [driver.Capabilities] does not know them.
func bodyLimits(f *driver.Factory) (least, usual int) {
	if f.Name == "rocketmq" {
		return 1, 4 << 20 // maxMessageSize in broker.conf
	}
	return 0, 0
}

// MakeBodies makes the bodies of fixed text, once the plan turned out to be valid. Groups share those of the same size.
func (p *Plan) MakeBodies() {
	made := map[int][]byte{}
	for i := range p.Steps {
		for _, g := range p.Steps[i].Groups {
			if g.Body != nil || !g.Role.Produces() {
				continue
			}
			if made[g.BodySize] == nil {
				made[g.BodySize] = Body(g.BodySize)
			}
			g.Body = made[g.BodySize]
		}
	}
}
