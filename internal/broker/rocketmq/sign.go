package rocketmq

import wire "github.com/perfmq/perfmq/internal/wire/rocketmq"

// signers are those of the access keys that a connection has used.
type signers map[string]signer

type signer struct {
	*wire.Signer
	secret string
}

// signed tells whether a request is signed with the secret of its access key.
func (c *conn) signed(r *wire.Frame) bool {
	key := r.Get(wire.FieldAccessKey)
	secret, ok := c.s.o.Secret(string(key))
	if !ok {
		return false
	}
	s := c.signers[string(key)]
	if s.Signer == nil || s.secret != secret {
		s = signer{wire.NewSigner(string(key), secret), secret}
		const most = 16
		if c.signers == nil || len(c.signers) >= most {
			c.signers = signers{}
		}
		c.signers[string(key)] = s
	}
	return s.Verify(r)
}
