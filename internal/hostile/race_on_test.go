//go:build unix && race

package hostile

// raceFactor is how much more memory the race detector lets a process take (https://go.dev/doc/articles/race_detector).
const raceFactor = 5
