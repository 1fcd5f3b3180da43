package result

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// The files of a result's folder.
const (
	RowsFile      = "rows.jsonl"
	LatenciesFile = "latencies.hdr"
	ResultFile    = "result.json"
	// VerifyFile has the message numbers of a verified run.
	VerifyFile = "verify.pv"
	// PlanFile is the plan as a scenario, which perfmq run carries out again.
	PlanFile = "plan.yaml"
	partFile = ".result.json.part" // becomes ResultFile
)

// Files returns the names of all files that a result may consist of.
func Files() []string { return []string{RowsFile, LatenciesFile, ResultFile, VerifyFile, PlanFile} }

// The files grow by at most 200 MB a day: after the first megabytes, the histograms of several seconds share a line
// where one line each would be larger. The constants are in bytes.
const (
	freeBytes      = 8 << 20
	bytesPerSecond = 2200
	// reserved is kept free on the disk for result.json, so that it can be written even if the rows have filled the disk.
	reserved = 128 << 10
)

// ErrExists is in the error of [NewWriter] for a folder that already has a result.
var ErrExists = errors.New("there is a result already")

// Writer writes the result of a run into a folder as the run goes on. After each row the files are complete. It is not
// safe for concurrent use.
type Writer struct {
	dir     string
	made    bool // the writer created the folder
	rows    *file
	hdr     *file
	log     *hdrhistogram.HistogramLogWriter
	text    bytes.Buffer // of the log
	start   time.Time
	started bool
	err     error // why writing rows has stopped
	pool    pool
}

// pool has the histograms of the last lines of latencies.hdr, which the next row may share.
type pool struct {
	step, phase string
	from, to    int64 // since the start
	latencies   Latencies
	leftover    Latencies
	offset      int64  // of the lines in the file
	lines       []byte // their text
}

// NewWriter creates the folder and its parents, if they do not exist, and the files in it. It refuses a folder that has
// a result: the error is then [ErrExists].
func NewWriter(dir string) (*Writer, error) {
	const mode = 0o777                          // as far as the process' mask lets it
	err := os.MkdirAll(filepath.Dir(dir), mode) //nolint:gosec // see mode
	if err == nil {
		err = os.Mkdir(dir, mode) //nolint:gosec // likewise
	}
	made := err == nil
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("make the folder of the result: %w", err)
	}
	w := &Writer{dir: dir, made: made}
	if err := w.create(); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return w, nil
}

func (w *Writer) create() error {
	if err := Vacant(w.dir); err != nil {
		return err
	}
	var err error
	if w.rows, err = create(filepath.Join(w.dir, RowsFile)); err != nil {
		return err
	}
	if w.hdr, err = create(filepath.Join(w.dir, LatenciesFile)); err != nil {
		return err
	}
	w.log = hdrhistogram.NewHistogramLogWriter(&w.text)
	part := filepath.Join(w.dir, partFile)
	if err := os.WriteFile(part, make([]byte, reserved), 0o600); err != nil {
		return fmt.Errorf("reserve room for %s: %w", ResultFile, err)
	}
	return nil
}

// Vacant returns nil if a folder has no files of a result, or does not exist. Otherwise the error is [ErrExists].
func Vacant(dir string) error {
	for _, name := range Files() {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			return fmt.Errorf("%w: %s", ErrExists, filepath.Join(dir, name))
		}
	}
	return nil
}

// Start writes the head. It sets its format and version, and computes the hash of the plan.
func (w *Writer) Start(head Head) error {
	if err := head.complete(); err != nil {
		return err
	}
	w.started, w.start = true, time.UnixMicro(head.Start)
	line, err := encode(head, "")
	if err != nil {
		return fmt.Errorf("encode the head of the result: %w", err)
	}
	if err := w.rows.append(line); err != nil {
		return err
	}
	base := w.start.Unix() * 1000 // the log has whole seconds only
	w.log.SetBaseTime(base)
	w.text.Reset()
	err = errors.Join(
		w.log.OutputComment("[perfmq: latencies in microseconds]"), w.log.OutputLogFormatVersion(),
		w.log.OutputBaseTime(base),
		w.log.OutputStartTime(base), w.log.OutputLegend(),
	)
	if err != nil {
		return fmt.Errorf("encode the head of %s: %w", LatenciesFile, err)
	}
	return w.hdr.append(w.text.Bytes())
}

