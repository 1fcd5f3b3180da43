// Package template fills in the fields of bodies, such as {{seq}}.
//
// All bodies of a template have the same length: drivers prepare the message, and a field is filled in at its place.
// Numbers are padded in front: with zeros between double quotes, else with spaces, since JSON allows no zeros there. A
// choice is padded behind; its field includes a double quote that follows, so that a text in JSON has no spaces.
package template

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/perfmq/perfmq/internal/inputfile"
	"github.com/perfmq/perfmq/internal/nearest"
)

// Template is the text of a body with fields. It is immutable.
type Template struct {
	text   []byte                         // fields are zeros
	fields []func(f *Filler, body []byte) // each fills its place
}

// Filler fills in the templates of a producer, in all its steps. It is for one goroutine.
type Filler struct {
	Count         int64 // of the producer's messages
	source        rand.PCG
	random        *rand.Rand
	first, second uint64 // of the seed
	producer      int64
	number, made  int64 // of the message
	scratch       [64]byte
	body          []byte
	last          *Template // that body was made of
}

// NewFiller returns the filler of a producer of a run. Its bodies are the same for a seed.
func NewFiller(seed uint64, producer int) *Filler {
	key := sha256.Sum256(fmt.Appendf(nil, "%d %d", seed, producer))
	first, second := binary.BigEndian.Uint64(key[:8]), binary.BigEndian.Uint64(key[8:])
	f := &Filler{first: first, second: second, producer: int64(producer)}
	f.random = rand.New(&f.source) //nolint:gosec // no secret
	return f
}

// Fill returns the body of a message with that number of the producer, made at a time in microseconds since the Unix
// epoch. It is the same for each call with these, and valid until the next call.
func (f *Filler) Fill(t *Template, number, made int64) []byte {
	if f.last != t {
		f.body, f.last = append(f.body[:0], t.text...), t
	}
	f.number, f.made = number, made
	// Seeds of neighbours differ in half of their bits.
	f.source.Seed(f.first, f.second+uint64(number)*0x9e3779b97f4a7c15)
	for _, fill := range t.fields {
		fill(f, f.body)
	}
	return f.body
}

// ofProducer times the number of the producer begins the number of a message: so it is unique in the run.
const ofProducer = 10_000_000_000_000

// nowLayout is RFC 3339, in microseconds as the property `time`.
const nowLayout = "2006-01-02T15:04:05.000000Z"

// putNumber writes a number at the end of b, after padding.
func (f *Filler) putNumber(b []byte, n int64, padding byte) {
	digits := strconv.AppendInt(f.scratch[:0], n, 10)
	at := len(b) - copy(b[len(b)-len(digits):], digits)
	for i := range at {
		b[i] = padding
	}
	if n < 0 && padding == '0' {
		b[at] = '0'
		b[0] = '-'
	}
}

// putNow writes the time. AppendFormat writes more than it returns, so it does not write into b.
func putNow(f *Filler, b []byte) {
	copy(b, time.UnixMicro(f.made).UTC().AppendFormat(f.scratch[:0], nowLayout))
}

// putUUID writes a random UUID (RFC 9562, version 4).
func putUUID(f *Filler, b []byte) {
	putHex(f, b)
	for _, hyphen := range []int{8, 13, 18, 23} {
		b[hyphen] = '-'
	}
	b[14], b[19] = '4', "89ab"[f.random.IntN(4)]
}

func putHex(f *Filler, b []byte) {
	var bits uint64
	for i := range b {
		if i%16 == 0 {
			bits = f.random.Uint64()
		}
		b[i] = "0123456789abcdef"[bits&15]
		bits >>= 4
	}
}

