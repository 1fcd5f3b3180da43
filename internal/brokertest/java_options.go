//go:build unix

package brokertest

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// javaOptions returns the options of a broker's JVM: ours, then those of the caller. Of two equal options the last
// counts, but a JVM with two collectors, or whose first heap is above its largest, does not start: a collector or a
// largest heap of the caller's takes ours away.
func javaOptions(own, extra []string) []string {
	heap := slices.ContainsFunc(extra, regexp.MustCompile(`^(-Xmx|-XX:MaxHeapSize=|-XX:MaxRAMPercentage=)`).MatchString)
	collector := regexp.MustCompile(`^-XX:\+Use\w+GC$`).MatchString
	collectors := slices.ContainsFunc(extra, collector)
	kept := slices.DeleteFunc(slices.Clone(own), func(o string) bool {
		return heap && (strings.HasPrefix(o, "-Xms") || strings.HasPrefix(o, "-Xmx")) || collectors && collector(o)
	})
	return append(kept, extra...)
}

// checkJavaOptions refuses arguments that java would take for the name of a class to run.
func checkJavaOptions(options []string) error {
	for _, o := range options {
		if !strings.HasPrefix(o, "-") {
			return fmt.Errorf("option %q of the JVM does not begin with -: write options with values as one word, for example "+
				"--add-opens=java.base/java.lang=ALL-UNNAMED", o)
		}
	}
	return nil
}
