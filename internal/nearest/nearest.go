// Package nearest finds the name that was probably meant by a mistyped one.
package nearest

import (
	"fmt"
	"strings"
)

// Nearest returns the candidate that word was probably meant to be, "" if none is near: the one with the fewest
// insertions, deletions, replacements and swaps of neighbours. More than three, or than half of the letters of word,
// are too many. The first of equally near candidates wins. Upper and lower case are the same.
func Nearest(word string, candidates []string) string {
	if len(word) > longest {
		return ""
	}
	best, bestDistance := "", max(1, min(3, len(word)/2))+1
	for _, c := range candidates {
		begins := len(word) > 2 && len(c) <= longest && strings.HasPrefix(strings.ToLower(c), strings.ToLower(word))
		if !begins && max(len(c)-len(word), len(word)-len(c)) >= bestDistance {
			continue
		}
		d := 2
		if !begins || len(c)-len(word) < d {
			d = distance(strings.ToLower(word), strings.ToLower(c))
		}
		if d < bestDistance {
			best, bestDistance = c, d
		}
	}
	return best
}

// Hint returns "did you mean X?" for the candidate nearest to word, written by format; otherwise if none is near.
func Hint(word string, candidates []string, format, otherwise string) string {
	if n := Nearest(word, candidates); n != "" {
		return fmt.Sprintf("did you mean "+format+"?", n)
	}
	return otherwise
}

// longest bounds the work: no name of ours is longer, in bytes.
const longest = 100

// distance is the number of insertions, deletions, replacements and swaps of neighbours between a and b.
func distance(a, b string) int {
	before, last := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row := make([]int, len(b)+1)
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(last[j+1]+1, row[j]+1, last[j]+cost)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}
