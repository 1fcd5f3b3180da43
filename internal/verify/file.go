package verify

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"

	"github.com/RoaringBitmap/roaring/v2/roaring64"

	"github.com/perfmq/perfmq/internal/inputfile"
	"github.com/perfmq/perfmq/pkg/driver"
)

// A file is
//
//	magic (16 bytes), version (4 bytes), length of the content (8 bytes), content, SHA-256 of all that (32 bytes)
//
// with numbers in little endian. The content is a length (8 bytes) and a [Side] as JSON of that length, and then the
// sets of the side, in the order of [Side.sets], each a length (8 bytes; 0 for an empty set) and a bitmap in the
// portable format of Roaring.
const (
	fileMagic   = "perfmq verified\n"
	fileVersion = 3 // version 1 had no sets of messages that were sent again, or came so often, version 2 no windows
	headSize    = len(fileMagic) + 4 + 8
	maxShards   = 1000 // of one run
)

// sets returns the places of the sets that a file has behind its JSON.
func (s *Side) sets() (list []**roaring64.Bitmap) {
	add := func(tallies ...tally) {
		for _, t := range tallies {
			for i := range t {
				list = append(list, &t[i])
			}
		}
	}
	for _, sent := range s.Sent {
		list = append(list, &sent.refused, &sent.unconfirmed, &sent.withheld)
		if s.Turn {
			list = append(list, &sent.ended)
		}
		add(sent.Resent)
	}
	for _, r := range s.Received {
		for _, st := range r.Streams {
			list = append(list, &st.arrived, &st.doubled, &st.marked, &st.late, &st.lateMarked)
			add(st.More, st.Outaged)
			if w := st.Window; w != nil {
				list = append(append(list, &w.open), w.records()...)
			}
		}
	}
	return list
}

// Encode returns a side as the content of a file.
func Encode(side *Side) ([]byte, error) {
	text, err := json.Marshal(side)
	if err != nil {
		return nil, err
	}
	content := appendPart(nil, text)
	for _, at := range side.sets() {
		var part []byte
		if set := *at; set != nil && !set.IsEmpty() {
			set.RunOptimize()
			if part, err = set.ToBytes(); err != nil {
				return nil, err
			}
		}
		content = appendPart(content, part)
	}
	file := appendPart(binary.LittleEndian.AppendUint32([]byte(fileMagic), fileVersion), content)
	sum := sha256.Sum256(file)
	return append(file, sum[:]...), nil
}

// appendPart appends the length of a part, and the part.
func appendPart(to, part []byte) []byte {
	return append(binary.LittleEndian.AppendUint64(to, uint64(len(part))), part...)
}

// Decode reads a side from the content of a file.
func Decode(data []byte) (*Side, error) {
	damaged := func(format string, args ...any) error {
		return &inputfile.Error{
			Reason: fmt.Sprintf(format, args...), Hint: "copy it again from the machine that wrote it",
		}
	}
	if len(data) < headSize || string(data[:len(fileMagic)]) != fileMagic {
		return nil, &inputfile.Error{Reason: "is no verification file", Hint: "such files are written by --verify-file FILE"}
	}
	if v := binary.LittleEndian.Uint32(data[len(fileMagic):]); v == 0 || v > fileVersion {
		return nil, &inputfile.Error{
			Reason: fmt.Sprintf("has version %d of the format, but this perfmq knows version %d", v, fileVersion),
			Hint:   "write and join with the same version of perfmq",
		}
	}
	length := binary.LittleEndian.Uint64(data[headSize-8:])
	if length > uint64(len(data)) || uint64(len(data)-headSize) < length+sha256.Size {
		return nil, damaged("is truncated: it has %d bytes and lacks some", len(data))
	}
	end := len(data) - sha256.Size
	if sum := sha256.Sum256(data[:end]); !bytes.Equal(sum[:], data[end:]) || uint64(end-headSize) != length {
		return nil, damaged("is damaged: its checksum does not match")
	}
	return decode(data[headSize:end])
}

func decode(content []byte) (*Side, error) {
	text, content, err := cutPart(content)
	if err != nil {
		return nil, err
	}
	side := &Side{}
	if err := json.Unmarshal(text, side); err != nil {
		return nil, err
	}
	if err := side.checkHead(); err != nil {
		return nil, err
	}
	for _, at := range side.sets() {
		if text, content, err = cutPart(content); err != nil {
			return nil, err
		}
		if *at, err = readSet(text); err != nil {
			return nil, err
		}
	}
	if len(content) > 0 {
		return nil, errContradiction
	}
	return side, side.complete()
}

// cutPart cuts a length and that many bytes off content.
func cutPart(content []byte) (part, rest []byte, err error) {
	if len(content) < 8 {
		return nil, nil, io.ErrUnexpectedEOF
	}
	n := binary.LittleEndian.Uint64(content)
	if content = content[8:]; n > uint64(len(content)) {
		return nil, nil, io.ErrUnexpectedEOF
	}
	return content[:n], content[n:], nil
}

