package result

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
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
	// TraceFile has events in the lives of the sampled messages.
	TraceFile = "trace.jsonl"
	partFile  = ".result.json.part" // becomes ResultFile
)

// Files returns the names of all files that a result may consist of.
func Files() []string {
	return []string{RowsFile, LatenciesFile, ResultFile, VerifyFile, PlanFile, TraceFile}
}

// reserved is the number of bytes kept free on the disk for result.json, so that it can be written even if the rows
// have filled the disk.
const reserved = 128 << 10

// ErrExists is in the error of [NewWriter] for a folder that already has a result.
var ErrExists = errors.New("there is a result already")

// Writer writes the result of a run into a folder during the run. After each row the files are complete. It is not safe
// for concurrent use.
type Writer struct {
	dir     string
	made    bool // the writer created the folder
	rows    *file
	hdr     *file
	trace   *file     // nil before the first event
	sum     hash.Hash // SHA-256 of the lines of rows
	log     HDRLog
	started bool
	numbers []time.Time // of the files of Numbers that are there; removed counts earlier ones
	removed int
	err     error // why writing rows has stopped
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
	w := &Writer{dir: dir, made: made, sum: sha256.New()}
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
	part := filepath.Join(w.dir, partFile)
	if err := os.WriteFile(part, make([]byte, reserved), 0o600); err != nil {
		return fmt.Errorf("reserve room for %s: %w", ResultFile, err)
	}
	return nil
}

// Vacant returns nil if a folder has no files of a result, nor runs that --result-continue wrote, or does not exist.
// Otherwise the error is [ErrExists].
func Vacant(dir string) error {
	if runs := runsIn(dir); len(runs) > 0 {
		return fmt.Errorf("%w: %s", ErrExists, filepath.Join(dir, runPrefix+strconv.Itoa(runs[0])))
	}
	return noFiles(dir)
}

func noFiles(dir string) error {
	for _, name := range Files() {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			return fmt.Errorf("%w: %s", ErrExists, filepath.Join(dir, name))
		}
	}
	return nil
}

// NumbersDir is the folder of numbered files about the messages of a run that another process judges.
const NumbersDir = "numbers"

// NumbersFile returns the name of such a file, from 1.
func NumbersFile(number int) string { return fmt.Sprintf("%09d.pv", number) }

// Numbers writes the next of them whole, and removes earlier ones of that age.
func (w *Writer) Numbers(data []byte, age time.Duration) error {
	dir := filepath.Join(w.dir, NumbersDir)
	if err := os.MkdirAll(dir, 0o777); err != nil { //nolint:gosec // as far as the process' mask lets it
		return err
	}
	now := time.Now()
	w.numbers = append(w.numbers, now)
	number := w.removed + len(w.numbers)
	path := filepath.Join(dir, NumbersFile(number))
	part := filepath.Join(dir, "."+NumbersFile(number))
	if err := os.WriteFile(part, data, 0o600); err != nil {
		return err
	}
	for len(w.numbers) > 0 && now.Sub(w.numbers[0]) > age {
		w.removed++
		w.numbers = w.numbers[1:]
		_ = os.Remove(filepath.Join(dir, NumbersFile(w.removed)))
	}
	return os.Rename(part, path)
}

// runPrefix begins the names of the folders of runs in one folder, with their numbers from 1.
const runPrefix = "run-"

// Runs returns the folders of the runs in a folder that --result-continue filled, in their order. Of another folder, it
// returns that folder.
func Runs(dir string) (folders []string) {
	for _, n := range runsIn(dir) {
		folders = append(folders, filepath.Join(dir, runPrefix+strconv.Itoa(n)))
	}
	if len(folders) == 0 || noFiles(dir) != nil {
		return []string{dir}
	}
	return folders
}

// NextRun returns the folder of the next run in a folder.
func NextRun(dir string) string {
	last := slices.Max(append(runsIn(dir), 0))
	return filepath.Join(dir, runPrefix+strconv.Itoa(last+1))
}

