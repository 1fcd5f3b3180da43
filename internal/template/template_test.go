package template_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/inputfile"
	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/internal/template"
)

func parse(t testing.TB, text string) *template.Template {
	return musttest.Get(template.Parse("body", []byte(text)))(t)
}

const order = `{
  "number": {{seq}}, "id": "{{uuid}}", "key": "order-{{seq}}",
  "at": "{{now}}", "amount": {{int -5 1000}}, "code": "{{int 1 99}}", "below": "{{int -10 -1}}",
  "status": "{{pick "new" "paid" "shipped"}}", "flag": {{ pick "true" "null" }},
  "\"quoted\"": "{{pick "a" "bcd"}}!", "token": "{{hex 20}}"
}`

// made is 2026-03-01T12:00:00.000007Z.
var made = time.Date(2026, 3, 1, 12, 0, 0, 7000, time.UTC).UnixMicro()

// Bodies are the same in every release, for a seed, a producer and a number.
func TestBodies(t *testing.T) {
	f, whole := template.NewFiller(7, 2), parse(t, order)
	const first = `{
  "number":       20000000000000, "id": "78577629-b9ac-4405-9538-f59e031dd962", "key": "order-00000020000000000000",
  "at": "2026-03-01T12:00:00.000007Z", "amount":  840, "code": "15", "below": "-09",
  "status": "new"    , "flag": null,
  "\"quoted\"": "a  !", "token": "c23279f3e83c51ff264d"
}`
	require.Equal(t, first, string(f.Fill(whole, 0, made)))
	sum := sha256.New()
	for n := range int64(1000) {
		sum.Write(f.Fill(whole, n, made))
	}
	require.Equal(t, "5ec9a243db10e52e", hex.EncodeToString(sum.Sum(nil)[:8]))
}

// A body of JSON is JSON, with the values of its fields, and always as long.
func TestJSON(t *testing.T) {
	whole := parse(t, order)
	size, ids := 0, map[string]bool{}
	seen := map[string]map[string]int{"amount": {}, "code": {}, "status": {}, "flag": {}, "below": {}}
	const n = 20_000
	for producer := range 2 {
		f := template.NewFiller(1, producer)
		for number := range int64(n / 2) {
			body := f.Fill(whole, number, made)
			if size == 0 {
				size = len(body)
			}
			require.Len(t, body, size)
			var v map[string]any
			require.NoError(t, json.Unmarshal(body, &v), "%s", body)
			unique := int64(producer)*10_000_000_000_000 + number
			require.EqualValues(t, unique, v["number"])
			require.Equal(t, fmt.Sprintf("order-%020d", unique), v["key"])
			require.Equal(t, "2026-03-01T12:00:00.000007Z", v["at"])
			require.Regexp(t, "^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$", v["id"])
			require.Regexp(t, "^[0-9a-f]{20}$", v["token"])
			ids[v["id"].(string)], ids[v["token"].(string)] = true, true
			require.Contains(t, []any{"bcd!", "a  !"}, v[`"quoted"`])
			for name, values := range seen {
				values[fmt.Sprint(v[name])]++
			}
		}
	}
	require.Len(t, ids, 2*n)
	require.Len(t, seen["amount"], 1006)
	require.Len(t, seen["code"], 99)
	require.Contains(t, seen["code"], "07")
	require.Len(t, seen["below"], 10)
	require.Contains(t, seen["below"], "-07")
	for _, c := range []struct {
		name, value string
		share       float64
	}{
		{"status", "new", 1. / 3},
		{"status", "paid", 1. / 3},
		{"status", "shipped", 1. / 3},
		{"flag", "true", 0.5},
		{"flag", "<nil>", 0.5},
		{"code", "01", 1. / 99},
		{"code", "99", 1. / 99},
		{"amount", "-5", 1. / 1006},
		{"amount", "1000", 1. / 1006},
	} {
		require.InDelta(t, c.share, float64(seen[c.name][c.value])/n, 0.01+c.share/50, "%s %s", c.name, c.value)
	}
}