func (h *Head) complete() (err error) {
	h.Format, h.Version = Format, Version
	h.PlanHash, err = Hash(h.Plan)
	return err
}

// Row writes a row. Its latencies must have their histograms.
//
// After an error, such as a full disk, it writes no more rows and returns nil, so that the error is reported once; the
// earlier rows are whole.
func (w *Writer) Row(row Row) error {
	if w.err != nil {
		return nil //nolint:nilerr // it was reported before
	}
	w.err = w.write(&row)
	return w.err
}

func (w *Writer) write(row *Row) error {
	before, size := w.pool, w.hdr.offset
	row.Shared = w.share(row)
	if !row.Shared {
		w.pool = pool{step: row.Step, phase: row.Phase, from: row.Elapsed - row.Length, offset: size}
	}
	w.pool.to = row.Elapsed
	leftover := row.Leftover
	if leftover == nil {
		leftover = &Latencies{}
	}
	w.pool.latencies.add(&row.Latencies)
	w.pool.leftover.add(leftover)
	lines, err := w.encodePool()
	if err != nil {
		return err
	}
	w.pool.lines = lines
	bare := row.bare()
	if w.full(row) { // their counts stay
		for i := range bare.Groups {
			bare.Groups[i].Latencies = nil
		}
	}
	line, err := encode(bare, "")
	if err != nil {
		return fmt.Errorf("encode a row: %w", err)
	}
	// The row first: a kill between the two writes leaves a row without its histograms, which Read can detect.
	length := w.rows.offset
	if err := w.rows.append(line); err != nil {
		return err
	}
	if err = w.hdr.replace(w.pool.offset, lines); err == nil {
		return nil
	}
	err = errors.Join(err, w.rows.truncate(length))
	if row.Shared { // the space of the old lines is still allocated, so this works on a full disk
		return errors.Join(err, w.hdr.replace(before.offset, before.lines))
	}
	return errors.Join(err, w.hdr.truncate(size))
}

// share tells whether the histograms of a row are merged into the lines of the rows before it.
func (w *Writer) share(row *Row) bool {
	p := &w.pool
	if len(p.lines) == 0 || p.step != row.Step || p.phase != row.Phase || !p.latencies.alike(&row.Latencies) ||
		row.Leftover != nil || p.leftover != (Latencies{}) {
		return false
	}
	used := w.hdr.offset + w.rows.offset
	return used+int64(len(p.lines)) > freeBytes+row.Elapsed*bytesPerSecond/1_000_000
}

// full tells whether the rows take more than half of the room of the files.
func (w *Writer) full(row *Row) bool {
	return w.rows.offset > (freeBytes+row.Elapsed*bytesPerSecond/1_000_000)/2
}

// encodePool returns the lines of the pool for latencies.hdr.
func (w *Writer) encodePool() ([]byte, error) {
	w.text.Reset()
	tag := ""
	if w.pool.phase == Warmup {
		tag = warmupTag
	}
	if err := errors.Join(w.tagged(tag, &w.pool.latencies), w.tagged(warmupTag, &w.pool.leftover)); err != nil {
		return nil, fmt.Errorf("encode latencies: %w", err)
	}
	return bytes.Clone(w.text.Bytes()), nil
}

func (w *Writer) tagged(prefix string, l *Latencies) error {
	for _, k := range kinds {
		latency := l[k.Kind]
		if latency == nil {
			continue
		}
		if latency.Histogram == nil {
			return fmt.Errorf("the %s of a row has no histogram", k.Name)
		}
		h := latency.Histogram.HDR()
		h.SetTag(prefix + k.Tag)
		h.SetStartTimeMs(w.start.Add(time.Duration(max(0, w.pool.from)) * time.Microsecond).UnixMilli())
		h.SetEndTimeMs(w.start.Add(time.Duration(w.pool.to) * time.Microsecond).UnixMilli())
		if err := w.log.OutputIntervalHistogram(h); err != nil {
			return err
		}
	}
	return nil
}

