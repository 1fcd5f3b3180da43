package rocketmq

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha1" //nolint:gosec // the protocol's choice
	"encoding/base64"
	"hash"
	"slices"
)

// Names of the fields of a signed request (SessionCredentials.ACCESS_KEY, SIGNATURE).
const (
	FieldAccessKey = "AccessKey"
	FieldSignature = "Signature"
)

// Signer signs requests with an access key and its secret (AclClientRPCHook.doBeforeRequest,
// AclUtils.combineRequestContent): the signature is the base64 of HMAC-SHA1 over the values of all other fields, in
// the order of their keys, and the body. It is for one goroutine at a time. A nil Signer signs nothing.
type Signer struct {
	accessKey string
	mac       hash.Hash
	order     [][2][]byte // keys and values
	sum       [sha1.Size]byte
	text      [28]byte // base64 of 20 bytes
}

// NewSigner returns a Signer, nil if there is neither a key nor a secret.
func NewSigner(accessKey, secret string) *Signer {
	if accessKey == "" && secret == "" {
		return nil
	}
	return &Signer{accessKey: accessKey, mac: hmac.New(sha1.New, []byte(secret))}
}

// Begin appends the access key to a frame without fields: its name sorts before all others in use.
func (s *Signer) Begin(b []byte) []byte {
	if s == nil {
		return b
	}
	return AppendField(b, FieldAccessKey, s.accessKey)
}

// Sign appends the signature to a frame in the binary codec; b is all of it but the body. It must have no remark, and
// its fields must be in the order of their keys.
func (s *Signer) Sign(b, body []byte) []byte {
	if s == nil {
		return b
	}
	s.mac.Reset()
	for f := b[FieldsAt:]; len(f) > 0; {
		var value []byte
		_, value, f = CutField(f)
		s.mac.Write(value)
	}
	return AppendField(b, FieldSignature, s.end(body))
}

// Verify reports whether a request has the right signature; it is false for a nil Signer.
func (s *Signer) Verify(f *Frame) bool {
	if s == nil {
		return false
	}
	s.order = s.order[:0]
	for b := f.Fields; len(b) > 0; {
		var key, value []byte
		key, value, b = CutField(b)
		if string(key) != FieldSignature {
			s.order = append(s.order, [2][]byte{key, value})
		}
	}
	slices.SortFunc(s.order, func(a, b [2][]byte) int { return bytes.Compare(a[0], b[0]) })
	s.mac.Reset()
	for _, f := range s.order {
		s.mac.Write(f[1])
	}
	clear(s.order)
	return hmac.Equal(s.end(f.Body), f.Get(FieldSignature))
}

// end returns the signature, valid until the next.
func (s *Signer) end(body []byte) []byte {
	s.mac.Write(body)
	base64.StdEncoding.Encode(s.text[:], s.mac.Sum(s.sum[:0]))
	return s.text[:]
}
