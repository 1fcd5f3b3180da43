package rocketmq

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestVersionOf(t *testing.T) {
	for ordinal, want := range map[int]string{ // as javap lists the constants of RocketMQ 5.5.0
		0: "", 137: "", 213: "4.0.0", 233: "4.1.0", 393: "4.9.0", 409: "4.9.8", 412: "", 413: "5.0.0", 415: "5.0.1", 433: "5.1.0", 475: "5.3.1",
		513: "5.5.0", 611: "5.9.9", 612: "", 10000: "", -1: "",
	} {
		require.Equal(t, want, versionOf(ordinal), ordinal)
	}
}

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