// alike tells whether both have the same kinds of latencies.
func (l *Latencies) alike(other *Latencies) bool {
	for k := range l {
		if (l[k] == nil) != (other[k] == nil) {
			return false
		}
	}
	return true
}

// bare returns a copy of the row with latencies without histograms.
func (r *Row) bare() *Row {
	c := *r
	c.Latencies = r.Latencies.bare()
	if r.Leftover != nil {
		leftover := r.Leftover.bare()
		c.Leftover = &leftover
	}
	c.Groups = slices.Clone(r.Groups)
	for i := range c.Groups {
		if l := c.Groups[i].Latencies; l != nil {
			latencies := l.bare()
			c.Groups[i].Latencies = &latencies
		}
	}
	return &c
}

func (l *Latencies) bare() (c Latencies) {
	for k, from := range l {
		if from != nil {
			latency := *from
			latency.Histogram = nil
			c[k] = &latency
		}
	}
	return c
}

// Finish writes result.json, atomically. It uses neither r.Rows nor the format and the hash of r's head. Call it once,
// even if Row has failed.
func (w *Writer) Finish(r Result) error {
	r.Rows, r.Complete = nil, r.Complete || len(r.Parts) == 0
	if err := r.complete(); err != nil {
		return err
	}
	text, err := encode(r, "  ")
	if err != nil {
		return fmt.Errorf("encode %s: %w", ResultFile, err)
	}
	if err := w.finish(text); err != nil {
		return fmt.Errorf("write %s: %w", filepath.Join(w.dir, ResultFile), bare(err))
	}
	return nil
}

func (w *Writer) finish(text []byte) (err error) {
	part := filepath.Join(w.dir, partFile)
	f, err := os.OpenFile(part, os.O_RDWR|os.O_CREATE, 0o600) //nolint:gosec // in the folder that the user named
	if err != nil {
		return err
	}
	if _, err = f.WriteAt(text, 0); err == nil { // in the room that was kept for it
		err = errors.Join(f.Truncate(int64(len(text))), f.Sync())
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(part, filepath.Join(w.dir, ResultFile))
}

// Abandon undoes Start: the run does not begin after all. Call it before the first row.
func (w *Writer) Abandon() { w.started = false }

// Close closes the files. If Start was not called, it removes them, and also the folder if NewWriter created it.
func (w *Writer) Close() error {
	var errs []error
	for _, f := range []*file{w.rows, w.hdr} {
		if f == nil {
			continue
		}
		errs = append(errs, f.close())
		if !w.started {
			errs = append(errs, os.Remove(f.path))
		}
	}
	if w.hdr != nil {
		if err := os.Remove(filepath.Join(w.dir, partFile)); !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	if !w.started && w.hdr != nil {
		if err := os.Remove(filepath.Join(w.dir, PlanFile)); !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	if !w.started && w.made {
		errs = append(errs, os.Remove(w.dir))
	}
	return errors.Join(errs...)
}

// encode returns a value as JSON and a line feed. It escapes characters that do not print, even where JSON does not
// require it, so that a terminal can show the text.
func encode(value any, indent string) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false) // keep "a -> b" legible
	encoder.SetIndent("", indent)
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	if !bytes.ContainsFunc(b.Bytes(), unprintable) {
		return b.Bytes(), nil
	}
	var safe strings.Builder
	for _, r := range b.String() {
		if !unprintable(r) {
			safe.WriteRune(r)
			continue
		}
		for _, unit := range utf16.AppendRune(nil, r) { // RFC 8259, section 7
			fmt.Fprintf(&safe, `\u%04x`, unit)
		}
	}
	return []byte(safe.String()), nil
}

func unprintable(r rune) bool { return r != '\n' && !strconv.IsPrint(r) }
