package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/pkg/result"
)

// folder makes a folder with bodies and a scenario, and returns the path of the scenario.
func folder(t *testing.T, text string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string]string{
		"bodies/b.txt": "body b", "bodies/a.xml": "<a/>", "bodies/.hidden": "hidden", "bodies/sub/c": "c", "one/only": "the only one",
		"mixed.yaml": text,
	} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o750))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	require.NoError(t, os.Mkdir(filepath.Join(dir, "empty"), 0o750))
	return filepath.Join(dir, "mixed.yaml")
}

const mixed = `name: mixed
verify: true
broker: {protocol: mem}
groups:
  senders:
    role: producer
    destination: queue://A
    producers: 3
    message-count: 2000
    property: {run: a}
    message-size: 2KiB
    fill: compressible
    messages:
      - {weight: 80, message-size: 1KiB}
      - {weight: 15, message-size: 64KiB, properties: {kind: large}, priority: 7, fill: zeros}
      - {weight: 4, body-file: bodies/b.txt, group: files}
      - priority: 1
  turns: {role: producer, destination: queue://A, message-count: 60, messages: [{message-size: 1}, {body-file: bodies/a.xml}, {body-file: bodies/b.txt}]}
  readers: {role: consumer, destination: queue://A}
thresholds: [lost == 0, received == 2060]
until: drained
`

func TestMixedScenario(t *testing.T) {
	t.Parallel()
	file := folder(t, mixed)
	got := call(nil, "run", "--dry-run", file)
	require.Equal(t, result.StatusOK, got.status, got.stderr)
	golden(t, "dry-run-messages.txt", strings.ReplaceAll(got.stdout, filepath.Dir(file), "DIR"))
	dir := filepath.Join(t.TempDir(), "result")
	got = call(nil, "run", file, "--result", dir)
	require.Equal(t, result.StatusOK, got.status, got.stderr)
	r := musttest.Get(result.Read(dir))(t)
	require.EqualValues(t, 2060, r.Verification.Total.Once)
	require.Zero(t, r.Verification.Total.Damaged)
	var data struct {
		Steps []struct {
			Groups []struct{ Messages []json.RawMessage }
		}
	}
	require.NoError(t, json.Unmarshal(r.Plan, &data))
	require.Len(t, data.Steps[0].Groups[0].Messages, 4)
	require.JSONEq(t, `{"weight": 15, "message-size": 65536, "fill": "zeros", "priority": 7, "property": {"kind": "large", "run": "a"}}`,
		string(data.Steps[0].Groups[0].Messages[1]))
	require.Regexp(t, `"body": {\s+"bytes": 6,\s+"crc32c": "[0-9a-f]{8}"`, string(data.Steps[0].Groups[0].Messages[2]))
	got = call(nil, "run", file, "-o", "damage=10", "-o", "lose=30", "--drain-timeout", "2s")
	require.Equal(t, result.StatusFailed, got.status)
	require.Contains(t, got.stdout+got.stderr, "messages damaged: ")
	require.Contains(t, got.stdout+got.stderr, "messages lost, ")
}

