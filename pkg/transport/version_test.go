package transport

import (
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestChangelogBeginsWithTheVersion(t *testing.T) {
	text, err := os.ReadFile("../../CHANGELOG.md")
	require.NoError(t, err)
	assert.LessOrEqual(t, len(text), 6<<10, "a changelog is read: condense it")
	first := regexp.MustCompile(`(?m)^## (\S+)`).FindSubmatch(text)
	require.NotNil(t, first)
	assert.Equal(t, Version, string(first[1]))
}