func runsIn(dir string) (numbers []int) {
	entries, _ := os.ReadDir(dir) // without it, there are none
	for _, e := range entries {
		text, ok := strings.CutPrefix(e.Name(), runPrefix)
		if n, err := strconv.Atoi(text); ok && err == nil && n > 0 && e.IsDir() {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	return numbers
}

// Start writes the head. It sets its format and version, and computes the hash of the plan.
func (w *Writer) Start(head Head) error {
	if err := head.complete(); err != nil {
		return err
	}
	w.started = true
	line, err := Encode(head, "")
	if err != nil {
		return fmt.Errorf("encode the head of the result: %w", err)
	}
	if err := w.rows.append(line); err != nil {
		return err
	}
	addLine(w.sum, line)
	text, err := w.log.Head(time.UnixMicro(head.Start))
	if err != nil {
		return err
	}
	return w.hdr.append(text)
}

func (h *Head) complete() (err error) {
	h.Format, h.Version = Format, Version
	h.PlanHash, err = Hash(h.Plan)
	return err
}

// Row writes a row, without the latencies that have no histogram.
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
	row.Latencies = row.Latencies.kept()
	if row.Leftover != nil {
		row.Leftover = new(row.Leftover.kept())
	}
	text, err := w.log.Row(row)
	if err != nil {
		return err
	}
	line, err := Encode(row.Bare(), "")
	if err != nil {
		return fmt.Errorf("encode a row: %w", err)
	}
	// The row first: a kill between the two writes leaves a row without its histograms, which Read can detect.
	length := w.rows.offset
	if err := w.rows.append(line); err != nil {
		return err
	}
	if err = w.hdr.append(text); err != nil {
		return errors.Join(err, w.rows.truncate(length))
	}
	addLine(w.sum, line)
	return nil
}

// addLine adds a line of rows.jsonl, however it ends.
func addLine(sum hash.Hash, line []byte) {
	sum.Write(bytes.TrimSpace(line))
	sum.Write([]byte{'\n'})
}

// Bare returns a copy of the row with latencies without histograms.
func (r *Row) Bare() *Row {
	c := *r
	c.Latencies = r.Latencies.bare()
	if r.Leftover != nil {
		c.Leftover = new(r.Leftover.bare())
	}
	c.Groups = slices.Clone(r.Groups)
	for i := range c.Groups {
		if l := c.Groups[i].Latencies; l != nil {
			c.Groups[i].Latencies = new(l.bare())
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
	text, err := Encode(r, "")
	if err == nil {
		r.Digest, err = digest(text, hex.EncodeToString(w.sum.Sum(nil)))
	}
	if err == nil {
		text, err = Encode(r, "  ")
	}
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
	f, err := os.OpenFile(part, os.O_RDWR|os.O_CREATE, 0o600) //nolint:gosec // in a folder the user named
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
	for _, f := range []*file{w.rows, w.hdr, w.trace} {
		if f == nil {
			continue
		}
		errs = append(errs, f.close())
		if !w.started {
			errs = append(errs, os.Remove(f.path))
		}
	}
	for _, name := range []string{partFile, PlanFile} {
		if w.hdr == nil || name == PlanFile && w.started {
			continue
		}
		if err := os.Remove(filepath.Join(w.dir, name)); !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	if !w.started && w.made {
		errs = append(errs, os.Remove(w.dir))
	}
	return errors.Join(errs...)
}

// Encode returns a value as JSON and a line feed. It escapes characters that do not print, even where JSON does not
// require it, so that a terminal can show the text.
func Encode(value any, indent string) ([]byte, error) {
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

// file is an append-only file that is whole after each call: a failed write is undone.
type file struct {
	path   string
	handle handle
	offset int64 // end of the file
}

// handle has the methods of [os.File] that a file needs.
type handle interface {
	io.WriterAt
	io.Closer
	Truncate(size int64) error
}

// create makes a file that must not exist. Only its owner can read it: texts from a broker may hold confidential data.
func create(path string) (*file, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600) //nolint:gosec // in a folder the user named
	if err != nil {
		return nil, fmt.Errorf("create %s: %w", path, bare(err))
	}
	return &file{path: path, handle: f}, nil
}

// append writes at the end.
func (f *file) append(text []byte) error {
	if _, err := f.handle.WriteAt(text, f.offset); err != nil {
		return fmt.Errorf("write %s: %w", f.path, errors.Join(bare(err), f.truncate(f.offset)))
	}
	f.offset += int64(len(text))
	return nil
}

// truncate removes the bytes beyond size.
func (f *file) truncate(size int64) error {
	f.offset = size
	return bare(f.handle.Truncate(size))
}

func (f *file) close() error {
	if err := f.handle.Close(); err != nil {
		return fmt.Errorf("close %s: %w", f.path, bare(err))
	}
	return nil
}

// bare removes the operation and path that [fs.PathError] adds: our errors have both already.
func bare(err error) error {
	if pathError, ok := errors.AsType[*fs.PathError](err); ok {
		return pathError.Err
	}
	return err
}
