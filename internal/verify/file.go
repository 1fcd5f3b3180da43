package verify

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/RoaringBitmap/roaring/v2/roaring64"

	"github.com/perfmq/perfmq/internal/inputfile"
	"github.com/perfmq/perfmq/internal/safetext"
	"github.com/perfmq/perfmq/pkg/driver"
)

// A file is
//
//	magic (16 bytes), version (4 bytes), length of the content (8 bytes), content, SHA-256 of all that (32 bytes)
//
// with numbers in little endian. The content is a length (8 bytes) and that much JSON, and then the sets which that
// implies, in its order, each a length (8 bytes; 0 for an empty set) and a bitmap in the portable format of Roaring.
const (
	fileMagic   = "perfmq verified\n"
	fileVersion = 2 // version 1 had no sets of messages that were sent again, or came so often
	headSize    = len(fileMagic) + 4 + 8
	maxShards   = 1000 // of one run
)

// jsonSide and the types below are the contents of a file besides its sets.
type jsonSide struct {
	*Side
	Sent     []jsonSent     `json:"sent,omitempty"`     // with the sets refused, unconfirmed, withheld
	Received []jsonReceived `json:"received,omitempty"` // with those of their streams
}

type jsonSent struct {
	*Sent
	Destination string `json:"destination"`
	Resent      int    `json:"resent,omitempty"` // sets of it
}

type jsonReceived struct {
	*Received
	Destination  string       `json:"destination"`
	Subscription string       `json:"subscription,omitempty"`
	Sent         []jsonBounds `json:"sent,omitempty"`
	Streams      []jsonStream `json:"streams,omitempty"`
}

type jsonBounds struct {
	Run      int64   `json:"run"`
	Producer int64   `json:"producer"`
	From     uint64  `json:"from,omitempty"`
	To       *uint64 `json:"to,omitempty"` // missing: no bound
}

// jsonStream has the sets arrived (from Low on), doubled, marked, late and lateMarked.
type jsonStream struct {
	Run         int64   `json:"run"`
	Producer    int64   `json:"producer"`
	Low         uint64  `json:"low"`
	Copies      uint64  `json:"copies"`
	Duplicates  uint64  `json:"duplicates,omitempty"`
	Redelivered uint64  `json:"redelivered,omitempty"`
	AfterOutage uint64  `json:"afterOutage,omitempty"`
	Damaged     uint64  `json:"damaged,omitempty"`
	First       []int64 `json:"damagedFirst,omitempty"`
	More        int     `json:"more,omitempty"`    // sets of copies beyond the second
	Outaged     int     `json:"outaged,omitempty"` // sets of copies that an outage explains
}

// Encode returns a side as the content of a file.
func Encode(side *Side) ([]byte, error) {
	head := jsonSide{Side: side}
	var sets []*roaring64.Bitmap
	for _, s := range side.Sent {
		head.Sent = append(head.Sent, jsonSent{s, printed(s.Destination), len(s.resent)})
		sets = append(append(sets, s.refused, s.unconfirmed, s.withheld), s.resent...)
	}
	for _, r := range side.Received {
		plain := strings.TrimPrefix(printed(r.Destination), r.Destination.Kind.String()+"://")
		j := jsonReceived{
			Received: r, Destination: printed(r.Destination),
			Subscription: strings.ReplaceAll(r.Subscription, r.Destination.Name, plain),
		}
		for stream, b := range r.Sent {
			bounds := jsonBounds{Run: stream.Run, Producer: stream.Producer, From: b.From}
			if b.To != math.MaxUint64 {
				bounds.To = &b.To
			}
			j.Sent = append(j.Sent, bounds)
		}
		slices.SortFunc(j.Sent, func(a, b jsonBounds) int {
			return cmp.Or(cmp.Compare(a.Run, b.Run), cmp.Compare(a.Producer, b.Producer))
		})
		for _, s := range r.streams {
			j.Streams = append(j.Streams, jsonStream{
				Run: s.key.Run, Producer: s.key.Producer, Low: s.arrived.low, Copies: s.copies,
				Duplicates: s.duplicates, Redelivered: s.redelivered, AfterOutage: s.afterOutage, Damaged: s.damaged,
				First: s.damagedFirst, More: len(s.more), Outaged: len(s.outaged),
			})
			sets = append(append(sets, s.arrived.rest, s.doubled, s.marked, s.late, s.lateMarked), s.more...)
			sets = append(sets, s.outaged...)
		}
		head.Received = append(head.Received, j)
	}
	text, err := json.Marshal(head)
	if err != nil {
		return nil, err
	}
	var content bytes.Buffer
	content.Write(uint64Bytes(uint64(len(text))))
	content.Write(text)
	for _, set := range sets {
		if set == nil || set.IsEmpty() {
			content.Write(uint64Bytes(0))
			continue
		}
		set.RunOptimize()
		content.Write(uint64Bytes(set.GetSerializedSizeInBytes()))
		if _, err := set.WriteTo(&content); err != nil {
			return nil, err
		}
	}
	file := append([]byte(fileMagic), binary.LittleEndian.AppendUint32(nil, fileVersion)...)
	file = append(file, uint64Bytes(uint64(content.Len()))...)
	file = append(file, content.Bytes()...)
	sum := sha256.Sum256(file)
	return append(file, sum[:]...), nil
}

