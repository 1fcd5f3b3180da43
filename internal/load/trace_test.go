package load_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/load"
)

func TestSample(t *testing.T) {
	for _, text := range []string{"", "1", "1/0", "2/1000", "1/x", "1/-1", "1/1.5", "0.1%", "1/1000000001"} {
		_, err := load.ParseSample(text)
		require.EqualError(t, err, "must be like 1/1000", text)
	}
	s, err := load.ParseSample("1 / 1k")
	require.NoError(t, err)
	require.Equal(t, "1/1000", s.String())
}
