package verify

import (
	"encoding/binary"
	"hash/crc32"

	"github.com/perfmq/perfmq/pkg/driver"
)

// idMask leaves 31 of the 32 bits of a checksum, so that an ID's Sum is never negative.
const idMask = 1<<31 - 1

// castagnoli is the polynomial that processors have instructions for.
func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

// BodySum returns the part of a message's checksum that is about its body.
func BodySum(body []byte) uint32 { return crc32.Checksum(body, castagnoli()) }

// Sum returns the checksum of a message with that ID and body; it ignores id.Sum. The upper 31 bits are a CRC-32C of
// the ID, so that a damaged ID does not pass for another message's; the lower 32 bits are a CRC-32C of the body.
func Sum(id driver.ID, body uint32) int64 {
	s := newSummer()
	return s.sum(&id, body)
}

// summer computes checksums without allocating. It is for one goroutine.
type summer struct {
	table *crc32.Table
	buf   [24]byte
	// Of the ID computed last, as most messages differ from the one before only in their number:
	run, producer int64
	prefix        uint32
}

func newSummer() *summer {
	s := &summer{table: castagnoli()}
	s.prepare(0, 0)
	return s
}

func (s *summer) prepare(run, producer int64) {
	binary.LittleEndian.PutUint64(s.buf[0:], uint64(run))
	binary.LittleEndian.PutUint64(s.buf[8:], uint64(producer))
	s.run, s.producer, s.prefix = run, producer, crc32.Update(0, s.table, s.buf[:16])
}

// id returns the checksum of run, producer and number.
func (s *summer) id(id *driver.ID) int64 {
	if id.Run != s.run || id.Producer != s.producer {
		s.prepare(id.Run, id.Producer)
	}
	binary.LittleEndian.PutUint64(s.buf[16:], uint64(id.Number))
	return int64(crc32.Update(s.prefix, s.table, s.buf[16:]) & idMask)
}

func (s *summer) sum(id *driver.ID, body uint32) int64 { return s.id(id)<<32 | int64(body) }
