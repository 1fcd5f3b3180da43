//go:build unix

package brokertest

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// readConfig returns a file that a broker would read; XML must be well-formed.
func readConfig(t *testing.T, path ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(path...))
	require.NoError(t, err)
	if strings.HasSuffix(path[len(path)-1], ".xml") {
		for d := xml.NewDecoder(strings.NewReader(string(text))); ; {
			_, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err)
		}
	}
	return string(text)
}

// requireOnce: a text has each of these once, and none of those.
func requireOnce(t *testing.T, text string, these, those []string) {
	t.Helper()
	for _, want := range these {
		assert.Equal(t, 1, strings.Count(text, want), want)
	}
	for _, not := range those {
		assert.NotContains(t, text, not)
	}
}

func TestActiveMQSettings(t *testing.T) {
	for name, c := range map[string]struct {
		options []ActiveMQOption
		want    []string // of activemq.xml
		not     []string
	}{
		"none": {
			want: []string{
				`<storeUsage limit="4 gb"/>`, `<memoryUsage percentOfJvmHeap="70"/>`, `sendFailIfNoSpace="false"`,
				`journalMaxFileLength="8mb"`, `schedulerSupport="false"`,
			},
		},
		"limits": {
			options: []ActiveMQOption{
				WithActiveMQSetting("storeUsage", "64 mb"), WithActiveMQSetting("memoryUsage", `2"0mb`),
				WithActiveMQSetting("sendFailIfNoSpace", "true"), WithActiveMQSetting("journalMaxFileLength", "32mb"),
				WithActiveMQSetting("schedulerSupport", "true"),
			},
			want: []string{
				`<storeUsage limit="64 mb"/>`, `<memoryUsage limit="2&#34;0mb"/>`, `sendFailIfNoSpace="true"`,
				`journalMaxFileLength="32mb"`, `schedulerSupport="true"`,
			},
			not: []string{"percentOfJvmHeap"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := &ActiveMQ{daemon: daemon{dir: t.TempDir()}, cfg: defaultActiveMQConfig()}
			for _, o := range c.options {
				o(&a.cfg)
			}
			require.NoError(t, a.writeConfig())
			requireOnce(t, readConfig(t, a.dir, "conf", "activemq.xml"), c.want, c.not)
		})
	}
}

func TestRocketMQProperties(t *testing.T) {
	r := &RocketMQ{daemon: daemon{dir: t.TempDir()}, cfg: defaultRocketConfig(), ports: rocketPorts{namesrv: 1000, broker: 2000}}
	for key, value := range map[string]string{
		"flushDiskType": "SYNC_FLUSH", "defaultTopicQueueNums": "3", "json": `{"a":"b c"}`, "storePathRootDir": "/elsewhere",
	} {
		WithRocketMQProperty(key, value)(&r.cfg)
	}
	require.NoError(t, r.writeConfig())
	lines := strings.Split(readConfig(t, r.dir, "broker.conf"), "\n")
	assert.Subset(t, lines, []string{
		"flushDiskType=SYNC_FLUSH", "defaultTopicQueueNums=3", `json={"a":"b c"}`, "storePathRootDir=/elsewhere", "listenPort=2000", "namesrvAddr=127.0.0.1:1000",
	})
	assert.NotContains(t, lines, "defaultTopicQueueNums=8", "a property is there once")
	assert.NotContains(t, readConfig(t, r.dir, "namesrv.conf"), "flushDiskType")
}

func TestRabbitMQSettings(t *testing.T) {
	r := &RabbitMQ{daemon: daemon{dir: t.TempDir()}, cfg: rabbitmqConfig{set: map[string]string{}}, ports: rabbitmqPorts{amqp: 1, stomp: 2}}
	for key, value := range map[string]string{
		"channel_max": "7", "disk_free_limit.absolute": "1GB", "default_vhost": "a b",
	} {
		WithRabbitMQSetting(key, value)(&r.cfg)
	}
	require.NoError(t, r.writeConfig())
	assert.Equal(t, `channel_max = 7
default_pass = admin
default_user = admin
default_vhost = a b
disk_free_limit.absolute = 1GB
listeners.tcp.1 = 127.0.0.1:1
log.connection.level = debug
log.console = true
log.console.level = info
log.file = false
stomp.listeners.tcp.1 = 127.0.0.1:2
vm_memory_high_watermark.absolute = 1GB
`, readConfig(t, r.dir, "rabbitmq.conf"))
}