// A message of a scenario may have a template, beside others; it replaces the group's, and a flag replaces all.
func TestTemplates(t *testing.T) {
	t.Parallel()
	file := folder(t, `name: templates
seed: 7
verify: true
broker: {protocol: mem}
groups:
  one: {role: producer, destination: queue://A, message-count: 100, body-template: bodies/b.txt}
  two:
    role: producer
    destination: queue://A
    message-count: 300
    message-size: 7
    fill: zeros
    messages: [{priority: 4}, {group: g, body-template: bodies/b.txt}, {body-file: bodies/a.xml}]
  three: {role: producer, destination: queue://A, message-count: 20, body-template: bodies/b.txt, messages: [{priority: 4}, {message-size: 3}]}
  readers: {role: consumer, destination: queue://A}
until: drained
`)
	dir := filepath.Dir(file)
	require.NoError(t, os.WriteFile(dir+"/bodies/b.txt", []byte(`{"id": "{{uuid}}", "n": {{seq}}}`), 0o600))
	got := call(nil, "run", file, "--dry-run")
	require.Equal(t, result.StatusOK, got.status, got.stderr)
	text := strings.ReplaceAll(got.stdout, dir, "DIR")
	for _, want := range []string{
		"message-count: 100\n    max-pending: 1\n    body-template: DIR/bodies/b.txt\n",
		"- message-size: 7\n        fill: zeros\n        priority: 4\n      - body-template: DIR/bodies/b.txt\n        group: g\n      - body-file: DIR/bodies/a.xml\n",
		"- body-template: DIR/bodies/b.txt\n        priority: 4\n      - message-size: 3\n", "seed: 7\n",
	} {
		require.Contains(t, text, want)
	}
	got = call(nil, "run", file, "--result", dir+"/result")
	require.Equal(t, result.StatusOK, got.status, got.stderr)
	r := musttest.Get(result.Read(dir + "/result"))(t)
	require.EqualValues(t, 420, r.Verification.Total.Once)
	require.Contains(t, string(r.Plan), `"body-template"`)
	require.Regexp(t, `"body": {\s+"bytes": 73,\s+"crc32c": "[0-9a-f]{8}"`, string(r.Plan))
	got = call(nil, "run", file, "-o", "damage=2", "--result", dir+"/damaged")
	require.Equal(t, result.StatusFailed, got.status)
	require.EqualValues(t, 210, musttest.Get(result.Read(dir+"/damaged"))(t).Verification.Total.Damaged)
	for _, c := range []struct{ flags, want string }{
		{"--message-size 5KiB", "message-size: 5120\n"},
		{"--body-file " + dir + "/bodies/a.xml", "body-file: DIR/bodies/a.xml\n"},
		{"--body-template " + dir + "/t", "body-template: DIR/t\n"},
	} {
		require.NoError(t, os.WriteFile(dir+"/t", []byte("{{now}}"), 0o600))
		got := call(nil, append([]string{"run", file, "--dry-run"}, strings.Fields(c.flags)...)...)
		require.Equal(t, result.StatusOK, got.status, got.stderr)
		text := strings.ReplaceAll(got.stdout, dir, "DIR")
		require.NotContains(t, text, "b.txt")
		require.Contains(t, text, c.want)
	}
	require.NoError(t, os.WriteFile(dir+"/bodies/b.txt", []byte("{\n  {{uid}}"), 0o600))
	got = call(nil, "run", file)
	require.Equal(t, result.StatusUsage, got.status)
	require.Contains(t, strings.ReplaceAll(got.stderr, dir, "DIR"), `DIR/mixed.yaml:6:3: group one: body-template: DIR/bodies/b.txt:2:3: there is no field "uid"`)
	require.Contains(t, got.stderr, "did you mean uuid?")
}

// Flags apply to each message of a scenario.
func TestFlagsOverMessages(t *testing.T) {
	for _, c := range []struct {
		environ, args string
		want, without []string
	}{
		{"", "", []string{"- weight: 80\n        message-size: 1024\n", "- weight: 4\n        body-file: DIR/bodies/b.txt\n", "- message-size: 1\n"}, nil},
		{"", "--message-size 5KiB", []string{"- weight: 80\n        message-size: 5120\n        fill: compressible\n", "- weight: 4\n        message-size: 5120\n        fill: comp"}, []string{"bodies", "65536"}},
		{"PERFMQ_MESSAGE_SIZE=5KiB", "", []string{"- weight: 80\n        message-size: 5120\n        fill: compressible\n"}, []string{"bodies", "65536"}},
		{"", "--body-file one", []string{"- weight: 80\n        body-file: one/only\n"}, []string{"65536"}},
		{"", "--fill zeros", []string{"- weight: 80\n        message-size: 1024\n        fill: zeros\n", "- weight: 1\n        message-size: 2048\n        fill: zeros\n"}, []string{"bodies"}},
		{"", "--priority 3", []string{"priority: 3"}, []string{"priority: 7", "priority: 1"}},
		{"", "--property more=b", []string{"property:\n          run: a\n          kind: large\n          more: b\n"}, nil},
	} {
		t.Run(c.environ+c.args, func(t *testing.T) {
			file := folder(t, mixed)
			args := strings.Fields(strings.ReplaceAll(c.args, "one", filepath.Join(filepath.Dir(file), "one")))
			got := call(strings.Fields(c.environ), append([]string{"run", "--dry-run", file}, args...)...)
			require.Equal(t, result.StatusOK, got.status, got.stderr)
			text := strings.ReplaceAll(got.stdout, filepath.Dir(file)+"/one", "one")
			text = strings.ReplaceAll(text, filepath.Dir(file), "DIR")
			for _, want := range c.want {
				require.Contains(t, text, want)
			}
			for _, without := range c.without {
				require.NotContains(t, text, without)
			}
		})
	}
}

// Mistakes have the positions of their messages, and are reported together.
func TestMistakesOfMessages(t *testing.T) {
	file := folder(t, `broker: {protocol: mem}
groups:
  senders:
    role: producer
    destination: queue://A
    message-count: 1
    body-file: bodies/a.xml
    messages:
      - {message-size: 1KiB, body-file: bodies/a.xml}
      - {body-file: bodies/a.xml, fill: zeros}
      - {fill: zeros}
      - {body-file: bodies/none}
      - {body-file: empty}
      - {message-size: 1KiB, property: {time: 5}}
  shares:
    role: producer
    destination: queue://A
    messages: [{weight: 1000000, message-size: 1}, {weight: 999999, message-size: 2}]
  many:
    role: producer
    destination: queue://A
    messages: [{message-size: "1/499:2/500"}, {message-size: "1/500:2/501"}]
  memory:
    role: producer
    destination: queue://A
    messages: [{message-size: 600MiB}, {message-size: 500MiB}]
`)
	got := call(nil, "run", file)
	require.Equal(t, result.StatusUsage, got.status)
	golden(t, "mistakes-messages.txt", strings.ReplaceAll(got.stderr, filepath.Dir(file), "DIR"))
}

