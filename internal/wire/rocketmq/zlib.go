package rocketmq

import (
	"bytes"
	"compress/zlib"
	"errors"
	"io"
	"slices"
)

// The compressions that we do not know are LZ4 and ZSTD (CompressionType).
var (
	// ErrCompression is for a body of another compression than zlib.
	ErrCompression = errors.New("a body is compressed with LZ4 or ZSTD")
	// ErrTooLong is for a body that would become longer than its limit.
	ErrTooLong = errors.New("a body is longer than its limit")
)

// Inflater undoes the compression of bodies, one after the other. Its zero value is ready.
type Inflater struct {
	source bytes.Reader
	reader io.ReadCloser
	out    []byte
}

// Inflate returns the body of a message with the flag SysCompressed, valid until the next call. It takes memory for
// one byte more than limit at most, as far as there are bytes to fill it. The error is ErrCompression, ErrTooLong, or
// wraps ErrMessage.
func (d *Inflater) Inflate(sysFlag uint32, body []byte, limit int) ([]byte, error) {
	if t := sysFlag & SysCompression; t != 0 && t != SysCompressionZlib {
		return nil, ErrCompression
	}
	if err := d.read(body, limit); err != nil {
		return nil, errors.Join(ErrMessage, err)
	}
	if len(d.out) > limit {
		return nil, ErrTooLong
	}
	return d.out, nil
}

// read decompresses at most one byte more than there may be.
func (d *Inflater) read(compressed []byte, limit int) (err error) {
	d.source.Reset(compressed)
	if d.reader == nil {
		d.reader, err = zlib.NewReader(&d.source)
	} else {
		err = d.reader.(zlib.Resetter).Reset(&d.source, nil)
	}
	if err != nil {
		d.reader = nil
		return err
	}
	const first = 16 << 10
	for d.out = d.out[:0]; len(d.out) <= limit; {
		if len(d.out) == cap(d.out) {
			d.out = slices.Grow(d.out, min(max(first, len(d.out)), limit+1-len(d.out)))
		}
		n, err := d.reader.Read(d.out[len(d.out):cap(d.out)])
		d.out = d.out[:len(d.out)+n]
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}
