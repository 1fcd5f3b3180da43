//go:build unix

package brokertest

import (
	"encoding/json"
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

func TestArtemisSettings(t *testing.T) {
	for name, c := range map[string]struct {
		options []ArtemisOption
		want    []string // of broker.xml
		not     []string
	}{
		"none": {
			want: []string{
				"<persistence-enabled>true</", "<journal-type>NIO</", "<journal-datasync>true</", "<journal-file-size>10M</",
				"<global-max-messages>-1</", "<address-full-policy>PAGE</", "<page-size-bytes>10M</", "<max-size-bytes>-1</",
				"<max-size-messages>-1</",
			},
			not: []string{"global-max-size"},
		},
		"broker": {
			options: []ArtemisOption{
				WithArtemisSetting("persistence-enabled", "false"), WithArtemisSetting("journal-type", "MAPPED"),
				WithArtemisSetting("global-max-size", "100M"), WithArtemisSetting("global-max-messages", "7"),
				WithArtemisSetting("journal-datasync", "false"), WithArtemisSetting("journal-file-size", "1M"),
			},
			want: []string{
				"<persistence-enabled>false</", "<journal-type>MAPPED</", "<global-max-size>100M</", "<global-max-messages>7</",
				"<journal-datasync>false</", "<journal-file-size>1M</",
			},
		},
		"addresses": {
			options: []ArtemisOption{
				WithArtemisSetting("address-full-policy", "BLOCK"), WithArtemisSetting("max-size-bytes", "20M"),
				WithArtemisSetting("page-size-bytes", "2M"), WithArtemisSetting("max-size-messages", "9"),
			},
			want: []string{
				"<address-full-policy>BLOCK</", "<max-size-bytes>20M</", "<page-size-bytes>2M</", "<max-size-messages>9</",
			},
		},
		"pages below the limit": {
			options: []ArtemisOption{WithArtemisSetting("max-size-bytes", "100K")},
			want:    []string{"<max-size-bytes>100K</", "<page-size-bytes>51200</"},
		},
		"no limit": {
			options: []ArtemisOption{WithArtemisSetting("max-size-bytes", "-1")},
			want:    []string{"<max-size-bytes>-1</", "<page-size-bytes>10M</"},
		},
		"2.19": {
			options: []ArtemisOption{WithArtemis219(), WithArtemisSetting("global-max-size", "1G")},
			want:    []string{"<global-max-size>1G</"},
			not:     []string{"global-max-messages", "max-size-messages"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := &Artemis{daemon: daemon{dir: t.TempDir()}, cfg: defaultArtemisConfig()}
			for _, o := range c.options {
				o(&a.cfg)
			}
			require.NoError(t, a.cfg.validate())
			require.NoError(t, a.writeConfig())
			requireOnce(t, readConfig(t, a.dir, "etc", "broker.xml"), c.want, c.not)
		})
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
				`persistent="true"`, `<storeUsage limit="4 gb"/>`, `<tempUsage limit="2 gb"/>`, `<memoryUsage percentOfJvmHeap="70"/>`,
				`sendFailIfNoSpace="false"`, `journalMaxFileLength="8mb"`, `enableJournalDiskSyncs="true"`,
			},
			not: []string{"destinationPolicy"},
		},
		"limits": {
			options: []ActiveMQOption{
				WithActiveMQSetting("storeUsage", "64 mb"), WithActiveMQSetting("tempUsage", "1gb"),
				WithActiveMQSetting("memoryUsage", "20mb"), WithActiveMQSetting("sendFailIfNoSpace", "true"),
			},
			want: []string{
				`<storeUsage limit="64 mb"/>`, `<tempUsage limit="1gb"/>`, `<memoryUsage limit="20mb"/>`, `sendFailIfNoSpace="true"`,
			},
			not: []string{"percentOfJvmHeap"},
		},
		"flow control": {
			options: []ActiveMQOption{WithActiveMQSetting("producerFlowControl", "false")},
			want: []string{
				`<policyEntry queue="&gt;" producerFlowControl="false"/>`, `<policyEntry topic="&gt;" producerFlowControl="false"/>`,
			},
		},
		"memory of one destination": {
			options: []ActiveMQOption{WithActiveMQSetting("memoryLimit", "1mb")},
			want:    []string{`<policyEntry queue="&gt;" producerFlowControl="true" memoryLimit="1mb"/>`},
		},
		"persistence": {
			options: []ActiveMQOption{
				WithActiveMQSetting("persistent", "false"), WithActiveMQSetting("journalMaxFileLength", "32mb"),
				WithActiveMQSetting("enableJournalDiskSyncs", "false"),
			},
			want: []string{`persistent="false"`, `journalMaxFileLength="32mb"`, `enableJournalDiskSyncs="false"`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := &ActiveMQ{daemon: daemon{dir: t.TempDir()}, cfg: defaultActiveMQConfig()}
			for _, o := range c.options {
				o(&a.cfg)
			}
			require.NoError(t, a.cfg.validate())
			require.NoError(t, a.writeConfig())
			requireOnce(t, readConfig(t, a.dir, "conf", "activemq.xml"), c.want, c.not)
		})
	}
}

