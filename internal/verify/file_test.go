package verify_test

import (
	"crypto/sha256"
	"encoding/binary"
	"math"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/inputfile"
	"github.com/perfmq/perfmq/internal/verify"
	"github.com/perfmq/perfmq/pkg/driver"
)

// exampleSide has some of everything.
func exampleSide() *verify.Side {
	dest := driver.Destination{Kind: driver.Topic, Name: "T"}
	body := []byte("body")
	l := verify.NewLedger(7, 3, dest, verify.BodySum(body))
	tracker := verify.NewTracker()
	c := verify.NewChecker(tracker, 0)
	for i := range 1000 {
		d := &driver.Delivery{ID: l.Next(0), Body: body, Redelivered: i%50 == 0}
		switch {
		case i%10 == 0:
			l.Done(d.ID.Number, driver.Outcome{State: driver.State(1 + i/10%4)})
		case i%11 == 0:
			l.Done(d.ID.Number, driver.Outcome{Withheld: true})
		}
		if i%7 == 0 {
			continue
		}
		if i%13 == 0 {
			d.Body = body[1:]
		}
		c.Check(d, 12345)
		if i%17 == 0 {
			c.Check(d, 12345)
		}
	}
	sent := l.Seal([]int64{5, 6})
	sent.Started, sent.Ended = 1, 2
	r := tracker.Seal()
	r.SetName(dest, "me:sub")
	r.Private, r.Selective, r.Late, r.Drained = true, true, true, true
	r.Opened, r.Ended = 3, 4
	r.Sent = verify.Periods{{Run: 7, Producer: 3}: {From: 10, To: math.MaxUint64}, {Run: 6, Producer: 9}: {To: 5}}
	return &verify.Side{ID: 7, Role: "client", TTL: true, Sent: []*verify.Sent{sent}, Received: []*verify.Received{r}}
}

func TestFile(t *testing.T) {
	t.Parallel()
	side := exampleSide()
	path := filepath.Join(t.TempDir(), "side.pv")
	require.NoError(t, os.WriteFile(path, []byte("older"), 0o600))
	require.NoError(t, verify.WriteFile(path, side))
	back, err := verify.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, side.Received[0].Destination, back.Received[0].Destination)
	require.Equal(t, side.Received[0].Sent, back.Received[0].Sent)
	again, err := verify.Encode(back)
	require.NoError(t, err)
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, content, again, "what is read is what was written")
	require.Equal(t, verify.Judge(side), verify.Judge(back))
	entries, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, entries, 1, "no temporary file is left")
}

// TestFileWithoutAnEnd: a period without an end, as earlier versions wrote it, has no bound there.
func TestFileWithoutAnEnd(t *testing.T) {
	t.Parallel()
	side, err := verify.Decode(withJSON(`{"id":1,"received":[{"destination":"A","sent":[{"run":2,"producer":3,"from":4}]}]}`))
	require.NoError(t, err)
	require.Equal(t, verify.Periods{{Run: 2, Producer: 3}: {From: 4, To: math.MaxUint64}}, side.Received[0].Sent)
}

func TestFileThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	err := verify.WriteFile(filepath.Join(t.TempDir(), "nowhere", "side"), exampleSide())
	require.ErrorContains(t, err, "write the verification file")
	require.NotEmpty(t, driver.HintOf(err))
	folder := t.TempDir() // a folder cannot be replaced by a file
	require.NoError(t, os.MkdirAll(filepath.Join(folder, "side", "x"), 0o750))
	require.ErrorContains(t, verify.WriteFile(filepath.Join(folder, "side"), exampleSide()), "write the verification file")
	entries, err := os.ReadDir(folder)
	require.NoError(t, err)
	require.Len(t, entries, 1)
}

func TestFileKeepsWhatIsNoFile(t *testing.T) {
	t.Parallel()
	side, folder := exampleSide(), t.TempDir()

	target, link := filepath.Join(folder, "target"), filepath.Join(folder, "link")
	require.NoError(t, os.WriteFile(target, []byte("older"), 0o600))
	require.NoError(t, os.Symlink(target, link))
	require.NoError(t, verify.WriteFile(link, side))
	info, err := os.Lstat(link)
	require.NoError(t, err)
	require.Equal(t, os.ModeSymlink, info.Mode().Type(), "the link was replaced")
	_, err = verify.ReadFile(target)
	require.NoError(t, err)

	// A socket stands for devices that root could replace by a file: /dev/null, /dev/full. It cannot be opened for
	// writing.
	short, err := os.MkdirTemp("", "pv") //nolint:usetesting // the path of a socket must be short
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(short) })
	socket := filepath.Join(short, "s")
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", socket)
	require.NoError(t, err)
	defer func() { _ = l.Close() }()
	require.ErrorContains(t, verify.WriteFile(socket, side), "write the verification file "+socket)
	info, err = os.Lstat(socket)
	require.NoError(t, err)
	require.Equal(t, os.ModeSocket, info.Mode().Type(), "the socket was replaced")
}

