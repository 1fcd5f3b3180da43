package rocketmq

import (
	"bytes"
	"compress/zlib"
)

// Deflate compresses a body.
func Deflate(body []byte) []byte {
	var b bytes.Buffer
	w := zlib.NewWriter(&b)
	_, _ = w.Write(body)
	_ = w.Close()
	return b.Bytes()
}

// Cap returns the memory that an Inflater keeps, in bytes.
func (d *Inflater) Cap() int { return cap(d.out) }