func TestRocketMQProperties(t *testing.T) {
	r := &RocketMQ{daemon: daemon{dir: t.TempDir()}, cfg: defaultRocketConfig(), ports: rocketPorts{namesrv: 1000, broker: 2000}}
	for key, value := range map[string]string{
		"flushDiskType": "SYNC_FLUSH", "defaultTopicQueueNums": "3", "json": `{"a":"b c"}`, "a b=c": " x\nlistenPort=1",
		"back": `\`, "letter": "ü😀", "storePathRootDir": "/elsewhere",
	} {
		WithRocketMQProperty(key, value)(&r.cfg)
	}
	require.NoError(t, r.cfg.validate())
	require.NoError(t, r.writeConfig())
	lines := strings.Split(readConfig(t, r.dir, "broker.conf"), "\n")
	assert.Subset(t, lines, []string{
		"flushDiskType=SYNC_FLUSH", "defaultTopicQueueNums=3", `json={"a":"b c"}`, `a\ b\=c=\ x\u000alistenPort=1`,
		`back=\\`, `letter=\u00fc\ud83d\ude00`, "storePathRootDir=/elsewhere", "listenPort=2000", "namesrvAddr=127.0.0.1:1000",
	})
	assert.NotContains(t, lines, "listenPort=1")
	assert.NotContains(t, lines, "defaultTopicQueueNums=8", "a property is there once")
	assert.NotContains(t, readConfig(t, r.dir, "namesrv.conf"), "flushDiskType")
}

func TestRabbitMQSettings(t *testing.T) {
	r := &RabbitMQ{daemon: daemon{dir: t.TempDir()}, cfg: rabbitmqConfig{set: map[string]string{}}, ports: rabbitmqPorts{amqp: 1, stomp: 2}}
	for key, value := range map[string]string{
		"channel_max": "7", "vm_memory_high_watermark.relative": "0.4", "disk_free_limit.absolute": "1GB", "default_vhost": "a b",
	} {
		WithRabbitMQSetting(key, value)(&r.cfg)
	}
	require.NoError(t, r.cfg.validate())
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
vm_memory_high_watermark.relative = 0.4
`, readConfig(t, r.dir, "rabbitmq.conf"))
}

func TestQpidContext(t *testing.T) {
	q := &Qpid{daemon: daemon{dir: t.TempDir()}, cfg: qpidConfig{context: map[string]string{}}}
	hostile := `1", "modelVersion": "0`
	WithQpidContext("broker.flowToDiskThreshold", "1000000")(&q.cfg)
	WithQpidContext(hostile, hostile)(&q.cfg)
	require.NoError(t, q.writeConfig())
	var got struct {
		ModelVersion string
		Context      map[string]string
	}
	require.NoError(t, json.Unmarshal([]byte(readConfig(t, q.configFile())), &got))
	assert.Equal(t, "9.0", got.ModelVersion)
	assert.Equal(t, map[string]string{"broker.flowToDiskThreshold": "1000000", hostile: hostile}, got.Context)
}

