package nearest

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Hint returns "did you mean X?" for the candidate nearest to word, written by format; otherwise if none is near.
func Hint(word string, candidates []string, format, otherwise string) string {
	if n := Nearest(word, candidates); n != "" {
		return fmt.Sprintf("did you mean "+format+"?", n)
	}
	return otherwise
}

// Spelling returns the spelling of a value that was probably meant by text: 10000 by 10,000, 10k by 10k/s, 5m by "5
// minutes", true by yes. It is one that accept accepts; "" if there is none.
func Spelling(text string, accept func(string) bool) string {
	if len(text) > longest {
		return ""
	}
	clean := strings.Trim(strings.TrimSpace(text), `"'`)
	clean = regexp.MustCompile(`\d{1,3}([,_']\d{3})+\b`).ReplaceAllStringFunc(clean, func(number string) string {
		return strings.NewReplacer(",", "", "_", "", "'", "").Replace(number)
	})
	for _, r := range rules() {
		clean = regexp.MustCompile(r[0]).ReplaceAllString(clean, r[1])
	}
	list := []string{clean, strings.ToLower(clean), strings.ToUpper(clean)}
	if strings.IndexAny(clean, "0123456789") == 0 {
		list = append(list, strings.ReplaceAll(clean, " ", ""))
	}
	list = append(list, regexp.MustCompile(`^([\w-]+)(\s*:\s*|\s+)(\S.*)$`).ReplaceAllString(clean, "$1=$3"))
	switch strings.ToLower(clean) {
	case "yes", "y", "on", "1", "enable", "enabled":
		list = []string{"true"}
	case "no", "n", "off", "0", "none", "disable", "disabled":
		list = []string{"false", "0"}
	}
	if i := slices.IndexFunc(list, accept); i >= 0 {
		return list[i]
	}
	return ""
}

// rules are patterns of units that people write, and their spelling in perfmq's values.
func rules() [][2]string {
	return [][2]string{
		{`(?i)(\d[kmg]?)\s*((msgs?|messages?)\s*)?(/|\bper\s+)\s*(s|sec|second)\b`, "$1"},
		{`(?i)(\d[kg])ps\b`, "$1"},
		{`(?i)(\d[kmg]?)\s*(msgs?|messages?|mps|tps|qps)\b`, "$1"},
		{`(?i)(\d)\s*(hours?|hrs?)\b`, "${1}h"},
		{`(?i)(\d)\s*(minutes?|mins?)\b`, "${1}m"},
		{`(?i)(\d)\s*(seconds?|secs?)\b`, "${1}s"},
		{`(?i)(\d)\s*(milliseconds?|millis|msecs?)\b`, "${1}ms"},
		{`(?i)(\d)\s*(microseconds?|micros|usecs?)\b`, "${1}us"},
		{`(?i)(\d)\s*(bytes?)\b`, "${1}"},
		{`(?i)(\d)\s+([nuµm]?s|[mh]|[kmg]i?b?|b)\b`, "$1$2"},
	}
}
