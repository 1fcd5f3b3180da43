// Package template fills in the fields of bodies and properties, such as {{seq}}.
//
// All bodies of a template have the same length: drivers prepare the message, and a field is filled in at its place.
// Numbers are padded in front: with zeros between double quotes, else with spaces, since JSON allows no zeros there. A
// choice is padded behind; its field includes a double quote that follows, so that a text in JSON has no spaces.
// Properties have no padding: selectors compare them.
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

// Template is the text of a body, or of the value of a property, with fields. It is immutable.
type Template struct {
	text   []byte // fields are zeros
	fields []field
}

// field is a place in the text. fill fills it, and returns the part that is no padding.
type field struct {
	from, width int
	fill        func(f *Filler, place []byte) []byte
}

// Message has the templates of one kind of messages.
type Message struct {
	Body   *Template   // nil if all bodies are the same
	Values []*Template // of the properties that vary, in their order
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
	text          []byte    // of values
	values        [][]byte
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
// epoch; nil without a template. It is the same for each call with these, and valid until the next call.
func (f *Filler) Fill(t *Template, number, made int64) []byte {
	f.number, f.made = number, made
	// Seeds of neighbours differ in half of their bits.
	f.source.Seed(f.first, f.second+uint64(number)*0x9e3779b97f4a7c15)
	if t == nil {
		return nil
	}
	if f.last != t {
		f.body, f.last = append(f.body[:0], t.text...), t
	}
	for _, field := range t.fields {
		field.fill(f, f.body[field.from:field.from+field.width])
	}
	return f.body
}

// Values returns the values of the properties of the message of the last Fill, valid until the next call.
func (f *Filler) Values(list []*Template) [][]byte {
	f.values, f.text = f.values[:0], f.text[:0]
	for _, t := range list {
		from, at := len(f.text), 0
		for _, field := range t.fields {
			f.text = append(f.text, t.text[at:field.from+field.width]...)
			at = field.from + field.width
			before := len(f.text) - field.width
			f.text = f.text[:before+copy(f.text[before:], field.fill(f, f.text[before:]))]
		}
		f.text = append(f.text, t.text[at:]...)
		f.values = append(f.values, f.text[from:])
	}
	return f.values
}

// ofProducer times the number of the producer begins the number of a message: so it is unique in the run.
const ofProducer = 10_000_000_000_000

// nowLayout is RFC 3339, in microseconds as the property `time`.
const nowLayout = "2006-01-02T15:04:05.000000Z"

// putNumber writes a number at the end of b, after padding, and returns it.
func (f *Filler) putNumber(b []byte, n int64, padding byte) []byte {
	digits := strconv.AppendInt(f.scratch[:0], n, 10)
	at := len(b) - copy(b[len(b)-len(digits):], digits)
	for i := range at {
		b[i] = padding
	}
	if n < 0 && padding == '0' {
		b[at] = '0'
		b[0] = '-'
	}
	return b[at:]
}

// putNow writes the time. AppendFormat writes more than it returns, so it does not write into b.
func putNow(f *Filler, b []byte) []byte {
	copy(b, time.UnixMicro(f.made).UTC().AppendFormat(f.scratch[:0], nowLayout))
	return b
}

// putUUID writes a random UUID (RFC 9562, version 4).
func putUUID(f *Filler, b []byte) []byte {
	putHex(f, b)
	for _, hyphen := range []int{8, 13, 18, 23} {
		b[hyphen] = '-'
	}
	b[14], b[19] = '4', "89ab"[f.random.IntN(4)]
	return b
}

func putHex(f *Filler, b []byte) []byte {
	var bits uint64
	for i := range b {
		if i%16 == 0 {
			bits = f.random.Uint64()
		}
		b[i] = "0123456789abcdef"[bits&15]
		bits >>= 4
	}
	return b
}

// HasFields reports whether the value of a property is a template.
func HasFields(value string) bool { return strings.Contains(value, "{{") }

// ParseValue reads the value of a property with that name.
func ParseValue(name, text string) (*Template, error) { return parse(name, []byte(text), false) }

// Parse reads the template of a body in a file. Errors name the place in it.
func Parse(name string, text []byte) (*Template, error) { return parse(name, text, true) }

func parse(name string, text []byte, body bool) (*Template, error) {
	const argument = `"(?:[^"\\]|\\.)*"|[^\s"{}]+`
	form := regexp.MustCompile(`^\{\{\s*(\w+)((?:\s+(?:` + argument + `))*)\s*\}\}`)
	t, quoted, escaped := &Template{}, false, false
	for at := 0; at < len(text); {
		if !bytes.HasPrefix(text[at:], []byte("{{")) {
			c := text[at] // a line ends quotes
			quoted, escaped = body && quoted != (c == '"' && !escaped) && c != '\n', c == '\\' && !escaped
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
		t.fields = append(t.fields, field{len(t.text), width, fill})
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
	width int, fill func(*Filler, []byte) []byte, reason, hint string,
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
		width, fill = 20, func(f *Filler, b []byte) []byte {
			return f.putNumber(b, f.producer*ofProducer+f.number, padding)
		}
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
		fill = func(f *Filler, b []byte) []byte { return f.putNumber(b, low+f.random.Int64N(high-low+1), padding) }
	default:
		width, fill, ok = pick(args, closing)
	}
	if !ok {
		return 0, nil, name + " has wrong arguments", "write it like " + forms[name]
	}
	return width, fill, "", ""
}

// pick returns the field of one of several choices, each in double quotes or not. It returns false if one is no text.
func pick(choices []string, closing string) (width int, fill func(*Filler, []byte) []byte, ok bool) {
	for i, c := range choices {
		var err error
		if c[0] == '"' {
			c, err = strconv.Unquote(c)
		}
		if err != nil || !utf8.ValidString(c) || strings.ContainsAny(c, "\x00\x01\x02") {
			return 0, nil, false
		}
		choices[i] = c + closing
		width = max(width, len(choices[i]))
	}
	return width, func(f *Filler, b []byte) []byte {
		n := copy(b, choices[f.random.IntN(len(choices))])
		for i := range b[n:] {
			b[n+i] = ' '
		}
		return b[:n]
	}, true
}