// TestRefusedSettings goes through the launches: a setting that is refused starts nothing and fetches nothing.
func TestRefusedSettings(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv("JAVA_HOME", "")
	artemis := func(opts ...ArtemisOption) error { _, err := LaunchArtemis(t.Context(), opts...); return err }
	classic := func(key, value string) error {
		_, err := LaunchActiveMQ(t.Context(), WithActiveMQSetting(key, value))
		return err
	}
	rocket := func(o RocketMQOption) error { _, err := LaunchRocketMQ(t.Context(), o); return err }
	rabbit := func(key, value string) error {
		_, err := LaunchRabbitMQ(t.Context(), WithRabbitMQSetting(key, value))
		return err
	}
	for want, err := range map[string]error{
		`no setting "max-size-byte" (did you mean max-size-bytes?): use one of address-full-policy, max-size-bytes, `: artemis(
			WithArtemisSetting("max-size-byte", "1")),
		`setting address-full-policy="fail": use PAGE or BLOCK or FAIL or DROP`: artemis(WithArtemisSetting("address-full-policy", "fail")),
		`setting journal-type="NIO</journal-type>": use NIO or`:                 artemis(WithArtemisSetting("journal-type", "NIO</journal-type>")),
		`setting max-size-bytes="10 mb": use a number of bytes`:                 artemis(WithArtemisSetting("max-size-bytes", "10 mb")),
		`setting max-size-messages="-2": use a number`:                          artemis(WithArtemisSetting("max-size-messages", "-2")),
		`setting max-size-messages: the older version`:                          artemis(WithArtemis219(), WithArtemisSetting("max-size-messages", "1")),
		`page-size-bytes=1M is not below max-size-bytes=1024K`: artemis(
			WithArtemisSetting("max-size-bytes", "1024K"), WithArtemisSetting("page-size-bytes", "1M")),
		`option "org.Evil" of the JVM does not begin with -`:           artemis(WithJavaOptions("-Xmx1G", "org.Evil")),
		`no setting "storeUsag" (did you mean storeUsage?): use one`:   classic("storeUsag", "1gb"),
		`setting storeUsage="1\"/><x a=\"": use a number of bytes`:     classic("storeUsage", `1"/><x a="`),
		`setting storeUsage="9223372036854775807 gb": use a number`:    classic("storeUsage", "9223372036854775807 gb"),
		`setting persistent="yes": use true or false`:                  classic("persistent", "yes"),
		`storeUsage (1048576 bytes) is below journalMaxFileLength`:     classic("storeUsage", "1mb"),
		`property listenPort is not for setting`:                       rocket(WithRocketMQProperty("listenPort", "1")),
		`option "x" of the JVM`:                                        rocket(WithRocketMQJavaOptions("x")),
		`setting listeners.tcp.default is not for setting`:             rabbit("listeners.tcp.default", "5672"),
		`setting log.console.level is not for setting`:                 rabbit("log.console.level", "error"),
		`setting channel_max: "1\nlisteners.tcp.2 = 5" cannot be writ`: rabbit("channel_max", "1\nlisteners.tcp.2 = 5"),
		`setting default_vhost: "a # b" cannot be written`:             rabbit("default_vhost", "a # b"),
		`setting heartbeat: "" cannot be written`:                      rabbit("heartbeat", ""),
		`"a = b" cannot be a key of rabbitmq.conf`:                     rabbit("a = b", "1"),
	} {
		require.ErrorContains(t, err, want)
	}
	_, err := LaunchQpid(t.Context(), WithQpidJavaOptions("x"))
	require.ErrorContains(t, err, `option "x" of the JVM`)
}

func TestJavaOptions(t *testing.T) {
	own := []string{"-XX:+UseG1GC", "-Xms512M", "-Xmx512M", "-Dours=1"}
	for _, c := range []struct{ extra, want string }{
		{"", "-XX:+UseG1GC -Xms512M -Xmx512M -Dours=1"},
		{"-Dx=1 -Dours=2", "-XX:+UseG1GC -Xms512M -Xmx512M -Dours=1 -Dx=1 -Dours=2"},
		{"-Xmx160m", "-XX:+UseG1GC -Dours=1 -Xmx160m"},
		{"-XX:MaxRAMPercentage=50", "-XX:+UseG1GC -Dours=1 -XX:MaxRAMPercentage=50"},
		{"-XX:+UseZGC -XX:+UseStringDeduplication", "-Xms512M -Xmx512M -Dours=1 -XX:+UseZGC -XX:+UseStringDeduplication"},
	} {
		assert.Equal(t, c.want, strings.Join(javaOptions(own, strings.Fields(c.extra)), " "), c.extra)
	}
	assert.Equal(t, "-XX:+UseG1GC", own[0], "not changed")

	// They are options of the JVM: before the class or the archive that it runs.
	options := []string{"-Xmx160m", "-Dmark"}
	a := &Artemis{cfg: defaultArtemisConfig()}
	WithJavaOptions(options...)(&a.cfg)
	m := &ActiveMQ{cfg: defaultActiveMQConfig()}
	WithActiveMQJavaOptions(options...)(&m.cfg)
	for end, args := range map[string][]string{"-classpath": a.javaArgs(), "-jar": m.javaArgs()} {
		text := strings.Join(args, " ")
		assert.NotContains(t, text, "-Xmx512M")
		before, _, found := strings.Cut(text, " "+end+" ")
		require.True(t, found)
		assert.Contains(t, before, "-Xmx160m -Dmark")
	}
}
