package verify

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"

	"github.com/RoaringBitmap/roaring/v2/roaring64"
)

// errContradiction is the error of a file that is whole, but that no version of the program writes.
var errContradiction = errors.New("its numbers contradict each other")

// reader cuts the content of a file into its parts.
type reader struct{ data []byte }

func (r *reader) next() ([]byte, error) {
	if len(r.data) < 8 {
		return nil, io.ErrUnexpectedEOF
	}
	n := binary.LittleEndian.Uint64(r.data)
	if r.data = r.data[8:]; n > uint64(len(r.data)) {
		return nil, io.ErrUnexpectedEOF
	}
	part := r.data[:n]
	r.data = r.data[n:]
	return part, nil
}

// tally reads that many sets. Each is part of the set before it.
func (r *reader) tally(sets int) (t tally, err error) {
	if sets < 0 || sets > maxTally {
		return nil, errContradiction
	}
	for range sets {
		set, err := r.set()
		if err != nil {
			return nil, err
		}
		if set.IsEmpty() || len(t) > 0 && !isPart(set, t[len(t)-1]) {
			return nil, errContradiction
		}
		t = append(t, set)
	}
	return t, nil
}

// isPart reports whether whole has all numbers of a set.
func isPart(set, whole *roaring64.Bitmap) bool {
	return whole.AndCardinality(set) == set.GetCardinality()
}

func (r *reader) set() (*roaring64.Bitmap, error) {
	part, err := r.next()
	set := roaring64.New()
	if err != nil || len(part) == 0 {
		return set, err
	}
	// The library makes room for as many parts as the first number says; each takes at least 4 bytes.
	if len(part) < 8 || binary.LittleEndian.Uint64(part) > uint64(len(part)/4) {
		return nil, io.ErrUnexpectedEOF
	}
	from := bytes.NewReader(part)
	if _, err := set.ReadFrom(from); err != nil {
		return nil, err
	}
	if from.Len() > 0 {
		return nil, errors.New("a set is longer than it should be")
	}
	if err := set.Validate(); err != nil {
		return nil, err
	}
	return set, nil
}
