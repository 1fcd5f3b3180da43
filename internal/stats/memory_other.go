//go:build !linux

package stats

// processMemory is not known on this system.
func processMemory() uint64 { return 0 }

// MachineMemory is not known on this system.
func MachineMemory() uint64 { return 0 }

// peakMemory is not known on this system.
func peakMemory() uint64 { return 0 }
