//go:build unix && !race

package hostile

const raceFactor = 1
