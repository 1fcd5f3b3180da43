package verify_test

import (
	"bytes"
	"hash/crc32"
	"math"
	"testing"

	"github.com/perfmq/perfmq/pkg/result"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/verify"
	"github.com/perfmq/perfmq/pkg/driver"
)

func TestSum(t *testing.T) {
	t.Parallel()
	body := []byte("123456789")
	require.Equal(t, uint32(0xe3069283), verify.BodySum(body), "the check value of CRC-32C")
	id := driver.ID{Run: 1, Producer: 2, Number: 3}
	sum := verify.Sum(id, verify.BodySum(body))
	require.Positive(t, sum)
	require.Equal(t, uint32(0xe3069283), uint32(sum))
	bytes := make([]byte, 24)
	bytes[0], bytes[8], bytes[16] = 1, 2, 3
	require.EqualValues(t, crc32.Checksum(bytes, crc32.MakeTable(crc32.Castagnoli))&math.MaxInt32, sum>>32)
}

// Any single bit that is flipped in an ID is noticed, and so is one in a body.
func TestEachBitMatters(t *testing.T) {
	t.Parallel()
	body := []byte("some body or other")
	id := driver.ID{Run: 1<<62 + 12345, Producer: 7, Number: 1 << 33}
	id.Sum = verify.Sum(id, verify.BodySum(body))
	verdict := func(id driver.ID, body []byte) (verify.Verdict, result.Progress) {
		tracker := verify.NewTracker()
		v := verify.NewChecker(tracker, 1<<62+12345).Check(&driver.Delivery{ID: id, Body: body}, 1)
		return v, tracker.Progress(1<<62 + 12345)
	}
	v, p := verdict(id, body)
	require.Equal(t, verify.Own, v)
	require.Equal(t, result.Progress{Received: 1}, p)
	for bit := range 63 {
		for part := range 4 {
			broken := id
			*[]*int64{&broken.Run, &broken.Producer, &broken.Number, &broken.Sum}[part] ^= 1 << bit
			v, p := verdict(broken, body)
			if part == 3 && bit < 32 { // the checksum of the body, not the ID
				require.Equal(t, verify.Own, v)
				require.Equal(t, result.Progress{Received: 1, Damaged: 1}, p)
				continue
			}
			require.Equal(t, verify.Illegible, v, "part %d bit %d", part, bit)
			require.Equal(t, result.Progress{Damaged: 1}, p)
		}
	}
	for i := range body {
		broken := append([]byte(nil), body...)
		broken[i] ^= 1
		v, p := verdict(id, broken)
		require.Equal(t, verify.Own, v)
		require.Equal(t, result.Progress{Received: 1, Damaged: 1}, p)
	}
	v, p = verdict(driver.ID{}, body)
	require.Equal(t, verify.Foreign, v)
	require.Equal(t, result.Progress{Foreign: 1}, p)
	v, p = verdict(driver.GarbledID(), body)
	require.Equal(t, verify.Illegible, v)
	require.Equal(t, result.Progress{Damaged: 1}, p)
}

// No bit that is flipped in the text of an ID goes unnoticed either, and no bytes that are cut off.
func TestEachBitOfTheTextMatters(t *testing.T) {
	t.Parallel()
	id := driver.ID{Run: 1<<62 + 12345, Producer: 70, Number: 1 << 33}
	id.Sum = verify.Sum(id, verify.BodySum(nil))
	text := id.Append(nil)
	check := func(text []byte) result.Progress {
		tracker := verify.NewTracker()
		d := driver.Delivery{ID: driver.ParseID(text)}
		verify.NewChecker(tracker, id.Run).Check(&d, 1)
		return tracker.Progress(id.Run)
	}
	require.Equal(t, result.Progress{Received: 1}, check(text))
	for i := range text {
		for bit := range 8 {
			broken := bytes.Clone(text)
			broken[i] ^= 1 << bit
			p := check(broken)
			p.Received = 0 // 1 if the last digits of the sum are others: the body's checksum, which does not hold then
			require.Equal(t, result.Progress{Damaged: 1}, p, "%q", broken)
		}
		require.Equal(t, result.Progress{Damaged: 1}, check(text[:i]), "%q", text[:i])
	}
}

// Numbering, checking and keeping account allocate nothing.
func TestNoAllocations(t *testing.T) {
	body := make([]byte, 1024)
	l := verify.NewLedger(1, 0, driver.Destination{Name: "Q"}, verify.BodySum(body))
	c := verify.NewChecker(verify.NewTracker(), 1)
	d := &driver.Delivery{Body: body}
	step := func() {
		d.ID = l.Next(0)
		c.Check(d, 1)
		l.Done(d.ID.Number, driver.Outcome{})
	}
	step()
	require.Zero(t, testing.AllocsPerRun(100_000, step))
	i := 0
	require.Zero(t, testing.AllocsPerRun(100_000, func() { // each tenth message to another consumer
		if i++; i%10 == 0 {
			l.Next(0)
		}
		step()
	})/100, "a set may grow now and then")
}

// BenchmarkCheck measures the cost of verification for each message of 1 KiB, on both sides.
func BenchmarkCheck(b *testing.B) {
	body := make([]byte, 1024)
	l := verify.NewLedger(1, 0, driver.Destination{Name: "Q"}, verify.BodySum(body))
	c := verify.NewChecker(verify.NewTracker(), 1)
	d := &driver.Delivery{Body: body}
	b.Run("number", func(b *testing.B) {
		b.ReportAllocs()
		for range b.N {
			d.ID = l.Next(0)
		}
	})
	b.Run("number and check", func(b *testing.B) {
		b.ReportAllocs()
		for range b.N {
			d.ID = l.Next(0)
			c.Check(d, 1)
		}
	})
	b.Run("body", func(b *testing.B) {
		b.SetBytes(1024)
		for range b.N {
			verify.BodySum(body)
		}
	})
}
