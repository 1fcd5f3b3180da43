package safetext

import (
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"unicode"
	"unicode/utf8"
)

// Hidden stands in for a secret.
const Hidden = "***"

// shortest is the length from which on a secret is hidden wherever it stands, also within a word. A shorter one, and
// one of digits alone, is hidden where it is no part of a word: hiding all letters "e", or parts of counts, would
// leave nothing legible.
const shortest = 4

// longestEscape is the largest number of bytes that stand for one.
const longestEscape = 10

// Secrets are texts that must not be printed, however they are spelled. The zero value knows none, but hides
// passwords in URLs and settings all the same. It is safe for concurrent use.
type Secrets struct {
	mu    sync.Mutex
	known atomic.Pointer[[]secret]
}

// secret is a text to be hidden.
type secret struct {
	text  string
	alone bool // only where it is no part of a word
}

// Add hides a text: as it is, with any of its characters escaped, and in base64, by itself or behind a user, as HTTP
// and SASL have it. It does not hide the user name, which may be empty. It ignores an empty secret.
func (s *Secrets) Add(user, text string) {
	if text == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []secret
	if known := s.known.Load(); known != nil {
		list = slices.Clone(*known)
	}
	alone := len(text) < shortest || strings.Trim(text, "0123456789") == ""
	list = append(list, secret{text, alone}, secret{Line(text), alone}) // as we would have printed it
	if strings.ContainsAny(text, escapes) {
		plain, _ := unescape(text)
		list = append(list, secret{plain, alone})
	}
	plain := []string{text}
	if user != "" {
		plain = append(plain, user+":"+text, "\x00"+user+"\x00"+text, user+"\x00"+user+"\x00"+text)
	}
	for _, p := range plain {
		if len(p) >= shortest { // "MQ" would be hidden in all words
			list = append(list, secret{text: base64.RawStdEncoding.EncodeToString([]byte(p))},
				secret{text: base64.RawURLEncoding.EncodeToString([]byte(p))})
		}
	}
	slices.SortFunc(list, func(a, b secret) int { // the longest first
		return cmp.Or(cmp.Compare(len(b.text), len(a.text)), strings.Compare(a.text, b.text))
	})
	list = slices.Compact(list)
	s.known.Store(&list)
}

// AddURL makes secrets of the parts of a broker URL: the password of user:password@, and settings such as
// ?password=. Flag tells that it is known to be a URL, as the value of a flag is, so that it may lack its scheme.
func (s *Secrets) AddURL(text string, flag bool) {
	for _, setting := range secretSetting.FindAllStringSubmatch(text, -1) {
		s.Add("", setting[2])
		if plain, err := url.QueryUnescape(setting[2]); err == nil {
			s.Add("", plain)
		}
	}
	parts := strings.Split(text, "://") // a failover URL may have one for each host
	if len(parts) > 2 {
		for _, part := range parts[1:] {
			s.addUser(part)
		}
	}
	if _, rest, ok := strings.Cut(text, "://"); ok {
		s.addUser(rest)
	} else if flag {
		s.addUser(text)
	}
}

// addUser makes a secret of the password of user:password@host.
func (s *Secrets) addUser(rest string) {
	at := strings.LastIndexByte(rest, '@') // passwords with an unescaped @, / or ? are common
	user, password, ok := strings.Cut(rest[:max(at, 0)], ":")
	if !ok {
		return
	}
	s.Add(user, password)
	plainUser, err1 := url.PathUnescape(user)
	plain, err2 := url.PathUnescape(password)
	if err1 == nil && err2 == nil {
		s.Add(plainUser, plain)
	}
}

// Line returns text without the secrets, and without the passwords in URLs and settings that it holds, as [Line] does.
func (s *Secrets) Line(text string) string {
	text, beyond := s.redact(text)
	return line(text, beyond)
}

// Field is Line for a file in a format with its own escapes: it only bounds the text, by [MaxField].
func (s *Secrets) Field(text string) string {
	text, beyond := s.redact(text)
	return bounded(text, beyond)
}

// redact also returns the number of bytes at the end of text that it did not look at, and left out.
func (s *Secrets) redact(text string) (redacted string, beyond int) {
	const most = 2 * MaxField // looking through more would take a peer's remark of many megabytes seconds
	if len(text) > most {
		text, beyond = text[:most], len(text)-most
	}
	known := s.known.Load()
	if known == nil {
		return URLs(text), beyond
	}
	text = hide(text, *known)
	if beyond > 0 { // the cut may have split a secret
		keep := max(0, len(text)-longestEscape*len((*known)[0].text))
		text, beyond = text[:keep], beyond+len(text)-keep
	}
	return URLs(text), beyond
}