// A message that is sent again has the same body, whatever was sent meanwhile.
func TestSameAgain(t *testing.T) {
	f, a, b := template.NewFiller(1, 0), parse(t, order), parse(t, "{{hex 9}}")
	first := string(f.Fill(a, 5, made))
	require.NotEqual(t, first, string(f.Fill(a, 6, made)))
	require.Len(t, f.Fill(b, 5, made), 9)
	require.Equal(t, first, string(f.Fill(a, 5, made)))
	require.NotEqual(t, first, string(template.NewFiller(2, 0).Fill(a, 5, made)))
	require.NotEqual(t, first, string(template.NewFiller(1, 1).Fill(a, 5, made)))
}

func TestMistakes(t *testing.T) {
	for _, c := range []struct{ text, says, hint string }{
		{"plain", "body:1:1: there is no field such as {{seq}}", "--body-file sends a file as it is"},
		{"a\nbä {{sqe}}", "body:2:4: there is no field \"sqe\"", "did you mean seq?"},
		{"{{x}}", "body:1:1: there is no field \"x\"", "there are seq, uuid, now, int, pick and hex"},
		{"{{seq}} {{}}", "body:1:9: {{ begins no field", `write it like {{seq}} or {{pick "a" "b"}}`},
		{"{{seq", "body:1:1: {{ begins no field", `write it like {{seq}} or {{pick "a" "b"}}`},
		{"{{ seq }", "body:1:1: {{ begins no field", `write it like {{seq}} or {{pick "a" "b"}}`},
		{`{{pick "a" "b}}`, "body:1:1: {{ begins no field", `write it like {{seq}} or {{pick "a" "b"}}`},
		{`{{seq 1}}`, "body:1:1: seq has wrong arguments", `write it like {{seq}}`},
		{`{{now utc}}`, "body:1:1: now has wrong arguments", `write it like {{now}}`},
		{`{{uuid 4}}`, "body:1:1: uuid has wrong arguments", `write it like {{uuid}}`},
		{`{{int 5}}`, "body:1:1: int has wrong arguments", `write it like {{int 1 1000}}, the lower number first`},
		{`{{int 5 4}}`, "body:1:1: int has wrong arguments", `write it like {{int 1 1000}}, the lower number first`},
		{`{{int 1 x}}`, "body:1:1: int has wrong arguments", `write it like {{int 1 1000}}, the lower number first`},
		{`{{int 1 1e3}}`, "body:1:1: int has wrong arguments", `write it like {{int 1 1000}}, the lower number first`},
		{`{{int 1 2 3}}`, "body:1:1: int has wrong arguments", `write it like {{int 1 1000}}, the lower number first`},
		{`{{int 1 1000000000000000000}}`, "body:1:1: int has wrong arguments", `write it like {{int 1 1000}}, the lower number first`},
		{`{{int -1000000000000000000 1}}`, "body:1:1: int has wrong arguments", `write it like {{int 1 1000}}, the lower number first`},
		{`{{pick "a"}}`, "body:1:1: pick has wrong arguments", `write it like {{pick "a" "b"}}`},
		{`{{pick "a" "\xff"}}`, "body:1:1: pick has wrong arguments", `write it like {{pick "a" "b"}}`},
		{`{{pick "a" "\x00"}}`, "body:1:1: pick has wrong arguments", `write it like {{pick "a" "b"}}`},
		{`{{pick "a" "\q"}}`, "body:1:1: pick has wrong arguments", `write it like {{pick "a" "b"}}`},
		{`{{hex}}`, "body:1:1: hex has wrong arguments", `write it like {{hex 16}}, from 1 to 4096`},
		{`{{hex 0}}`, "body:1:1: hex has wrong arguments", `write it like {{hex 16}}, from 1 to 4096`},
		{`{{hex 4097}}`, "body:1:1: hex has wrong arguments", `write it like {{hex 16}}, from 1 to 4096`},
		{`{{hex x}}`, "body:1:1: hex has wrong arguments", `write it like {{hex 16}}, from 1 to 4096`},
	} {
		_, err := template.Parse("body", []byte(c.text))
		require.EqualError(t, err, c.says)
		var e *inputfile.Error
		require.True(t, errors.As(err, &e))
		require.Equal(t, c.hint, e.Hint, c.says)
	}
}

