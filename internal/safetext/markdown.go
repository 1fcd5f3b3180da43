package safetext

import (
	"fmt"
	"strconv"
	"strings"
)

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
