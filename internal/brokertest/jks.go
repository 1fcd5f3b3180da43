//go:build unix

package brokertest

import (
	"bytes"
	"crypto/rand"
	"crypto/sha1" //nolint:gosec // what the format is made of; it guards throw-away keys
	"encoding/asn1"
	"encoding/binary"
	"encoding/pem"
	"fmt"
	"os"
	"time"
	"unicode/utf16"
)

// jksPassword is the password of all stores and of the keys in them.
const jksPassword = "password"

// writeJKS writes a Java key store in Java's oldest format, which every Java reads
// and which takes no keytool to write: the key with its certificate, and the
// certificates to trust. All are PEM files; either kind may be empty.
func writeJKS(path, keyFile, certFile string, trusted ...string) error {
	w := jksWriter{}
	w.put(uint32(0xFEEDFEED), uint32(2))
	entries := len(trusted)
	if keyFile != "" {
		entries++
	}
	w.put(uint32(entries)) //nolint:gosec // few
	if keyFile != "" {
		w.put(uint32(1))
		w.text("server")
		w.put(time.Now().UnixMilli())
		w.block(w.protected(w.pem(keyFile)))
		w.put(uint32(1)) // length of the chain
		w.text("X.509")
		w.block(w.pem(certFile))
	}
	for i, file := range trusted {
		w.put(uint32(2))
		w.text(fmt.Sprintf("ca%d", i))
		w.put(time.Now().UnixMilli())
		w.text("X.509")
		w.block(w.pem(file))
	}
	if w.err != nil {
		return fmt.Errorf("make a Java key store: %w", w.err)
	}
	sum := jksDigest([]byte("Mighty Aphrodite"), w.data.Bytes())
	w.data.Write(sum)
	if err := os.WriteFile(path, w.data.Bytes(), 0o600); err != nil {
		return fmt.Errorf("write a Java key store: %w", err)
	}
	return nil
}

// jksWriter keeps the first error.
type jksWriter struct {
	data bytes.Buffer
	err  error
}

func (w *jksWriter) put(values ...any) {
	for _, v := range values {
		_ = binary.Write(&w.data, binary.BigEndian, v) // to memory, of fixed size
	}
}

func (w *jksWriter) text(s string) {
	w.put(uint16(len(s)), []byte(s)) //nolint:gosec // short
}

func (w *jksWriter) block(b []byte) {
	w.put(uint32(len(b)), b) //nolint:gosec // short
}

func (w *jksWriter) pem(file string) []byte {
	text, err := os.ReadFile(file)
	if err != nil {
		w.err = err
		return nil
	}
	block, _ := pem.Decode(text)
	if block == nil {
		w.err = fmt.Errorf("%s is not in PEM form", file)
		return nil
	}
	return block.Bytes
}

// protected hides a key as the format wants it: by a stream of digests that the
// password and a salt begin.
func (w *jksWriter) protected(key []byte) []byte {
	salt := make([]byte, sha1.Size)
	_, _ = rand.Read(salt) // never fails
	hidden, digest := bytes.Clone(salt), salt
	for i, b := range key {
		if i%sha1.Size == 0 {
			digest = jksDigest(digest)
		}
		hidden = append(hidden, b^digest[i%sha1.Size])
	}
	type algorithm struct {
		ID   asn1.ObjectIdentifier
		Null asn1.RawValue
	}
	der, err := asn1.Marshal(struct {
		Algorithm algorithm
		Data      []byte
	}{
		algorithm{asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 42, 2, 17, 1, 1}, asn1.NullRawValue},
		append(hidden, jksDigest(key)...),
	})
	if err != nil {
		w.err = err
	}
	return der
}

// jksDigest is the digest of the password, as UTF-16, and the parts.
func jksDigest(parts ...[]byte) []byte {
	h := sha1.New() //nolint:gosec // see above
	for _, c := range utf16.Encode([]rune(jksPassword)) {
		h.Write([]byte{byte(c >> 8), byte(c)})
	}
	for _, p := range parts {
		h.Write(p)
	}
	return h.Sum(nil)
}
