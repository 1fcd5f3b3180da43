// Package safetext makes texts fit to be printed that were written by others: remarks of a broker, names that a user
// or a peer chose, contents of files. Printed text must not steer a terminal, must not look like more lines than
// it is, must not fill the screen, and must not hold a password.
//
//	Secrets.Line: the console, errors, labels
//	Secrets.Field: JSON, which has escapes of its own
//
// Redaction comes first: shortening may cut a password in two, and escapes may change its spelling.
package safetext

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	// MaxLine is the largest part of a text that is shown on a line, in bytes.
	MaxLine = 1024
	// MaxField is the largest part of a text that a file for programs holds, in bytes.
	MaxField = 64 << 10
)

// Line returns text as one line of at most [MaxLine] bytes and a note. Line breaks, with the blanks after them,
// become "; ". Characters that do not print become escapes as in Go's strings: control characters (\x1b), bytes that
// are no UTF-8 (\xff), marks that change the direction of writing and blanks other than the space (\u202e). Of a
// longer text the note has the number of bytes left out.
func Line(text string) string { return line(text, 0) }

// line adds beyond, the number of bytes that follow the text, to the bytes that it reports as left out.
func line(text string, beyond int) string {
	if beyond == 0 && len(text) <= MaxLine && isPlain(text) {
		return text
	}
	text = strings.Trim(text, " \t\r\n")
	var b strings.Builder
	i := 0
	for i < len(text) {
		piece, size := escape(text[i:])
		if b.Len()+len(piece) > MaxLine {
			break
		}
		b.WriteString(piece)
		i += size
	}
	return b.String() + leftOut(len(text)-i+beyond)
}

// Bounded returns text, or its first [MaxField] bytes and a note of the number of bytes left out. It escapes nothing.
func Bounded(text string) string { return bounded(text, 0) }

func bounded(text string, beyond int) string {
	cut := min(MaxField, len(text))
	for cut < len(text) && cut > MaxField-utf8.UTFMax && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + leftOut(len(text)-cut+beyond)
}

func leftOut(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("... (%d bytes left out)", n)
}

// isPlain reports whether all of a text is printable ASCII, as most are.
func isPlain(text string) bool {
	for i := range len(text) {
		if text[i] < ' ' || text[i] > '~' {
			return false
		}
	}
	return text == "" || text[0] != ' ' && text[len(text)-1] != ' '
}

// escape returns the replacement for the beginning of a text that is not empty, and the number of bytes that it
// replaces.
func escape(text string) (piece string, size int) {
	r, size := utf8.DecodeRuneInString(text)
	switch {
	case r == '\n' || r == '\r':
		return "; ", len(text) - len(strings.TrimLeft(text, "\r\n\t "))
	case r == utf8.RuneError && size == 1:
		return fmt.Sprintf(`\x%02x`, text[0]), 1
	case strconv.IsPrint(r):
		return text[:size], size
	default:
		return strings.Trim(strconv.QuoteRune(r), "'"), size
	}
}