// sealed puts content into a file of the given version, with a right checksum.
func sealed(version uint32, content []byte) []byte {
	file := binary.LittleEndian.AppendUint32([]byte("perfmq verified\n"), version)
	file = binary.LittleEndian.AppendUint64(file, uint64(len(content)))
	file = append(file, content...)
	sum := sha256.Sum256(file)
	return append(file, sum[:]...)
}

// withJSON is a file without sets.
func withJSON(text string) []byte {
	return sealed(2, append(binary.LittleEndian.AppendUint64(nil, uint64(len(text))), text...))
}

func TestFilesThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	good, err := verify.Encode(exampleSide())
	require.NoError(t, err)
	flipped := append([]byte(nil), good...)
	flipped[len(flipped)/2] ^= 1
	for name, tt := range map[string]struct {
		content []byte
		says    string
		hint    string
	}{
		"empty":        {nil, "is no verification file", "--verify-file"},
		"another file": {[]byte("#!/bin/sh and something more than that"), "is no verification file", "--verify-file"},
		"too new":      {sealed(4, nil), "has version 4 of the format, but this perfmq knows version 3", "same version"},
		"too old":      {sealed(0, nil), "has version 0", "same version"},
		"head only":    {good[:28], "is truncated", "copy it again"},
		"truncated":    {good[:len(good)-1], "is truncated", "copy it again"},
		"too long":     {append(append([]byte(nil), good...), 1, 2), "is damaged", "copy it again"},
		"damaged":      {flipped, "is damaged: its checksum does not match", "copy it again"},
		"no content":   {sealed(2, nil), "unexpected EOF", "write it anew"},
		"no JSON":      {withJSON("{"), "unexpected end of JSON", "write it anew"},
		"no ID":        {withJSON("{}"), "its numbers contradict", "write it anew"},
		"bytes left":   {sealed(2, append(append(binary.LittleEndian.AppendUint64(nil, 8), `{"id":1}`...), 1)), "its numbers contradict", "write it anew"},
		"lacks sets":   {withJSON(`{"id":1,"sent":[{"producer":0,"destination":"queue://A","count":1}]}`), "unexpected EOF", "write it anew"},
		"destination":  {withJSON(`{"id":1,"sent":[{"producer":0,"destination":"x://A","count":1}]}`), "unknown kind", "write it anew"},
		"no producer":  {withJSON(`{"id":1,"sent":[null]}`), "its numbers contradict", "write it anew"},
		"no side":      {withJSON(`{"id":1,"received":[null]}`), "its numbers contradict", "write it anew"},
		"no stream":    {withJSON(`{"id":1,"received":[{"destination":"A","streams":[null]}]}`), "its numbers contradict", "write it anew"},
		"many resends": {withJSON(`{"id":1,"sent":[{"destination":"A","resent":9}]}`), "its numbers contradict", "write it anew"},
		"no shard":     {withJSON(`{"id":1,"shard":3,"shards":2}`), "its numbers contradict", "write it anew"},
		"bad run":      {withJSON(`{"id":1,"received":[{"destination":"A","streams":[{"run":0}]}]}`), "its numbers contradict each other", "write it anew"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "side")
			require.NoError(t, os.WriteFile(path, tt.content, 0o600))
			_, err := verify.ReadFile(path)
			var fe *inputfile.Error
			require.ErrorAs(t, err, &fe)
			require.ErrorContains(t, err, path+": ")
			require.ErrorContains(t, err, tt.says)
			require.Contains(t, fe.Hint, tt.hint)
		})
	}
	_, err = verify.ReadFile(filepath.Join(t.TempDir(), "nowhere"))
	require.ErrorContains(t, err, "no such file or directory")
}

// FuzzDecode: whatever a file contains, reading and judging it ends without a panic, in bounded memory.
func FuzzDecode(f *testing.F) {
	good, err := verify.Encode(exampleSide())
	require.NoError(f, err)
	f.Add(good[28 : len(good)-32])
	f.Add(withJSON("{}")[28:])
	f.Add(withJSON(`{"id":1,"received":[{"destination":"A","streams":[{"run":1,"low":1000000}]}]}`)[28:])
	huge := regexp.MustCompile(`[0-9]{9}`) // such large sets take the fuzzer too long
	f.Fuzz(func(t *testing.T, content []byte) {
		if huge.Match(content) {
			return
		}
		side, err := verify.Decode(sealed(2, content))
		if err != nil {
			return
		}
		again, err := verify.Encode(side)
		require.NoError(t, err)
		back, err := verify.Decode(again)
		require.NoError(t, err)
		want, got := verify.Judge(side), verify.Judge(back)
		require.Equal(t, want, got)
	})
}
