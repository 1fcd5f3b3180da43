package rocketmq

import (
	"crypto/hmac"
	"crypto/sha1" //nolint:gosec // the protocol's choice
	"encoding/base64"
	"encoding/binary"
	"hash"
)

// signer signs requests with an access key and its secret, as RocketMQ's ACL wants it (AclClientRPCHook): the base64 of
// HMAC-SHA1 over the values of all fields, in the order of their keys, and the body. It is for one goroutine at a time.
type signer struct {
	accessKey string
	mac       hash.Hash
	sum       [sha1.Size]byte
	text      [28]byte // base64 of 20 bytes
}

// newSigner returns nil, which signs nothing, when there is no user.
func newSigner(user, password string) *signer {
	if user == "" && password == "" {
		return nil
	}
	return &signer{accessKey: user, mac: hmac.New(sha1.New, []byte(password))}
}

// begin appends the access key. Its name sorts before all others in use, so it is the first field.
func (s *signer) begin(b []byte) []byte {
	if s == nil {
		return b
	}
	return appendField(b, "AccessKey", s.accessKey)
}

// sign appends the signature of a frame at b[0] whose fields are in the order of their keys.
func (s *signer) sign(b, body []byte) []byte {
	if s == nil {
		return b
	}
	s.mac.Reset()
	for f := b[fieldsAt:]; len(f) > 0; {
		f = f[2+int(binary.BigEndian.Uint16(f)):]
		n := 4 + int(binary.BigEndian.Uint32(f))
		s.mac.Write(f[4:n])
		f = f[n:]
	}
	s.mac.Write(body)
	base64.StdEncoding.Encode(s.text[:], s.mac.Sum(s.sum[:0]))
	b = binary.BigEndian.AppendUint16(b, uint16(len("Signature")))
	b = append(b, "Signature"...)
	b = binary.BigEndian.AppendUint32(b, uint32(len(s.text)))
	return append(b, s.text[:]...)
}