// Shell quotes a word of a command for a shell, if that is necessary.
func Shell(word string) string {
	if word != "" && !strings.ContainsAny(word, " \t\n\"'`$&|;<>()*?[]#~!\\{}") {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// Markdown makes a text mean nothing to Markdown, nor to the HTML that it may hold. Words that a viewer would make a
// link or a mention of, escaped or not, become code.
func Markdown(text string) string {
	words := strings.Split(strings.NewReplacer("\n", " ", "\r", " ", "\t", " ").Replace(text), " ")
	for i, word := range words {
		if strings.Contains(word, "@") || strings.Contains(word, "://") || strings.Contains(strings.ToLower(word), "www.") {
			body := strings.TrimRight(word, ".,:;")
			words[i] = "`" + marked(body, "`|\\", func(r rune) string { return fmt.Sprintf("\\u%04x", r) }) + "`" +
				word[len(body):]
		} else {
			words[i] = marked(word, "\\`*_[]<>|#&~!$", func(r rune) string { return "\\" + string(r) })
		}
	}
	return strings.Join(words, " ")
}

// marked replaces the runes in special, and says which those are that cannot be printed.
func marked(word, special string, escape func(rune) string) string {
	var b strings.Builder
	for _, r := range word {
		switch {
		case strings.ContainsRune(special, r):
			b.WriteString(escape(r))
		case !strconv.IsPrint(r):
			fmt.Fprintf(&b, "\\u%04x", r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// Clean returns v with the secrets removed from its texts, each bounded as [Secrets.Field] does: once for all outputs,
// each of which then escapes them for its format. [Each] chooses the texts.
func Clean[T any](s *Secrets, v T) T { return Each(v, s.Field) }

// Each returns v with change applied to each string in its exported fields, slices, maps and pointers, at any depth. It
// copies what changes and shares the rest. Strings of named types stay, and so do those behind interfaces, and the keys
// of numbers, which are perfmq's own words.
func Each[T any](v T, change func(string) string) T {
	if changed, ok := visit(reflect.ValueOf(&v).Elem(), change); ok {
		return changed.Interface().(T) //nolint:forcetypeassert // visit keeps the type
	}
	return v
}

// visit returns a changed copy of v, or false if there is nothing to change.
func visit(v reflect.Value, change func(string) string) (reflect.Value, bool) {
	switch v.Kind() {
	case reflect.String:
		if v.Type() != reflect.TypeFor[string]() {
			return v, false
		}
		text := change(v.String())
		return reflect.ValueOf(text), text != v.String()
	case reflect.Pointer:
		if v.IsNil() {
			return v, false
		}
		to, changed := visit(v.Elem(), change)
		if !changed {
			return v, false
		}
		p := reflect.New(v.Type().Elem())
		p.Elem().Set(to)
		return p, true
	case reflect.Struct:
		return parts(v, v.NumField(), reflect.Value.Field, change)
	case reflect.Slice:
		if v.Type().Elem().Kind() <= reflect.Complex128 { // numbers, often many
			return v, false
		}
		return parts(v, v.Len(), reflect.Value.Index, change)
	case reflect.Array:
		return parts(v, v.Len(), reflect.Value.Index, change)
	case reflect.Map:
		return entries(v, change)
	default:
		return v, false
	}
}

// parts visits the fields of a struct, or the elements of a slice or an array.
func parts(v reflect.Value, n int, part func(reflect.Value, int) reflect.Value, change func(string) string) (
	c reflect.Value, changed bool,
) {
	for i := range n {
		if v.Kind() == reflect.Struct && !v.Type().Field(i).IsExported() {
			continue
		}
		to, differs := visit(part(v, i), change)
		if !differs {
			continue
		}
		if !changed {
			c, changed = reflect.New(v.Type()).Elem(), true
			c.Set(v)
			if v.Kind() == reflect.Slice {
				c = reflect.AppendSlice(reflect.MakeSlice(v.Type(), 0, n), v)
			}
		}
		part(c, i).Set(to)
	}
	return c, changed
}

// entries visits the keys and values of a map. Of keys that become equal, the first in order stays.
func entries(v reflect.Value, change func(string) string) (reflect.Value, bool) {
	of := v.Type().Elem()
	for of.Kind() == reflect.Map {
		of = of.Elem()
	}
	if v.Type().Key().Kind() != reflect.String || of.Kind() <= reflect.Complex128 {
		return v, false
	}
	keys := v.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
	c, changed := reflect.MakeMap(v.Type()), false
	for _, name := range keys {
		key, newKey := visit(name, change)
		value, newValue := visit(v.MapIndex(name), change)
		if changed = changed || newKey || newValue; !c.MapIndex(key).IsValid() {
			c.SetMapIndex(key, value)
		}
	}
	return c, changed
}