// printed returns the name of a destination as a file holds it: without a password, if it looks like a URL with one.
// It is the same in the files of all processes.
func printed(d driver.Destination) string { return safetext.URLs(d.String()) }

func uint64Bytes(n uint64) []byte { return binary.LittleEndian.AppendUint64(nil, n) }

// Decode reads a side from the content of a file.
func Decode(data []byte) (*Side, error) {
	damaged := func(format string, args ...any) (*Side, error) {
		return nil, &inputfile.Error{
			Reason: fmt.Sprintf(format, args...), Hint: "copy it again from the machine that wrote it",
		}
	}
	if len(data) < headSize || string(data[:len(fileMagic)]) != fileMagic {
		return nil, &inputfile.Error{Reason: "is no verification file", Hint: "such files are written by --verify-file FILE"}
	}
	if v := binary.LittleEndian.Uint32(data[len(fileMagic):]); v == 0 || v > fileVersion {
		return nil, &inputfile.Error{
			Reason: fmt.Sprintf("has version %d of the format, and this program knows version %d", v, fileVersion),
			Hint:   "use the same version of perfmq to write and to join",
		}
	}
	length := binary.LittleEndian.Uint64(data[headSize-8:])
	switch whole := uint64(headSize + sha256.Size); {
	case length > uint64(len(data)) || uint64(len(data)) < whole+length:
		return damaged("is truncated: it has %d bytes and lacks some", len(data))
	case uint64(len(data)) > whole+length:
		return damaged("has %d bytes too many", uint64(len(data))-whole-length)
	}
	end := len(data) - sha256.Size
	if sum := sha256.Sum256(data[:end]); !bytes.Equal(sum[:], data[end:]) {
		return damaged("is damaged: its checksum does not match")
	}
	return decode(&reader{data: data[headSize:end]})
}

func decode(r *reader) (*Side, error) {
	text, err := r.next()
	if err != nil {
		return nil, err
	}
	head := jsonSide{Side: &Side{}}
	if err := json.Unmarshal(text, &head); err != nil {
		return nil, err
	}
	if head.ID <= 0 {
		return nil, fmt.Errorf("the ID %d is not above zero", head.ID)
	}
	if head.Shard < 0 || head.Shard > head.Shards || head.Shards > maxShards || (head.Shard == 0) != (head.Shards == 0) {
		return nil, fmt.Errorf("it is shard %d of %d", head.Shard, head.Shards)
	}
	side := head.Side
	seen := map[int64]bool{}
	for i := range head.Sent {
		s, err := head.Sent[i].read(r)
		if err == nil && seen[s.Producer] {
			err = fmt.Errorf("it is there twice")
		}
		if err != nil {
			return nil, fmt.Errorf("producer-%d: %w", s.Producer, err)
		}
		seen[s.Producer] = true
		side.Sent = append(side.Sent, s)
	}
	for i := range head.Received {
		part, err := head.Received[i].read(r)
		if err != nil {
			return nil, fmt.Errorf("received from %s: %w", head.Received[i].Destination, err)
		}
		side.Received = append(side.Received, part)
	}
	if len(r.data) > 0 {
		return nil, fmt.Errorf("%d bytes are left over", len(r.data))
	}
	return side, nil
}