func readSet(part []byte) (*roaring64.Bitmap, error) {
	set := roaring64.New()
	if len(part) == 0 {
		return set, nil
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
		return nil, errContradiction
	}
	return set, set.Validate()
}

// errContradiction is the error of a file that is whole, but that no version of the program writes.
var errContradiction = errors.New("its numbers contradict each other")

// checkHead checks a side without its sets.
func (s *Side) checkHead() error {
	if s.ID <= 0 || s.Shard < 0 || s.Shard > s.Shards || s.Shards > maxShards || (s.Shard == 0) != (s.Shards == 0) {
		return errContradiction
	}
	var places []string
	for _, sent := range s.Sent {
		if sent == nil || sent.Producer < 0 || sent.Count > maxNumbers {
			return errContradiction
		}
		places = append(places, sent.Destination)
	}
	const mostLow = 1 << 36 // numbers: they become a set of 60 MB
	var low uint64
	for _, r := range s.Received {
		if r == nil || len(r.Streams) > maxStreams {
			return errContradiction
		}
		places = append(places, r.Destination)
		for _, st := range r.Streams {
			if st == nil || st.Run <= 0 || st.Producer < 0 || st.Low > mostLow-low {
				return errContradiction
			}
			low += st.Low
		}
	}
	for _, place := range places {
		if _, err := driver.ParseDestination(place); err != nil {
			return err
		}
	}
	return nil
}

// complete checks the limits of a side that has just been read, and sets the fields that are not in the file. The
// digest vouches for the rest.
func (s *Side) complete() error {
	for _, r := range s.Received {
		for _, st := range r.Streams {
			st.arrived.AddRange(0, st.Low)
			if endOf(st.arrived) > maxNumbers {
				return errContradiction
			}
			if w := st.Window; w != nil && (w.From > maxNumbers || endOf(w.open) > w.From || w.First > w.From) {
				return errContradiction
			}
			st.Low, st.cut = 0, roaring64.New()
			st.DamagedFirst = st.DamagedFirst[:min(len(st.DamagedFirst), maxExamples)]
		}
	}
	return nil
}

// MarshalJSON writes the number of sets: see [Side.sets].
func (t tally) MarshalJSON() ([]byte, error) { return json.Marshal(len(t)) }

// UnmarshalJSON makes room for that many sets.
func (t *tally) UnmarshalJSON(text []byte) error {
	var sets int
	if err := json.Unmarshal(text, &sets); err != nil {
		return err
	}
	if sets < 0 || sets > maxTally {
		return errContradiction
	}
	*t = make(tally, sets)
	return nil
}

// MarshalJSON writes a list in order.
func (p Periods) MarshalJSON() ([]byte, error) {
	type period struct {
		Stream
		Bounds
	}
	var list []period
	for _, stream := range slices.SortedFunc(maps.Keys(p), func(a, b Stream) int {
		return cmp.Or(cmp.Compare(a.Run, b.Run), cmp.Compare(a.Producer, b.Producer))
	}) {
		list = append(list, period{stream, p[stream]})
	}
	return json.Marshal(list)
}

// UnmarshalJSON reads a list. An entry without an end, as of earlier versions, has no bound there.
func (p *Periods) UnmarshalJSON(text []byte) error {
	var list []struct {
		Stream
		From uint64
		To   *uint64
	}
	err := json.Unmarshal(text, &list)
	*p = Periods{}
	for _, one := range list {
		b := Bounds{From: one.From, To: math.MaxUint64}
		if one.To != nil {
			b.To = *one.To
		}
		(*p)[one.Stream] = b
	}
	return err
}

// WriteFile writes a side to a file, as [inputfile.Replace] does. A new file is for its owner alone, since names may be
// confidential.
func WriteFile(path string, side *Side) error {
	data, err := Encode(side)
	if err == nil {
		err = inputfile.Replace(path, data, 0o600)
	}
	if err != nil {
		return driver.Errorf(driver.ClassOther, "write the verification file "+path,
			"the summary is complete, but perfmq verify lacks this side", "%w", inputfile.Bare(err))
	}
	return nil
}

// Probe finds out whether WriteFile could write to path, and leaves nothing behind.
func Probe(path string) error {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		if info.Mode()&fs.ModeNamedPipe != 0 {
			return nil // its reader would take our leaving for the end
		}
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		return f.Close()
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".perfmq-*")
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// maxFile is the size of the largest file, in bytes: the numbers of some billions of messages with every other one
// lost.
const maxFile = 1 << 30

// ReadFile reads a side from a file. The error is an [*inputfile.Error].
func ReadFile(path string) (*Side, error) {
	data, err := inputfile.Read(path, maxFile)
	if err != nil {
		return nil, err
	}
	side, err := Decode(data)
	if err == nil {
		return side, nil
	}
	var known *inputfile.Error
	if !errors.As(err, &known) {
		known = &inputfile.Error{
			Reason: "is not a valid verification file: " + err.Error(),
			Hint:   "write it anew: its process or disk is at fault",
		}
	}
	known.Path = path
	return nil, known
}
