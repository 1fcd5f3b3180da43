package safetext

import (
	"cmp"
	"encoding/base64"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// Hidden stands in for a secret.
const Hidden = "***"

// shortest is the length from which on a secret is hidden wherever it stands, also within a word. A shorter one, and
// one of digits alone, is hidden where it is no part of a word: hiding all letters "e", or parts of counts, would
// leave nothing legible.
const shortest = 4

// Secrets are texts that must not be printed, however they are spelled. The zero value knows none, but hides
// passwords in URLs and settings all the same. It is safe for concurrent use.
type Secrets struct {
	mu    sync.Mutex
	known atomic.Pointer[[]secret] // the longest first: a part of one may be another
}

// secret is a text to be hidden.
type secret struct {
	text    string
	alone   bool // only where it is no part of a word
	encoded bool // it has no other spelling
}

// Add adds a text to the hidden ones: as it is, with any of its characters escaped, and in base64, by
// itself or behind a user, as HTTP and SASL have it. The user name, which is not hidden, may be empty, and so may the
// secret, which then is none.
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
	list = append(list, secret{text: text, alone: len(text) < shortest || strings.Trim(text, "0123456789") == ""})
	if line := Line(text); line != text { // as we would have printed it
		list = append(list, secret{text: line, encoded: true})
	}
	plain := []string{text}
	if user != "" {
		plain = append(plain, user+":"+text, "\x00"+user+"\x00"+text, user+"\x00"+user+"\x00"+text)
	}
	for _, p := range plain {
		if len(p) >= shortest { // "MQ" would be hidden in all words
			list = append(list, secret{text: base64.RawStdEncoding.EncodeToString([]byte(p)), encoded: true},
				secret{text: base64.RawURLEncoding.EncodeToString([]byte(p)), encoded: true})
		}
	}
	slices.SortFunc(list, func(a, b secret) int {
		return cmp.Or(cmp.Compare(len(b.text), len(a.text)), strings.Compare(a.text, b.text))
	})
	list = slices.Compact(list)
	s.known.Store(&list)
}

// AddURL makes secrets of the parts of a broker URL: the password of user:password@, and settings such as
// ?password=. Flag tells that it is known to be a URL, as the value of a flag is, so that it may lack its scheme.
func (s *Secrets) AddURL(text string, flag bool) {
	for query := text; ; {
		from, to := nextSetting(query)
		if from < 0 {
			break
		}
		s.Add("", query[from:to])
		if plain, err := url.QueryUnescape(query[from:to]); err == nil {
			s.Add("", plain)
		}
		query = query[to:]
	}
	if parts := strings.Split(text, "://"); len(parts) > 2 { // a failover URL may have one for each host
		for _, part := range parts[1:] {
			s.addUser(part)
		}
	}
	rest := text
	if i := strings.Index(text, "://"); i >= 0 {
		rest = text[i+len("://"):]
	} else if !flag {
		return
	}
	s.addUser(rest)
}

// addUser makes a secret of the password of user:password@host.
func (s *Secrets) addUser(rest string) {
	at := strings.LastIndexByte(rest, '@') // passwords with an unescaped @, / or ? are common
	if at < 0 {
		return
	}
	user, password, ok := strings.Cut(rest[:at], ":")
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
	return line(text, MaxLine, beyond)
}

// Field is Line for a file whose format has escapes of its own: it only bounds the text, by [MaxField].
func (s *Secrets) Field(text string) string {
	text, beyond := s.redact(text)
	return bounded(text, MaxField, beyond)
}

// Short is Field for a name or a label: it bounds the text by [MaxLine].
func (s *Secrets) Short(text string) string {
	text, beyond := s.redact(text)
	return bounded(text, MaxLine, beyond)
}

// redact also returns how many bytes at the end of text were not looked at, and left out.
func (s *Secrets) redact(text string) (redacted string, beyond int) {
	const most = 2 * MaxField // looking through more would take a peer's remark of many megabytes seconds
	if len(text) > most {
		text, beyond = text[:most], len(text)-most
	}
	known := s.known.Load()
	if known == nil {
		return URLs(text), beyond
	}
	for i := range *known {
		x := &(*known)[i]
		if x.encoded {
			text = strings.ReplaceAll(text, x.text, Hidden)
		} else {
			text = hideSecret(text, x.text, x.alone)
		}
	}
	if beyond > 0 { // the cut may have split a secret
		const longestEscape = 10
		keep := max(0, len(text)-longestEscape*len((*known)[0].text))
		text, beyond = text[:keep], beyond+len(text)-keep
	}
	return URLs(text), beyond
}

// secretSettings are the ends of the names of settings whose values are secret, in lower case.
func secretSettings() []string {
	return []string{
		"password", "passwd", "passcode", "passphrase", "pwd", "secret", "secretkey", "secret-key",
		"secret_key", "token", "apikey", "api-key", "api_key",
	}
}

// nextSetting finds the first secret setting in text, such as ?password=x&...: where its value begins and ends; from
// is negative if there is none.
func nextSetting(text string) (from, to int) {
	const name = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-"
	for at := 0; ; {
		i := strings.IndexByte(text[at:], '=')
		if i < 0 {
			return -1, -1
		}
		from = at + i + 1
		key := text[at : from-1]
		key = strings.ToLower(key[len(strings.TrimRight(key, name)):])
		at = from
		if !slices.ContainsFunc(secretSettings(), func(s string) bool { return strings.HasSuffix(key, s) }) {
			continue
		}
		to = len(text)
		if end := strings.IndexAny(text[from:], "&;, \t\r\n\"'<>`"); end >= 0 {
			to = from + end
		}
		if to > from {
			return from, to
		}
	}
}

// settings returns text without the values of secret settings.
func settings(text string) string {
	var b strings.Builder
	for {
		from, to := nextSetting(text)
		if from < 0 {
			return b.String() + text
		}
		b.WriteString(text[:from] + Hidden)
		text = text[to:]
	}
}

// longestURL is how much of a URL is looked at for its password.
const longestURL = 2048

// URLs returns text without the passwords of URLs, and of settings such as ?password=, in it.
func URLs(text string) string {
	text = settings(text)
	var b strings.Builder
	for {
		i := strings.Index(text, "://")
		if i < 0 {
			b.WriteString(text)
			return b.String()
		}
		i += len("://")
		b.WriteString(text[:i])
		text = text[i:]
		end := min(len(text), longestURL)
		if i := strings.IndexAny(text[:end], " \t\r\n\"'<>`"); i >= 0 {
			end = i
		}
		authority := end
		if j := strings.IndexAny(text[:end], "/?#"); j >= 0 {
			authority = j
		}
		at := strings.LastIndexByte(text[:authority], '@')
		if at < 0 { // a password with an unescaped "/" is a mistake, but must not be printed because of it
			at = strings.LastIndexByte(text[:end], '@')
		}
		if user, _, ok := strings.Cut(text[:max(at, 0)], ":"); ok && !strings.Contains(user, "/") {
			b.WriteString(user)
			text = text[at:]
		}
	}
}
