package cli

import (
	"github.com/spf13/pflag"
)

// withoutEffect returns the switches of artemis perf that perfmq accepts for existing scripts and ignores, each with
// the reason.
func withoutEffect() [][2]string {
	return [][2]string{
		{"enable-msg-id", "messages are numbered by --verify; the protocols decide on message IDs themselves"},
		{"enable-timestamp", "every message carries the time when it was sent"},
		{"verbose", "errors are always printed in full"},
	}
}

// acceptCompatible defines the switches that have no effect.
func acceptCompatible(flags *pflag.FlagSet) {
	for _, f := range withoutEffect() {
		flags.Bool(f[0], false, f[1])
		_ = flags.MarkHidden(f[0]) // the flag exists
	}
}

// compatibleNotes returns a note for each of them that was given.
func compatibleNotes(flags *pflag.FlagSet) (notes []string) {
	for _, f := range withoutEffect() {
		if flags.Changed(f[0]) {
			notes = append(notes, "--"+f[0]+" has no effect: "+f[1])
		}
	}
	return notes
}
