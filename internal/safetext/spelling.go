package safetext

import (
	"html"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// hideSecret hides a secret wherever it stands in text, each of its characters as it is or escaped in any of the ways
// that [escaped] knows: a program that quotes it, or puts it into a URL, chooses the characters to escape. If alone is
// true it is hidden only where it is no part of a word.
func hideSecret(text, secret string, alone bool) string {
	var b strings.Builder
	done := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case secret[0], '%', '\\', '&', '+':
		default:
			continue
		}
		n := spelled(text[i:], secret)
		if n == 0 || alone && partOfWord(text, i, i+n) {
			continue
		}
		b.WriteString(text[done:i])
		b.WriteString(Hidden)
		done = i + n
		i = done - 1
	}
	if done == 0 {
		return text
	}
	return b.String() + text[done:]
}

// spelled returns how many bytes at the beginning of text spell the secret; 0 if they do not.
func spelled(text, secret string) int {
	places := []int{0} // where the rest of the secret may begin: an escape may also be meant as it stands
	for len(secret) > 0 {
		_, size := utf8.DecodeRuneInString(secret)
		character := secret[:size]
		var next []int
		for _, at := range places {
			for _, n := range units(text[at:], character) {
				if end := at + n; len(next) == 0 || next[len(next)-1] != end {
					next = append(next, end)
				}
			}
		}
		if len(next) == 0 {
			return 0
		}
		secret, places = secret[size:], next
	}
	return places[len(places)-1]
}

// units returns how many bytes at the beginning of text may spell one character.
func units(text, character string) (list []int) {
	if strings.HasPrefix(text, character) {
		list = append(list, len(character))
	}
	n, left := 0, character
	for left != "" { // an escape may be of one byte only
		meant, size := escaped(text[n:])
		if size == 0 || meant == "" || !strings.HasPrefix(left, meant) {
			return list
		}
		n, left = n+size, left[len(meant):]
	}
	return append(list, n)
}

// escaped returns the meaning of an escape at the beginning of text and its length, 0 if there is none:
// percent-encoding, and the escapes of JSON, Go, STOMP and HTML.
func escaped(text string) (meant string, size int) {
	if text == "" {
		return "", 0
	}
	switch text[0] {
	case '+':
		return " ", 1
	case '%':
		return hexByte(text, 1)
	case '&':
		end := strings.IndexByte(text[:min(len(text), longestEntity)], ';')
		if end < 0 {
			return "", 0
		}
		if meant = html.UnescapeString(text[:end+1]); meant == text[:end+1] {
			return "", 0
		}
		return meant, end + 1
	case '\\':
		return backslash(text)
	}
	return "", 0
}

const longestEntity = 12

func backslash(text string) (meant string, size int) {
	if len(text) < 2 {
		return "", 0
	}
	switch c := text[1]; c {
	case '\\', '"', '/', '\'':
		return text[1:2], 2
	case 'n':
		return "\n", 2
	case 'r':
		return "\r", 2
	case 't':
		return "\t", 2
	case 'c':
		return ":", 2
	case 'x':
		return hexByte(text, 2)
	case 'u', 'U':
		digits := map[byte]int{'u': 4, 'U': 8}[c]
		if len(text) < 2+digits {
			return "", 0
		}
		n, err := strconv.ParseUint(text[2:2+digits], 16, 32)
		if err != nil || n > utf8.MaxRune {
			return "", 0
		}
		r, size := rune(n), 2+digits
		if utf16.IsSurrogate(r) && len(text) >= 2*size && c == 'u' {
			low, err := strconv.ParseUint(text[size+2:2*size], 16, 32)
			if err != nil {
				return "", 0
			}
			r, size = utf16.DecodeRune(r, rune(low)), 2*size //nolint:gosec // four digits
		}
		return string(r), size
	}
	return "", 0
}

// hexByte reads two hexadecimal digits.
func hexByte(text string, at int) (meant string, size int) {
	if len(text) < at+2 {
		return "", 0
	}
	n, err := strconv.ParseUint(text[at:at+2], 16, 8)
	if err != nil {
		return "", 0
	}
	return string([]byte{byte(n)}), at + 2
}

// partOfWord tells whether text[from:to] goes on in a word before or after it.
func partOfWord(text string, from, to int) bool {
	return from > 0 && within(text[from-1]) && within(text[from]) || to < len(text) && within(text[to]) &&
		within(text[to-1])
}

// within tells whether a byte is part of a word.
func within(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c >= 0x80
}
