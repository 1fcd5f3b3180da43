//go:build unix

package main

import (
	"bufio"
	"context"
	"flag"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/brokertest"
)

func TestBrokerEndsWithItsStdin(t *testing.T) {
	for _, c := range []struct {
		args []string
		urls map[string]string // key: pattern
		not  []string
	}{
		{
			args: []string{"artemis", "--no-management"},
			urls: map[string]string{"AMQP_URL": `^amqp://127\.0\.0\.1:\d+$`, "STOMP_URL": `^stomp://127\.0\.0\.1:\d+$`},
			not:  []string{"MANAGEMENT_URL"},
		},
		{
			args: []string{"activemq", "-set", "jolokia=true", "-set", "storeUsage=64 mb", "-java-opts", "-Xmx200m -Dx=1"},
			urls: map[string]string{
				"AMQP_URL": `^amqp://127\.0\.0\.1:\d+$`, "STOMP_URL": `^stomp://127\.0\.0\.1:\d+$`,
				"MANAGEMENT_URL": `^http://127\.0\.0\.1:\d+/jolokia/$`, "BROKER_USER": "^admin$",
			},
		},
		{
			args: []string{"rabbitmq"},
			urls: map[string]string{"AMQP_URL": `^amqp://127\.0\.0\.1:\d+$`, "STOMP_URL": `^stomp://127\.0\.0\.1:\d+$`, "BROKER_USER": "^admin$"},
		},
		{
			args: []string{"rocketmq", "--login"},
			urls: map[string]string{"ROCKETMQ_URL": `^rocketmq://127\.0\.0\.1:\d+$`, "BROKER_USER": "^" + brokertest.RocketMQUser + "$"},
		},
	} {
		t.Run(c.args[0], func(t *testing.T) {
			got := startAndEnd(t, c.args)
			assert.Equal(t, "1", got["READY"])
			for key, pattern := range c.urls {
				assert.Regexp(t, pattern, got[key], key)
			}
			for _, key := range c.not {
				assert.NotContains(t, got, key, "what there is not, has no line")
			}
			require.NotEmpty(t, got["BROKER_DIR"])
			assert.NoDirExists(t, got["BROKER_DIR"])
		})
	}
}

// startAndEnd returns what the command printed before its stdin was closed, when it has ended.
func startAndEnd(t *testing.T, args []string) map[string]string {
	inR, inW, err := os.Pipe()
	require.NoError(t, err)
	defer func() { _ = inR.Close() }()
	outR, outW := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := run(t.Context(), args, inR, outW)
		_ = outW.Close() // ends the loop below when the start failed
		ended <- err
	}()
	got := map[string]string{}
	for lines := bufio.NewScanner(outR); got["READY"] == "" && lines.Scan(); {
		key, value, _ := strings.Cut(lines.Text(), "=")
		got[key] = value
	}
	require.NoError(t, inW.Close())
	require.NoError(t, <-ended)
	return got
}

// TestSettingsReachTheBroker sees them arrive by what each kind refuses.
func TestSettingsReachTheBroker(t *testing.T) {
	for _, c := range []struct {
		args string
		want string
	}{
		{"artemis -set max-size-byte=1", "did you mean max-size-bytes?"},
		{"artemis -set max-size-bytes=1M -set page-size-bytes=1M", "is not below"},
		{"artemis -set =1", "use KEY=VALUE"},
		{"artemis -set max-size-bytes", "use KEY=VALUE"},
		{"artemis -java-opts -Xmx1G -java-opts Evil", `option "Evil" of the JVM`},
		{"activemq -set storeUsage=many", `setting storeUsage="many"`},
		{"activemq -java-opts Evil", `option "Evil" of the JVM`},
		{"rocketmq -set listenPort=1", "property listenPort"},
		{"rocketmq -java-opts Evil", `option "Evil" of the JVM`},
		{"rabbitmq -set listeners.tcp.1=1", "setting listeners.tcp.1"},
		{"rabbitmq -java-opts -Xmx1G", "not defined: -java-opts"},
		{"qpid -java-opts Evil", `option "Evil" of the JVM`},
	} {
		require.ErrorContains(t, run(t.Context(), strings.Fields(c.args), os.Stdin, io.Discard), c.want, c.args)
	}
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{nil, {"kafka"}, {"artemis", "what"}, {"artemis", "--nonsense"}, {"rabbitmq", "--heap", "1G"}} {
		require.Error(t, run(context.Background(), args, os.Stdin, io.Discard), "%v", args)
	}
	require.ErrorIs(t, run(context.Background(), []string{"artemis", "--help"}, os.Stdin, io.Discard), flag.ErrHelp)
}
