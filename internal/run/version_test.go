package run

import (
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestRevision(t *testing.T) {
	built := func(settings ...debug.BuildSetting) *debug.BuildInfo { return &debug.BuildInfo{Settings: settings} }
	commit := debug.BuildSetting{Key: "vcs.revision", Value: "0123456789abcdef0123"}
	assert.Equal(t, "0123456789ab", revision(built(commit, debug.BuildSetting{Key: "vcs.modified", Value: "false"})))
	assert.Equal(t, "0123456789ab+changes", revision(built(commit, debug.BuildSetting{Key: "vcs.modified", Value: "true"})))
	for version, want := range map[string]string{
		"v0.0.0-20261129074858-0ac5104e1234": "0ac5104e1234", // go install MODULE@COMMIT
		"v0.9.0":                             "v0.9.0",       // go install MODULE@VERSION
		"(devel)":                            "", "": "",
	} {
		assert.Equal(t, want, revision(&debug.BuildInfo{Main: debug.Module{Version: version}}), version)
	}
}
