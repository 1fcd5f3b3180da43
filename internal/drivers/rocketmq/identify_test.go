package rocketmq

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestProductOf(t *testing.T) {
	for desc, want := range map[string][2]string{
		"V5_3_1":                     {"RocketMQ", "5.3.1"},
		"V4_9_8_SNAPSHOT":            {"RocketMQ", "4.9.8.SNAPSHOT"},
		"perfmq embedded broker/1.2": {"perfmq embedded broker", "1.2"},
	} {
		product, version := productOf(desc)
		require.Equal(t, want, [2]string{product, version}, desc)
	}
}
