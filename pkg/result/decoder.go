package result

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// decoder reads histograms in HdrHistogram's V2 compressed encoding and reuses its memory: a result of a day has
// hundreds of thousands, and the library's decoder allocates 180 kB for each. The zero value is ready.
type decoder struct {
	packed   []byte
	source   bytes.Reader
	unpacked io.ReadCloser
	plain    bytes.Buffer
}

const (
	outerBytes  = 8
	lengthAt    = 4
	headBytes   = 40
	outerCookie = 0x1c849304
	innerCookie = 0x1c849303
	cookieMask  = 0xf0 // the word size, which version 2 ignores

	countBytes = 9    // of the longest count
	places     = 3968 // counts of HdrHistogram for the geometry of a result
)

var (
	errEncoding = errors.New("a histogram is cut off, or not in HdrHistogram's V2 compressed encoding")
	errGeometry = errors.New(
		"a histogram has another range or precision than 1 us to 24 h, 2 digits")
)

// decode replaces h. It refuses other ranges, precisions and numbers of counts than a result's.
func (d *decoder) decode(h *Histogram, text []byte) (err error) {
	if len(text) > maxEncoded {
		return fmt.Errorf("a histogram has more than %d bytes", maxEncoded)
	}
	if d.packed, err = base64.StdEncoding.AppendDecode(d.packed[:0], text); err != nil {
		return fmt.Errorf("decode a histogram: %w", err)
	}
	if len(d.packed) < outerBytes || binary.BigEndian.Uint32(d.packed)&^cookieMask != outerCookie {
		return errEncoding
	}
	packed := d.packed[outerBytes:]
	length := binary.BigEndian.Uint32(d.packed[lengthAt:])
	if int64(length) > int64(len(packed)) {
		return errEncoding
	}
	d.source.Reset(packed[:length])
	if again, ok := d.unpacked.(zlib.Resetter); ok {
		err = again.Reset(&d.source, nil)
	} else {
		d.unpacked, err = zlib.NewReader(&d.source)
	}
	if err == nil { // one byte more than there may be; the checksum is verified at the end
		d.plain.Reset()
		_, err = d.plain.ReadFrom(io.LimitReader(d.unpacked, headBytes+places*countBytes+1))
	}
	if err != nil {
		return fmt.Errorf("decode a histogram: %w", err)
	}
	var head struct { // the head of a histogram, before its counts; behind a cookie and its length, of 4 bytes each
		Cookie, Length, Offset, Digits uint32
		Lowest, Highest                int64
		Factor                         float64
	}
	n, err := binary.Decode(d.plain.Bytes(), binary.BigEndian, &head)
	if err != nil || head.Cookie&^cookieMask != innerCookie {
		return errEncoding
	}
	counts := d.plain.Bytes()[n:]
	if head.Digits != significantDigits || head.Lowest != lowestValue || head.Highest != MaxLatency ||
		len(counts) > places*countBytes || int64(head.Length) != int64(len(counts)) {
		return errGeometry
	}
	return h.fill(counts)
}

// fill reads the counts in ascending order of places. A negative count is a number of empty places.
func (h *Histogram) fill(counts []byte) error {
	read, last := Histogram{}, int64(place(MaxLatency))
	for place := int64(0); len(counts) > 0; {
		n, length := binary.Varint(counts) // as HdrHistogram's ZigZag encoding, up to 2^55
		if length <= 0 {
			return errEncoding
		}
		counts = counts[length:]
		switch {
		case n < place-places || n >= 0 && place == places:
			return errGeometry
		case n < 0:
			place -= n
			continue
		case n > maxCounter-read.count:
			return errors.New("a number is too large")
		case n > 0 && place > last:
			return errors.New("a histogram has values above 24 hours")
		case n > 0:
			read.put(int(place), n)
		}
		place++
	}
	*h = read
	return nil
}
