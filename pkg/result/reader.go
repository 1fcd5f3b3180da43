package result

import (
	"bufio"
	"bytes"
	"compress/zlib"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// ErrNoResult is in the error of [Read] for a folder without a result.
var ErrNoResult = errors.New("there is no result: its folder has rows.jsonl, latencies.hdr and result.json")

// errMissing is in the error of Read for a file that every result has. It is an [fs.ErrNotExist].
var errMissing = fmt.Errorf("it is missing, beside the other files of the result (%w)", fs.ErrNotExist)

// Error is an unusable file of a result.
type Error struct {
	Path string // of the file
	Line int    // from 1; 0 for the whole file
	Err  error
}

// Error returns the place and the cause.
func (e *Error) Error() string {
	if e.Line > 0 {
		return fmt.Sprintf("%s, line %d: %v", e.Path, e.Line, e.Err)
	}
	return fmt.Sprintf("%s: %v", e.Path, e.Err)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Read returns the result in a folder, with its rows. The run may still be going on: the result is then the sum of the
// rows so far, as after a kill, and Complete is false.
//
// The error is an [*Error], or [ErrNoResult]. Read refuses files that do not belong together or were changed, or that
// no run can have written; [Decode] reads result.json alone. No file content makes Read panic or take
// more memory than a small multiple of the file's size.
func Read(dir string) (*Result, error) { return ReadEach(dir, func(*Row) {}) }

// ReadHistograms is Read with the histograms of the latencies of rows, perhaps hundreds of MB a day.
func ReadHistograms(dir string) (*Result, error) { return ReadEach(dir, nil) }

// ReadEach is Read, and calls visit with each row, in order. The row has the histograms of its latencies only then.
func ReadEach(dir string, visit func(*Row)) (*Result, error) {
	r, text, err := readResult(filepath.Join(dir, ResultFile))
	if err != nil {
		return nil, err
	}
	head, rows, sum, err := readRows(filepath.Join(dir, RowsFile))
	switch {
	case errors.Is(err, fs.ErrNotExist) && r == nil:
		return nil, fmt.Errorf("%s: %w", dir, ErrNoResult)
	case errors.Is(err, fs.ErrNotExist):
		return nil, &Error{Path: filepath.Join(dir, RowsFile), Err: errMissing}
	case err != nil:
		return nil, err
	}
	complete := r != nil
	if !complete {
		r = rebuild(head, rows)
	} else if err := r.begins(head); err != nil {
		return nil, &Error{Path: filepath.Join(dir, RowsFile), Err: err}
	}
	r.Rows = rows
	h := &histograms{result: r, summed: !complete, visit: visit}
	if err := h.read(filepath.Join(dir, LatenciesFile)); err != nil {
		return nil, err
	}
	if err := r.checkDigest(text, sum); err != nil {
		return nil, &Error{Path: filepath.Join(dir, ResultFile), Err: err}
	}
	return r, nil
}

// checkDigest refuses a result.json that has another digest than its text and the rows. An earlier version wrote none.
func (r *Result) checkDigest(text []byte, rows string) error {
	if r.Digest == "" {
		return nil
	}
	sum, err := digest(text, rows)
	if err == nil && sum != r.Digest {
		err = fmt.Errorf("its digest does not match: it or %s was changed or damaged", RowsFile)
	}
	return err
}

// begins compares the head of the rows with the head of the result.
func (r *Result) begins(rows *Head) error {
	switch {
	case rows.RunID != r.RunID:
		return fmt.Errorf("the rows are of run %q, the result of run %q", rows.RunID, r.RunID)
	case rows.Start != r.Start || (rows.Shard == nil) != (r.Shard == nil) || r.Shard != nil && *rows.Shard != *r.Shard:
		return fmt.Errorf("the rows are of another part of run %q than the result", r.RunID)
	}
	return nil
}

// readResult also returns the text of the file. Both are nil if the file does not exist.
func readResult(path string) (r *Result, text []byte, err error) {
	f, err := open(path, maxResult)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = f.Close() }() // only read
	text, err = io.ReadAll(io.LimitReader(f, maxResult+1))
	if err == nil && len(text) > maxResult {
		err = fmt.Errorf("it has more than %d bytes", maxResult)
	}
	if err == nil {
		r, err = Decode(text)
	}
	if err != nil {
		return nil, nil, &Error{Path: path, Err: bare(err)}
	}
	return r, text, nil
}

// Decode parses the JSON of a result.json. It refuses numbers that no run can have.
func Decode(text []byte) (*Result, error) {
	r, err := parse[Result](text)
	if err != nil {
		return nil, err
	}
	for i := range r.Rows {
		if err := r.Rows[i].check(); err != nil {
			return nil, fmt.Errorf("row %d: %w", i+1, err)
		}
	}
	return r, nil
}

// parse parses JSON. It refuses values that no run can have.
func parse[T any, P interface {
	*T
	check() error
}](text []byte) (P, error) {
	value := P(new(T))
	err := json.Unmarshal(text, value)
	if err == nil {
		err = value.check()
	}
	if err != nil {
		return nil, err
	}
	return value, nil
}

// open opens a regular file of at most limit bytes.
func open(path string, limit int64) (*os.File, error) {
	info, err := os.Stat(path) // first: opening a pipe would wait for its writer
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is not a regular file")
	}
	if err == nil && info.Size() > limit {
		err = fmt.Errorf("it has more than %d bytes", limit)
	}
	if err != nil {
		return nil, &Error{Path: path, Err: bare(err)}
	}
	f, err := os.Open(path) //nolint:gosec // in the folder that the user named
	if err != nil {
		return nil, &Error{Path: path, Err: bare(err)}
	}
	return f, nil
}