// Padding keeps a body valid where it stands, and its length.
func TestPadding(t *testing.T) {
	for text, want := range map[string]string{
		`{{int 7 7}}`:                    "7",
		`{{int -7 -7}}`:                  "-7",
		`[{{int 100 100}}]`:              "[100]",
		`"{{int 0 0}}{{int 5 5}}"`:       `"05"`,
		"\"\n{{seq}}":                    "\"\n                   3",
		`"\"{{seq}}"`:                    `"\"00000000000000000003"`,
		`"a" {{seq}}`:                    `"a"                    3`,
		`"{{pick "x" "x"}}" {{int 1 1}}`: `"x" 1`,
		`{{pick "}}" "}}"}}`:             "}}",
		`{{pick "a b"  "a b" }}}`:        "a b}",
		"{ {{int 1 1}} }}":               "{ 1 }}",
		`"\\\\" {{seq}}`:                 `"\\\\"                    3`,
		`{{pick new new}}`:               "new",
	} {
		require.Equal(t, want, string(template.NewFiller(0, 0).Fill(parse(t, text), 3, made)), text)
	}
	short := map[string]bool{}
	f, choice := template.NewFiller(0, 0), parse(t, `"{{pick "x" "long"}}",`)
	for n := range int64(100) {
		short[string(f.Fill(choice, n, made))] = true
	}
	require.Equal(t, map[string]bool{`"x"   ,`: true, `"long",`: true}, short)
}

// Values of properties have no padding, and the numbers of their message's body.
func TestValues(t *testing.T) {
	value := func(text string) *template.Template { return musttest.Get(template.ParseValue("key", text))(t) }
	f, body := template.NewFiller(7, 2), parse(t, `{{seq}} {{uuid}}`)
	list := []*template.Template{
		value(`{{seq}}`), value(`"{{int -5 1000}}"`), value(`<{{pick "a" "b c " "dddd"}}>`), value("{{now}}/{{hex 3}}{{uuid}}"),
	}
	uuid := strings.Fields(string(f.Fill(body, 3, made)))[1]
	got := strings.Split(string(bytes.Join(f.Values(list), []byte("|"))), "|")
	require.Equal(t, []string{
		"20000000000003", `"476"`, "<b c >", "2026-03-01T12:00:00.000007Z/b35f98c9e35-1048-4d76-8379-c171d20fbbf5",
	}, got)
	require.NotContains(t, got[3], uuid, "fields draw on")
	require.Nil(t, f.Fill(nil, 3, made))
	seen := map[string]bool{}
	for n := range int64(100) {
		f.Fill(nil, n, made)
		seen[string(f.Values(list[2:3])[0])] = true
	}
	require.Equal(t, map[string]bool{"<a>": true, "<b c >": true, "<dddd>": true}, seen)
	_, err := template.ParseValue("key", "a {{sqe}}")
	require.EqualError(t, err, `key:1:3: there is no field "sqe"`)
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		f.Fill(body, 5, made)
		f.Values(list)
	}))
}

func FuzzParse(f *testing.F) {
	f.Add(order)
	f.Add(`"{{pick "a" "\""}}" {{int -1 1}}`)
	f.Add("{{{{seq}}}}")
	f.Fuzz(func(t *testing.T, text string) {
		whole, err := template.Parse("body", []byte(text))
		if err != nil {
			var e *inputfile.Error
			require.True(t, errors.As(err, &e))
			require.NotEmpty(t, e.Reason)
			return
		}
		filler := template.NewFiller(1, 1)
		size := len(filler.Fill(whole, 0, made))
		require.Len(t, filler.Fill(whole, 1<<40, made), size)
	})
}

func TestFillAllocatesNothing(t *testing.T) {
	f, whole, number := template.NewFiller(1, 0), parse(t, order), int64(0)
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		number++
		f.Fill(whole, number, made)
	}))
}

func BenchmarkFill(b *testing.B) {
	for _, size := range []int{0, 64 << 10} {
		f, whole, number := template.NewFiller(1, 0), parse(b, order+strings.Repeat(" ", size)), int64(0)
		b.Run(strconv.Itoa(size), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				number++
				f.Fill(whole, number, made)
			}
		})
	}
}