// Parse reads the template in a file. Errors name the place in it.
func Parse(name string, text []byte) (*Template, error) {
	const argument = `"(?:[^"\\]|\\.)*"|[^\s"{}]+`
	form := regexp.MustCompile(`^\{\{\s*(\w+)((?:\s+(?:` + argument + `))*)\s*\}\}`)
	t, quoted, escaped := &Template{}, false, false
	for at := 0; at < len(text); {
		if !bytes.HasPrefix(text[at:], []byte("{{")) {
			c := text[at] // a line ends quotes
			quoted, escaped = quoted != (c == '"' && !escaped) && c != '\n', c == '\\' && !escaped
			t.text = append(t.text, c)
			at++
			continue
		}
		m := form.FindSubmatch(text[at:])
		if m == nil {
			return nil, mistake(name, text[:at], "{{ begins no field", `write it like {{seq}} or {{pick "a" "b"}}`)
		}
		args, end := regexp.MustCompile(argument).FindAllString(string(m[2]), -1), at+len(m[0])
		closing := ""
		if quoted && string(m[1]) == "pick" && bytes.HasPrefix(text[end:], []byte(`"`)) {
			closing, quoted = `"`, false
			end++
		}
		width, fill, reason, hint := newField(string(m[1]), args, quoted, closing)
		if reason != "" {
			return nil, mistake(name, text[:at], reason, hint)
		}
		from := len(t.text)
		t.fields = append(t.fields, func(f *Filler, body []byte) { fill(f, body[from:from+width]) })
		t.text, at = append(t.text, make([]byte, width)...), end
	}
	if len(t.fields) == 0 {
		return nil, mistake(name, nil, "there is no field such as {{seq}}", "--body-file sends a file as it is")
	}
	return t, nil
}

// mistake is one behind a part of the text.
func mistake(name string, before []byte, reason, hint string) error {
	line := before[bytes.LastIndexByte(before, '\n')+1:]
	place := fmt.Sprintf("%s:%d:%d", name, bytes.Count(before, []byte("\n"))+1, utf8.RuneCount(line)+1)
	return &inputfile.Error{Path: place, Reason: reason, Hint: hint}
}

// newField returns the width of a field and its content; the reason and hint are of a mistake. closing follows a
// choice.
func newField(name string, args []string, quoted bool, closing string) (
	width int, fill func(*Filler, []byte), reason, hint string,
) {
	forms := map[string]string{
		"seq": "{{seq}}", "uuid": "{{uuid}}", "now": "{{now}}", "int": "{{int 1 1000}}, the lower number first",
		"pick": `{{pick "a" "b"}}`, "hex": "{{hex 16}}, from 1 to 4096",
	}
	padding := byte(' ')
	if quoted {
		padding = '0'
	}
	least := map[string]int{"int": 2, "pick": 2, "hex": 1}[name]
	ok := len(args) == least || name == "pick" && len(args) > least
	switch {
	case forms[name] == "":
		hint = nearest.Hint(name, slices.Sorted(maps.Keys(forms)), "%s", "there are seq, uuid, now, int, pick and hex")
		return 0, nil, fmt.Sprintf("there is no field %q", name), hint
	case !ok:
	case name == "seq":
		width, fill = 20, func(f *Filler, b []byte) { f.putNumber(b, f.producer*ofProducer+f.number, padding) }
	case name == "uuid":
		width, fill = 36, putUUID
	case name == "now":
		width, fill = len(nowLayout), putNow
	case name == "hex":
		width, _ = strconv.Atoi(args[0])
		fill, ok = putHex, width > 0 && width <= 4096
	case name == "int":
		const most = 1e18 // no difference overflows
		low, err1 := strconv.ParseInt(args[0], 10, 64)
		high, err2 := strconv.ParseInt(args[1], 10, 64)
		ok = err1 == nil && err2 == nil && low <= high && -most < low && high < most
		width = max(len(strconv.FormatInt(low, 10)), len(strconv.FormatInt(high, 10)))
		fill = func(f *Filler, b []byte) { f.putNumber(b, low+f.random.Int64N(high-low+1), padding) }
	default:
		width, fill, ok = pick(args, closing)
	}
	if !ok {
		return 0, nil, name + " has wrong arguments", "write it like " + forms[name]
	}
	return width, fill, "", ""
}

// pick returns the field of one of several choices, each in double quotes or not. It returns false if one is no text.
func pick(choices []string, closing string) (width int, fill func(*Filler, []byte), ok bool) {
	for i, c := range choices {
		var err error
		if c[0] == '"' {
			c, err = strconv.Unquote(c)
		}
		if err != nil || !utf8.ValidString(c) || strings.ContainsRune(c, 0) {
			return 0, nil, false
		}
		choices[i] = c + closing
		width = max(width, len(choices[i]))
	}
	for i, c := range choices {
		choices[i] = c + strings.Repeat(" ", width-len(c))
	}
	return width, func(f *Filler, b []byte) { copy(b, choices[f.random.IntN(len(choices))]) }, true
}