// secretSetting is a setting with a secret value, such as ?password=x.
var secretSetting = regexp.MustCompile(`(?i)((?:password|passwd|passcode|passphrase|pwd|secret|secret[-_]?key|token|` +
	"api[-_]?key)=)([^&;, \t\r\n\"'<>`]+)")

// userPassword is user:password@ of a URL. A password with an unescaped "/" is a mistake, but must not be printed
// because of it.
var userPassword = regexp.MustCompile("(://[^ \t\r\n\"'<>`:/]*):(?:[^ \t\r\n\"'<>`/?#]*|[^ \t\r\n\"'<>`]*)@")

// URLs returns text without the passwords of URLs, and of settings such as ?password=, in it.
func URLs(text string) string {
	if strings.Contains(text, "=") {
		text = secretSetting.ReplaceAllString(text, "${1}"+Hidden)
	}
	if strings.Contains(text, "://") {
		text = userPassword.ReplaceAllString(text, "${1}@")
	}
	return text
}

// escapes are the first characters of escapes.
const escapes = `%\+`

// hide replaces secrets in a text, whether their characters are as they are or escaped: a program that quotes a text,
// or puts it into a URL, chooses the characters to escape.
func hide(text string, secrets []secret) string {
	spans := find(text, text, nil, secrets)
	if strings.ContainsAny(text, escapes) {
		plain, at := unescape(text)
		spans = append(spans, find(text, plain, at, secrets)...)
	}
	slices.SortFunc(spans, func(a, b [2]int) int { return cmp.Compare(a[0], b[0]) })
	var b strings.Builder
	done := 0
	for _, s := range spans {
		if s[0] >= done {
			b.WriteString(text[done:s[0]] + Hidden)
		}
		done = max(done, s[1])
	}
	return b.String() + text[done:]
}

// find returns from and to where text spells secrets. Plain is its meaning, and at the place of each of plain's bytes
// in text; plain is nil if the text means itself.
func find(text, plain string, at []int, secrets []secret) (spans [][2]int) {
	for _, s := range secrets {
		for from := 0; ; {
			i := strings.Index(plain[from:], s.text)
			if i < 0 {
				break
			}
			found := [2]int{from + i, from + i + len(s.text)}
			from = found[1]
			if at != nil {
				found = [2]int{at[found[0]], at[found[1]]}
			}
			if !s.alone || !partOfWord(text, found[0], found[1]) {
				spans = append(spans, found)
			}
		}
	}
	return spans
}

// unescape returns the meaning of a text with escapes, and where each of its bytes is in text.
func unescape(text string) (plain string, at []int) {
	var b strings.Builder
	for i := 0; i < len(text); {
		meant, size := unescapeOne(text[i:])
		b.WriteString(meant)
		for range len(meant) {
			at = append(at, i)
		}
		i += size
	}
	return b.String(), append(at, len(text))
}

// unescapeOne reads a byte, or an escape as in URLs, Go, JSON or STOMP.
func unescapeOne(text string) (meant string, size int) {
	switch {
	case text[0] == '+':
		return " ", 1
	case text[0] == '%' && len(text) > 2:
		if b, err := hex.DecodeString(text[1:3]); err == nil {
			return string(b), 3
		}
	case text[0] == '\\' && len(text) > 1:
		if text[1] == 'c' {
			return ":", 2
		}
		if strings.IndexByte(`"/'`, text[1]) >= 0 {
			return text[1:2], 2
		}
		r, wide, rest, err := strconv.UnquoteChar(text, 0)
		switch {
		case err != nil && len(text) >= 12: // of two halves
			if json.Unmarshal([]byte(`"`+text[:12]+`"`), &meant) == nil {
				return meant, 12
			}
		case err != nil:
		case wide || r < utf8.RuneSelf:
			return string(r), len(text) - len(rest)
		default:
			return string([]byte{byte(r)}), len(text) - len(rest)
		}
	}
	return text[:1], 1
}

// partOfWord reports whether text[from:to] continues in a word before or after it.
func partOfWord(text string, from, to int) bool {
	return from > 0 && within(text[from-1]) && within(text[from]) || to < len(text) && within(text[to]) &&
		within(text[to-1])
}

// within reports whether a byte is part of a word.
func within(c byte) bool {
	return c == '_' || c >= utf8.RuneSelf || unicode.IsLetter(rune(c)) || unicode.IsDigit(rune(c))
}
