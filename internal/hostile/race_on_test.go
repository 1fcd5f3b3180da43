//go:build unix && race

package hostile

// raceFactor: with the race detector a process needs more memory (https://go.dev/doc/articles/race_detector).
const raceFactor = 5
