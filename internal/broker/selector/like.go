package selector

import "unicode/utf8"

// pattern is the pattern of a LIKE: runes, anyOne and anyNumber.
type pattern []rune

// No text has these.
const (
	anyOne    rune = -1
	anyNumber rune = -2
)

// newPattern reads a pattern; ok is false if it ends with the character that escapes.
func newPattern(text, escape string) (p pattern, ok bool) {
	p = pattern{}
	escaped := false
	for _, r := range text {
		switch {
		case escaped:
			p, escaped = append(p, r), false
		case escape != "" && string(r) == escape:
			escaped = true
		case r == '_':
			p = append(p, anyOne)
		case r == '%':
			if n := len(p); n == 0 || p[n-1] != anyNumber {
				p = append(p, anyNumber)
			}
		default:
			p = append(p, r)
		}
	}
	return p, !escaped
}

// matches takes time in proportion to the length of s times that of the pattern at most.
func (p pattern) matches(s string) bool {
	i, at := 0, 0 // in p and s
	star := -1    // the last anyNumber
	resume := 0   // in s: where the rest of the pattern was tried last
	for at < len(s) {
		r, size := utf8.DecodeRuneInString(s[at:])
		switch {
		case i < len(p) && p[i] == anyNumber:
			star, resume = i, at
			i++
		case i < len(p) && (p[i] == anyOne || p[i] == r):
			i++
			at += size
		case star >= 0:
			_, size = utf8.DecodeRuneInString(s[resume:])
			resume += size
			at, i = resume, star+1
		default:
			return false
		}
	}
	for i < len(p) && p[i] == anyNumber {
		i++
	}
	return i == len(p)
}
