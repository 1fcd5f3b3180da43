package scenario

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// keyBefore finds keys with a colon, also where the blank behind it is missing.
var keyBefore = regexp.MustCompile(`["']?[A-Za-z][A-Za-z0-9_.-]*["']?[ \t]*[:=]`)

// closed matches the text behind a quoted value.
var closed = regexp.MustCompile(`^[ \t]*([,}\]#].*)?$`)

// hideValues finds the values of secret keys line by line, since the YAML may be broken. A value ends with its closing
// quote or its line. Following lines belong to it if they are indented more, or stand before the closing quote.
func (s *source) hideValues() []span {
	hidden := make([]span, len(s.lines))
	indent, quote := -1, "" // of the secret that goes on from the line before
	for i, line := range s.lines {
		whole := span{0, utf8.RuneCountInString(line)}
		blank := strings.TrimSpace(line) == ""
		switch own := len(line) - len(strings.TrimLeft(line, " \t")); {
		case quote != "":
			hidden[i] = whole
			if strings.Contains(line, quote) {
				quote = ""
			}
			continue
		case indent >= 0 && (blank || own > indent):
			hidden[i] = whole
			continue
		}
		indent = -1
		from, to, open := s.secretValue(line)
		if from < 0 {
			continue
		}
		hidden[i] = span{utf8.RuneCountInString(line[:from]), utf8.RuneCountInString(line[:to])}
		s.values = append(s.values, guessed(line[from:to])...)
		if to == len(line) {
			quote = open
			indent = len(line) - len(strings.TrimLeft(line, " \t"))
		}
	}
	return hidden
}

// guessed returns the secret that a value in a line is, if it is not a variable, a map, a list or in the next lines.
func guessed(value string) []string {
	switch {
	case value == "", strings.ContainsAny(value[:1], "{[|>#$"):
		return nil
	case strings.ContainsAny(value[:1], "&*!"): // without quotes it is the name of an anchor, an alias or a tag
		word := strings.FieldsFunc(value[1:], func(r rune) bool { return strings.ContainsRune(" \t,{}[]", r) })
		return word[:min(1, len(word))]
	default:
		return []string{strings.Trim(value, "\"' \t")}
	}
}

// secretValue finds the first secret value in a line: where it begins and ends, in bytes; from is negative if there is
// none. Open is the quote that the line does not close.
func (s *source) secretValue(line string) (from, to int, open string) {
	for _, at := range keyBefore.FindAllStringIndex(line, -1) {
		name := strings.TrimRight(line[at[0]:at[1]], ":= \t")
		value := strings.TrimLeft(line[at[1]:], " \t")
		from = len(line) - len(value)
		switch {
		case s.keys.isSecret(name):
		case strings.Trim(name, `"'`) == "user" && strings.Contains(value, ":"): // name:password
		default:
			continue
		}
		if value == "" || value[0] != '"' && value[0] != '\'' {
			return from, len(line), ""
		}
		quote := value[:1]
		end := closingQuote(value)
		if end < 0 {
			return from, len(line), quote
		}
		rest := value[end+1:]
		if !closed.MatchString(rest) || s.anySecret(rest) {
			return from, len(line), ""
		}
		return from, from + end + 1, ""
	}
	return -1, -1, ""
}

// anySecret tells whether there is a secret key in a part of a line.
func (s *source) anySecret(part string) bool {
	for _, at := range keyBefore.FindAllStringIndex(part, -1) {
		if s.keys.isSecret(strings.TrimRight(part[at[0]:at[1]], ":= \t")) {
			return true
		}
	}
	return false
}

// closingQuote returns where a quoted text ends, negative if it does not.
func closingQuote(text string) int {
	for i := 1; i < len(text); i++ {
		switch {
		case text[0] == '"' && text[i] == '\\':
			i++
		case text[0] == '\'' && strings.HasPrefix(text[i:], "''"):
			i++
		case text[i] == text[0]:
			return i
		}
	}
	return -1
}

const (
	maxSecrets = 50   // in a file; to find them in a text takes as long as there are many
	maxSecret  = 1024 // bytes of one
)

// learner collects the secrets of a tree.
type learner struct {
	source *source
	vars   map[string]*variable
	seen   map[string]bool
	long   bool
}

// learn makes secrets of the values of secret keys, of the variables in them, and of the passwords in URLs. It returns
// a mistake if these are too many to be kept out of messages.
func (s *source) learn(root *node, vars map[string]*variable) []Mistake {
	l := &learner{source: s, vars: vars, seen: map[string]bool{}}
	for _, v := range vars {
		for _, text := range []string{v.value, v.fallback} {
			if s.keys.isSecret(v.name) {
				v.secret = true
				l.add(text)
			} else {
				l.url(text)
			}
		}
	}
	l.walk(root, false)
	s.found = slices.Sorted(maps.Keys(l.seen))
	return s.hide(l)
}

// hide makes secrets of the texts found.
func (s *source) hide(l *learner) []Mistake {
	if len(l.seen) > maxSecrets || l.long {
		s.hidden = nil // shows no line
		return []Mistake{s.mistake(1, 1, "use password-file",
			"the file has more than %d passwords, or one of more than %d bytes",
			maxSecrets, maxSecret)}
	}
	for text := range l.seen {
		s.secrets.Add("", text)
		s.secrets.AddURL(text, false)
	}
	return nil
}

func (l *learner) walk(n *node, secret bool) {
	switch {
	case n.kind != scalar || n.null:
	case secret:
		l.add(n.text)
		l.add(n.raw)
		for _, name := range n.uses {
			if v := l.vars[name]; v != nil {
				v.secret = true
				l.add(v.value)
				l.add(v.fallback)
			}
		}
	default:
		l.url(n.text)
	}
	for _, item := range n.items {
		l.walk(item, secret)
	}
	for _, p := range n.pairs {
		if p.key.text == "user" {
			if _, password, ok := strings.Cut(p.value.text, ":"); ok { // name:password
				l.add(password)
			}
		}
		l.walk(p.value, secret || l.source.keys.isSecret(p.key.text))
	}
}

func (l *learner) add(text string) {
	text = strings.TrimSpace(text)
	l.long = l.long || len(text) > maxSecret
	if text != "" && len(l.seen) <= maxSecrets {
		l.seen[text] = true
	}
}

// url takes the password of a URL.
func (l *learner) url(text string) {
	_, rest, ok := strings.Cut(text, "://")
	if !ok {
		return
	}
	if at := strings.LastIndexByte(rest, '@'); at >= 0 {
		if _, password, ok := strings.Cut(rest[:at], ":"); ok {
			l.add(password)
		}
	}
}