// lines calls visit for each complete line. The last line may be incomplete: it is being written, or its writer was
// killed.
func lines(path string, visit func(line []byte) error) error {
	return linesFrom(path, new(int64), visit)
}

// linesFrom is lines from a position on, which it moves behind each line that visit has taken.
func linesFrom(path string, from *int64, visit func(line []byte) error) error {
	f, err := open(path, maxBytes)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // only read
	if _, err := f.Seek(*from, io.SeekStart); err != nil {
		return &Error{Path: path, Err: bare(err)}
	}
	reader := bufio.NewReaderSize(io.LimitReader(f, maxBytes), 64<<10)
	var line []byte
	for n := 1; ; {
		part, err := reader.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > maxLine:
			return &Error{Path: path, Line: n, Err: fmt.Errorf("it has more than %d bytes", maxLine)}
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return &Error{Path: path, Line: n, Err: bare(err)}
		}
		if err := visit(line); err != nil {
			if errors.Is(err, errEnough) {
				return nil
			}
			return &Error{Path: path, Line: n, Err: err}
		}
		*from += int64(len(line))
		line = line[:0]
		n++
	}
}

// errEnough ends lines without an error.
var errEnough = errors.New("enough")

// readRows also returns the SHA-256 of the lines, in hexadecimal.
func readRows(path string) (head *Head, rows []Row, sum string, err error) {
	hash := sha256.New()
	err = lines(path, func(line []byte) (err error) {
		addLine(hash, line)
		if head == nil {
			head, err = parse[Head](line)
			return err
		}
		if len(rows) == maxRows {
			return fmt.Errorf("there are more than %d rows", maxRows)
		}
		row, err := parse[Row](line)
		if err != nil {
			return err
		}
		if n := len(rows); n > 0 && rows[n-1].Elapsed > row.Elapsed {
			return errors.New("the rows are not in the order of time")
		}
		rows = append(rows, *row)
		return nil
	})
	if err == nil && head == nil {
		err = &Error{Path: path, Err: errors.New("it has no head: the run did not begin")}
	}
	return head, rows, hex.EncodeToString(hash.Sum(nil)), err
}

// rebuild sums up a result from its rows, without their latencies.
func rebuild(head *Head, rows []Row) *Result {
	r := NewSum(*head)
	for i := range rows {
		r.count(&rows[i])
	}
	r.Outcome.Reason = "unknown: the run has not ended, or perfmq was killed"
	r.Outcome.Problems = []string{"there is no " + ResultFile +
		": perfmq was killed, or the run continues; this is the sum of its rows"}
	return r
}

// read compares the histograms with the rows, stores them in the rows until they are visited, and adds them to the sums
// if the result is summed up from its rows.
func (h *histograms) read(path string) error {
	r, summed := h.result, h.summed
	h.advance()
	err := lines(path, func(line []byte) error {
		switch line[0] {
		case '#':
			return r.checkComment(string(line))
		case '"': // the legend
			return nil
		}
		return h.readLine(strings.TrimSuffix(string(line), "\n"))
	})
	if errors.Is(err, fs.ErrNotExist) {
		return &Error{Path: path, Err: errMissing}
	}
	missing := len(r.Rows) - h.next + 1
	switch {
	case err == nil && len(h.wanted) == 0:
		return nil
	case err == nil && !summed:
		return &Error{Path: path, Err: fmt.Errorf("the histograms of the last %d rows are missing", missing)}
	case err != nil && (!summed || h.next < len(r.Rows) || len(h.wanted) == 0):
		return err
	}
	for i := h.next - 1; i < len(r.Rows); i++ {
		h.leave(&r.Rows[i])
	}
	// perfmq was killed, or is still running, between a row and its histograms.
	text := fmt.Sprintf("the latencies lack the histograms of the last rows: %d", missing)
	r.Outcome.Warnings = append(r.Outcome.Warnings, text)
	return nil
}

// checkComment compares the start in a histogram log, in whole seconds, with the start of the run.
func (r *Result) checkComment(line string) error {
	var base int64
	if n, _ := fmt.Sscanf(line, "#[BaseTime: %d (", &base); n == 1 && base != r.Start/second {
		return fmt.Errorf("the histograms are of a run that began at %d s, the rows of one at %d s",
			base, r.Start/second)
	}
	return nil
}

// parse returns tag and histogram of a line of a histogram log: Tag=T,start,length,max,histogram.
func (h *histograms) parse(line string) (tag string, values *Histogram, err error) {
	const tagged = "Tag="
	fields := strings.Split(line, ",")
	if len(fields) != 5 || !strings.HasPrefix(fields[0], tagged) {
		return "", nil, errors.New("it is not a line of a histogram log")
	}
	values = new(Histogram)
	if err := h.decoder.decode(values, bytes.TrimSpace([]byte(fields[4]))); err != nil {
		return "", nil, err
	}
	return fields[0][len(tagged):], values, nil
}

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
