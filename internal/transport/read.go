package transport

import (
	"io"
	"slices"
)

// readStep is the smallest growth of the buffer of [ReadBody], in bytes.
const readStep = 1 << 20

// ReadBody reads n bytes into b, from its beginning, and returns them. b grows as the bytes arrive: a false length does
// not cost memory. The caller has checked n against a limit of its own.
func ReadBody(r io.Reader, b []byte, n int) ([]byte, error) {
	for b = b[:0]; len(b) < n; {
		old := len(b)
		step := min(n-old, max(readStep, cap(b)-old, old))
		b = slices.Grow(b, step)[:old+step]
		if _, err := io.ReadFull(r, b[old:]); err != nil {
			return nil, err
		}
	}
	return b, nil
}
