package report

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// indent is the column at which the text of the lines above the figures begins.
const indent = 10

// wrapped breaks lines that are too long, from the first one on, as long as the result fits into room lines.
func wrapped(lines []string, width, room int) (out []string) {
	spare := room - len(lines)
	for _, line := range lines {
		for utf8.RuneCountInString(line) > width && spare > 0 {
			text := []rune(line)
			at := strings.LastIndex(string(text[:width]), " ")
			if at <= indent {
				break
			}
			out = append(out, line[:at])
			line = strings.Repeat(" ", indent) + line[at+1:]
			spare--
		}
		out = append(out, line)
	}
	return out
}

// cut shortens a line to the given number of columns.
func cut(line string, columns int) string {
	if utf8.RuneCountInString(line) <= columns {
		return line
	}
	return string([]rune(line)[:max(columns-1, 0)]) + "…"
}

// span returns a duration in whole seconds, or with a decimal below 10 seconds.
func span(d time.Duration) string {
	if d < 10*time.Second {
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	if d < 2*time.Minute {
		return fmt.Sprintf("%.0f s", d.Seconds())
	}
	return d.Round(time.Second).String()
}