func (j *jsonSent) read(r *reader) (*Sent, error) {
	s := cmp.Or(j.Sent, &Sent{})
	d, err := driver.ParseDestination(j.Destination)
	if err != nil {
		return s, err
	}
	s.Destination = d
	var total uint64
	wrong := s.Producer < 0
	for _, set := range []**roaring64.Bitmap{&s.refused, &s.unconfirmed, &s.withheld} {
		if *set, err = r.set(); err != nil {
			return s, err
		}
		total += (*set).GetCardinality()
		wrong = wrong || !isBelow(*set, s.Count)
	}
	if s.resent, err = r.tally(j.Resent); err != nil {
		return s, err
	}
	if wrong || total > s.Count || len(s.resent) > 0 && !isBelow(s.resent[0], s.Count) ||
		s.refused.Intersects(s.unconfirmed) || s.refused.Intersects(s.withheld) || s.unconfirmed.Intersects(s.withheld) {
		return s, errContradiction
	}
	return s, nil
}

// isBelow reports whether all numbers of a set are less than end.
func isBelow(set *roaring64.Bitmap, end uint64) bool { return set.IsEmpty() || set.Maximum() < end }

func (j *jsonReceived) read(r *reader) (*Received, error) {
	d, err := driver.ParseDestination(j.Destination)
	if err != nil {
		return nil, err
	}
	part := cmp.Or(j.Received, &Received{})
	part.Destination, part.Subscription = d, j.Subscription
	for _, b := range j.Sent {
		if part.Sent == nil {
			part.Sent = map[Stream]Bounds{}
		}
		bounds := Bounds{From: b.From, To: math.MaxUint64}
		if b.To != nil {
			bounds.To = *b.To
		}
		part.Sent[Stream{b.Run, b.Producer}] = bounds
	}
	seen := map[Stream]bool{}
	for i := range j.Streams {
		s, err := j.Streams[i].read(r)
		if err != nil {
			return nil, err
		}
		if seen[s.key] || len(seen) >= maxStreams {
			return nil, fmt.Errorf("run %d producer-%d is there twice, or one too many", s.key.Run, s.key.Producer)
		}
		seen[s.key] = true
		part.streams = append(part.streams, s)
	}
	return part, nil
}

func (j *jsonStream) read(r *reader) (*stream, error) {
	if j.Run <= 0 || j.Producer < 0 {
		return nil, errContradiction
	}
	s := newStream(Stream{j.Run, j.Producer})
	rest, err := r.set()
	if err != nil {
		return nil, err
	}
	s.arrived = Set{low: j.Low, rest: rest, count: rest.GetCardinality()}
	if s.arrived.count > 0 {
		s.arrived.min, s.arrived.max = rest.Minimum(), rest.Maximum()
	}
	if s.arrived.count > 0 && s.arrived.min < j.Low || s.arrived.End() > maxNumbers {
		return nil, errContradiction
	}
	for _, set := range []**roaring64.Bitmap{&s.doubled, &s.marked, &s.late, &s.lateMarked} {
		if *set, err = r.set(); err != nil {
			return nil, err
		}
		if both(&s.arrived, *set) != (*set).GetCardinality() {
			return nil, errContradiction
		}
	}
	if s.more, err = r.tally(j.More); err != nil {
		return nil, err
	}
	if s.outaged, err = r.tally(j.Outaged); err != nil {
		return nil, err
	}
	for _, copies := range []tally{s.more, s.outaged} {
		if len(copies) > 0 && !isPart(copies[0], s.doubled) {
			return nil, errContradiction
		}
	}
	s.copies, s.duplicates, s.redelivered, s.damaged = j.Copies, j.Duplicates, j.Redelivered, j.Damaged
	s.afterOutage = j.AfterOutage
	s.damagedFirst = j.First[:min(len(j.First), maxExamples)]
	return s, nil
}