// The type of messages belongs to a group or to one of its messages. The default, bytes, is neither printed nor in the
// plan's data.
func TestMessageType(t *testing.T) {
	dir := t.TempDir()
	utf8, latin, nul := filepath.Join(dir, "utf8"), filepath.Join(dir, "latin"), filepath.Join(dir, "nul")
	for name, body := range map[string]string{utf8: "grün", latin: "gr\xfcn", nul: "a\x00b"} {
		require.NoError(t, os.WriteFile(name, []byte(body), 0o600))
	}
	const stomp = "error: --message-type text: the body has a NUL, which ends a text of STOMP: "
	for _, c := range []struct {
		args   string
		stdout string // with --dry-run
		stderr string
	}{
		{"amqp producer --message-type text", "  message-size: 1024\n  message-type: text\n", ""},
		{"stomp producer --message-type text --message-size 1:2:3", "  messages:\n    - message-size: 1\n      message-type: text\n", ""},
		{"rocketmq producer --message-type bytes", "  message-size: 1024\n", ""},
		{"amqp client --message-type text --fill zeros --message-size 5", "  message-size: 5\n  fill: zeros\n  message-type: text\n", ""},
		{"amqp client --message-type text --body-file " + nul, "  body-file: " + nul + "\n  message-type: text\n", ""},
		{"stomp client --message-type text --body-file " + utf8, "  body-file: " + utf8 + "\n  message-type: text\n", ""},
		{"stomp client --message-type bytes --body-file " + latin, "  body-file: " + latin + "\n", ""},
		{"amqp producer --message-type text --body-file " + latin, "", "error: --message-type text: the body is not UTF-8: " + latin + ", 4 bytes"},
		{"stomp producer --message-type text --body-file " + nul, "", stomp + nul + ", 3 bytes"},
		{"stomp producer --message-type text --fill zeros --message-size 5", "", stomp + "5 bytes of zeros"},
		{
			"amqp client --embedded --consumer-protocol stomp --message-type text --fill zeros --message-size 5", "",
			stomp + "5 bytes of zeros\nhint: --message-type bytes sends any body\n",
		},
		{
			"rocketmq producer --message-type text", "",
			"error: --message-type text: Apache RocketMQ (remoting) does not support that\nhint: leave --message-type text out\n",
		},
		{"amqp producer --message-type txt", "", "must be one of bytes, text"},
	} {
		t.Run(strings.ReplaceAll(c.args, dir, ""), func(t *testing.T) {
			got := callReal(append(strings.Fields(c.args), "queue://A", "--dry-run")...)
			want := result.StatusOK
			if c.stderr != "" {
				want = result.StatusUsage
			}
			require.Equal(t, want, got.status, got.stderr)
			require.Contains(t, got.stdout, c.stdout)
			require.Contains(t, got.stderr, c.stderr)
		})
	}
}

// Properties have fields, too: of a group, and of a kind of messages, which may have others. Consumers select by them.
func TestPropertyFields(t *testing.T) {
	t.Parallel()
	file := folder(t, `name: properties
seed: 7
verify: true
broker: {protocol: mem}
groups:
  senders:
    role: producer
    destination: queue://A
    message-count: 300
    property: {order: "{{int 3 3}}", kind: '{{pick "new" "paid"}}'}
    messages: [{priority: 4}, {property: {kind: "late{{int 1 1}}"}}, {property: {kind: plain, order: "4"}}]
  three: {role: consumer, destination: queue://A, selector: "order = '3'"}
  four: {role: consumer, destination: queue://A, selector: "order = '4'"}
until: drained
`)
	got := call(nil, "run", file, "--dry-run")
	require.Equal(t, result.StatusOK, got.status, got.stderr)
	for _, part := range []string{
		"order: '{{int 3 3}}'", `kind: '{{pick "new" "paid"}}'`, "kind: late{{int 1 1}}", "kind: plain",
	} {
		require.Contains(t, strings.ReplaceAll(got.stdout, `"`+part[strings.Index(part, ": ")+2:]+`"`, part), part, got.stdout)
	}
	dir := filepath.Join(t.TempDir(), "result")
	got = call(nil, "run", file, "--result", dir)
	require.Equal(t, result.StatusOK, got.status, got.stderr)
	received := map[string]uint64{}
	for _, g := range musttest.Get(result.Read(dir))(t).Steps[0].Groups {
		if g.Counts.Consumers != nil {
			received[g.Name] = g.Counts.Consumers.Received
		}
	}
	require.Equal(t, map[string]uint64{"three": 200, "four": 100}, received)
}
