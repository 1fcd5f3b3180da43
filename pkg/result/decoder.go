package result

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
)

// decoder reads histograms in HdrHistogram's V2 compressed encoding and reuses its memory: a result of a day has
// hundreds of thousands, and the library's decoder allocates 180 kB for each. The zero value is ready.
type decoder struct {
	packed   []byte
	source   bytes.Reader
	unpacked io.ReadCloser
	head     [headBytes]byte
	counts   []byte
}

// The encoding is a cookie and the length of the rest, followed by the compressed head and counts. The head is a
// cookie, the length of the counts, an offset and the number of digits of 4 bytes each, the lowest and the highest
// value and a factor of 8.
const (
	outerBytes  = 8
	headBytes   = 40
	outerCookie = 0x1c849304
	innerCookie = 0x1c849303
	cookieMask  = 0xf0 // the word size, which version 2 ignores
	lengthAt    = 4
	digitsAt    = 12
	lowestAt    = 16
	highestAt   = 24

	countBytes = 9    // of the longest count
	places     = 3968 // counts of HdrHistogram for the geometry of a result
)

var (
	errCutOff   = errors.New("a histogram is cut off")
	errEncoding = errors.New("a histogram is not in HdrHistogram's V2 compressed encoding")
	errGeometry = errors.New(
		"a histogram has another range or precision than those of a result: 1 us to 24 h, 2 digits")
)

// decode replaces h. It refuses ranges, precisions and numbers of counts that differ from those of a result.
func (d *decoder) decode(h *Histogram, text []byte) (err error) {
	if len(text) > maxEncoded {
		return fmt.Errorf("a histogram has more than %d bytes", maxEncoded)
	}
	if d.packed, err = base64.StdEncoding.AppendDecode(d.packed[:0], text); err != nil {
		return fmt.Errorf("decode a histogram: %w", err)
	}
	if len(d.packed) < outerBytes {
		return errCutOff
	}
	if binary.BigEndian.Uint32(d.packed)&^cookieMask != outerCookie {
		return errEncoding
	}
	length := int64(binary.BigEndian.Uint32(d.packed[lengthAt:]))
	if length > int64(len(d.packed)-outerBytes) {
		return errCutOff
	}
	if err := d.unpack(d.packed[outerBytes : outerBytes+length]); err != nil {
		return err
	}
	return h.fill(d.counts)
}

// unpack checks the head and stores the bytes after it in counts.
func (d *decoder) unpack(packed []byte) (err error) {
	d.source.Reset(packed)
	if again, ok := d.unpacked.(zlib.Resetter); ok {
		err = again.Reset(&d.source, nil)
	} else {
		d.unpacked, err = zlib.NewReader(&d.source)
	}
	if err == nil {
		_, err = io.ReadFull(d.unpacked, d.head[:])
	}
	if err != nil {
		return fmt.Errorf("decode a histogram: %w", err)
	}
	if binary.BigEndian.Uint32(d.head[:])&^cookieMask != innerCookie {
		return errEncoding
	}
	if binary.BigEndian.Uint32(d.head[digitsAt:]) != significantDigits ||
		binary.BigEndian.Uint64(d.head[lowestAt:]) != lowestValue ||
		binary.BigEndian.Uint64(d.head[highestAt:]) != MaxLatency {
		return errGeometry
	}
	length := binary.BigEndian.Uint32(d.head[lengthAt:])
	if length > places*countBytes {
		return errGeometry
	}
	d.counts = slices.Grow(d.counts[:0], int(length))[:length]
	if _, err = io.ReadFull(d.unpacked, d.counts); err != nil {
		return fmt.Errorf("decode a histogram: %w", err)
	}
	switch n, err := io.ReadFull(d.unpacked, d.head[:1]); { // the checksum is verified at its end
	case n > 0:
		return errors.New("a histogram has bytes behind its counts")
	case !errors.Is(err, io.EOF):
		return fmt.Errorf("decode a histogram: %w", err)
	}
	return nil
}

// fill reads the counts in ascending order of places. A negative count is a number of empty places.
func (h *Histogram) fill(counts []byte) error {
	read, last := Histogram{}, int64(place(MaxLatency))
	for place := int64(0); len(counts) > 0; {
		n, length := zigZag(counts)
		if length == 0 {
			return errCutOff
		}
		counts = counts[length:]
		if n < 0 {
			if n < place-places {
				return errGeometry
			}
			place -= n
			continue
		}
		if place == places {
			return errGeometry
		}
		if n > math.MaxInt64-read.count {
			return errTooLarge
		}
		if n > 0 {
			if place > last {
				return errors.New("a histogram has values above 24 hours")
			}
			read.put(int(place), n)
		}
		place++
	}
	*h = read
	return nil
}

// zigZag decodes the first number of text, and returns it with its length: seven bits a byte, lowest first, eight in
// the ninth, the sign as the lowest bit. The length is 0 if the text ends within the number.
func zigZag(text []byte) (n int64, length int) {
	var bits uint64
	for i, b := range text[:min(len(text), countBytes)] {
		if i < countBytes-1 && b >= 0x80 {
			bits |= uint64(b&0x7f) << (7 * i)
			continue
		}
		bits |= uint64(b) << (7 * i)
		return int64(bits>>1) ^ -int64(bits&1), i + 1 //nolint:gosec // the sign is in the lowest bit
	}
	return 0, 0
}
