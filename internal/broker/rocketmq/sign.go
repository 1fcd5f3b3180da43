package rocketmq

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha1" //nolint:gosec // the protocol's choice
	"encoding/base64"
	"hash"
	"slices"
)

// signers are those of the access keys that a connection has used.
type signers struct {
	byKey map[string]*signer
	order []field
}

type signer struct {
	secret string
	mac    hash.Hash
}

// signed tells whether a request has the signature that RocketMQ's ACL wants (AclClientRPCHook): the base64 of HMAC-SHA1
// over the values of all fields but itself, in the order of their keys, and the body.
func (c *conn) signed(r *request) bool {
	key := r.get("AccessKey")
	given := r.get("Signature")
	secret, ok := c.s.o.Secret(string(key))
	if !ok || len(given) == 0 {
		return false
	}
	s := c.signer.byKey[string(key)]
	if s == nil || s.secret != secret {
		s = &signer{secret, hmac.New(sha1.New, []byte(secret))}
		const most = 16
		if c.signer.byKey == nil || len(c.signer.byKey) >= most {
			c.signer.byKey = map[string]*signer{}
		}
		c.signer.byKey[string(key)] = s
	}
	c.signer.order = append(c.signer.order[:0], r.fields...)
	slices.SortFunc(c.signer.order, func(a, b field) int { return bytes.Compare(a.key, b.key) })
	s.mac.Reset()
	for _, f := range c.signer.order {
		if string(f.key) != "Signature" {
			s.mac.Write(f.value)
		}
	}
	s.mac.Write(r.body)
	var sum [sha1.Size]byte
	want := base64.StdEncoding.AppendEncode(nil, s.mac.Sum(sum[:0]))
	return hmac.Equal(want, given)
}
