package scenario

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

const minimal = "broker: {protocol: amqp}\ngroups: {senders: {role: producer}}\n"

func TestSkeleton(t *testing.T) {
	t.Parallel()
	f, err := Parse("new.yaml", Skeleton(), settingsTable(), map[string]string{"size": "4KiB"})
	require.NoError(t, err)
	require.Len(t, f.Groups, 2)
	require.Len(t, f.Steps, 2)
	require.Len(t, f.Thresholds, 1)
	require.Equal(t, []string{"4KiB"}, f.Groups[0].Entries[2].Texts)
	Skeleton()[0] = 'x'
	require.Equal(t, byte('#'), Skeleton()[0])
}

// TestLimits: what would take long, or much memory, is refused.
func TestLimits(t *testing.T) {
	t.Parallel()
	many := func(format string, n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
	for name, c := range map[string]struct{ text, want string }{
		"size":              {minimal + strings.Repeat("#", MaxSize), "larger than 1048576 bytes"},
		"nodes":             {minimal + "before: [" + strings.Repeat("a,", 220_000) + "a]\n", "more than 200000 values"},
		"flow":              {strings.Repeat("[", 500_000), "deeper than 32 levels"},
		"flow maps":         {strings.Repeat("{a: ", 200_000), "deeper than 32 levels"},
		"block":             {strings.Repeat("- ", 500_000), "deeper than 32 levels"},
		"questions":         {strings.Repeat("? ", 500_000), "deeper than 32 levels"},
		"groups":            {"broker: {}\ngroups: {" + many("a%d: {role: producer}, ", 300) + "}\n", "more than 256 groups"},
		"brokers":           {"groups: {a: {role: producer}}\nbrokers: {" + many("a%d: {protocol: amqp}, ", 300) + "}\n", "more than 256 brokers"},
		"steps":             {minimal + "steps:\n" + many("- name: a%d\n", 1100), "more than 1024 steps"},
		"messages":          {strings.Replace(minimal, "producer", "producer, messages: ["+many("{weight: 1%d}, ", 1025)+"]", 1), "there are 1025 messages: at most 1024"},
		"unknown keys":      {minimal + many("key%d: 1\n", 80_000), "and 170 more"},
		"one line":          {"{" + many(`"key%d": 1, `, 60_000) + `"broker": {}}`, "and 170 more"},
		"undefined":         {minimal + "before: [" + many(`"${a%d}", `, 80_000) + "x]\n", "and 170 more"},
		"undefined in one":  {minimal + "before: '" + many("${a%d}", 8_000) + "'\n", "and 170 more"},
		"secrets":           {"{" + many(`"password%d": "x", `, 40_000) + "}", "more than 50 passwords"},
		"secrets on lines":  {minimal + many("password%d: 'secret%[1]d'\n", 30_000), "more than 50 passwords"},
		"broken characters": {strings.Repeat("\xff\n", 500_000), "and 170 more"},
		"text by aliases":   {minimal + "name: &a " + strings.Repeat("x", 60_000) + "\nbefore: [" + strings.Repeat("*a,", 100_000) + "x]\n", "more than 200000 values, or 4194304 bytes"},
		"relative": {
			minimal + "steps:\n" + many("- name: a%d\n", 1000) + "- groups: {senders: {rate: '" + strings.Repeat("5% of a.b.c.d ", 4000) + "'}}\n",
			"names no step",
		},
	} {
		_, err := Parse("x.yaml", []byte(c.text), settingsTable(), nil)
		require.ErrorContains(t, err, c.want, name)
		require.Less(t, len(err.Error()), 100_000, name)
	}
}

// TestMistake: the caller's mistakes look like ours, and hold no secret either.
func TestMistake(t *testing.T) {
	t.Parallel()
	f, err := Parse("a\x1b.yaml", []byte("broker: {url: 'amqp://a:hunter2@b', protocol: amqp, password: hunter3}\ngroups: {senders: {role: producer}}\n"), settingsTable(), nil)
	require.NoError(t, err)
	e := f.Brokers[0].Entries[1]
	require.Equal(t, "protocol", e.Key)
	require.Equal(t, []string{"hunter2", "hunter3"}, f.Secrets())
	m := f.Mistake(e.Pos, "hunter3 and amqp://a:hunter2@b do not fit\x07", "leave hunter3 out")
	require.Equal(t, `a\x1b.yaml:1:47: *** and amqp://a@b do not fit\x07
    1 | broker: {url: 'amqp://a@b', protocol: amqp, password: ***
      |                                       ^
  hint: leave *** out
`, m.String())
	require.Equal(t, m.String(), Mistakes{m}.Error()+"\n")
	require.NotPanics(t, func() { f.Mistake(Pos{"x", 99, 99}, "a", ""); f.Mistake(Pos{}, "a", "") })
}

// TestSecretValues: the value of a secret setting is in no message, however it is written.
func TestSecretValues(t *testing.T) {
	t.Parallel()
	for _, broker := range []string{
		"{password: hunter2, ulr: x}", "{ulr: x, password: 'hun''ter2'}", `{"password": "hunter2", ulr: x}`, "{password: [hunter2], ulr: hunter2}",
		"\n  password: hunter2\n  ulr: hunter2", "\n  password:\n    hunter2\n    more\n  ulr: 5", "\n  password: >\n    hunter2\n\n    hunter2\n  ulr: 5",
		"\n  password: &p hunter2\n  ulr: *p", "\n  ? password\n  : hunter2\n  ulr: hunter2", "{password: {a: hunter2}, ulr: 5}",
		`{"p\x61ssword": hunter2, ulr: hunter2}`, "{PASSWORD: hunter2}", "{pasword: hunter2}", "{my-secret: hunter2}", "{password : hunter2, ulr: 5}",
		"\n  password: \"hunter2\n  ulr: x", "\n  password: 'hunter2\n\nulr: x", "\n  password: hunter2: 5", "\n  password:hunter2\n  ulr: 5",
		"{password: hunter2", "\n  password: |\n    hunter2\n   bad\n  ulr: 5", "{url: 'amqp://a:hunter2@h', ulr: 'amqp://a:hunter2@h'}",
		"{user: 'me:hunter2', ulr: hunter2}", "\n  user: me:hunter2: 5", "{option: {password: hunter2}, ulr: hunter2}",
		"{option: ['password=hunter2'], ulr: x}", "\n  password: hunter2\t\n\tulr: x", "{password: \"hunter2\" , secret: hunter2, ulr: 5}",
		"{password: *hunter2, ulr: x}", "\n  password: *hunter2", "\n  password: !hunter2 x", "{password: &hunter2 , ulr: *hunter3}",
	} {
		text := "broker: " + broker + "\ngroups: {senders: {role: producer, credit: 5}}\n"
		_, err := Parse("x.yaml", []byte(text), settingsTable(), nil)
		require.Error(t, err, broker)
		require.NotContains(t, err.Error(), "ter2", broker)
		require.NotContains(t, err.Error(), "more", broker)
	}
}

func TestShipped(t *testing.T) {
	t.Parallel()
	fsys := fstest.MapFS{
		"artemis/latency.yaml": {Data: []byte(minimal + "description: >\n  how\n  long\n")},
		"smoke/amqp.yaml":      {Data: []byte(minimal)},
		"smoke/stomp.yaml":     {Data: []byte(minimal)},
		"embed.go":             {Data: []byte("package scenarios")},
	}
	list, err := Shipped(fsys)
	require.NoError(t, err)
	require.Equal(t, []Info{
		{"artemis/latency", "artemis/latency.yaml", "how long"}, {"smoke/amqp", "smoke/amqp.yaml", ""}, {"smoke/stomp", "smoke/stomp.yaml", ""},
	}, list)
	for _, name := range []string{"@artemis/latency", "artemis/latency", "@artemis/latency.yaml"} {
		info, text, err := Open(fsys, name)
		require.NoError(t, err)
		require.Equal(t, list[0], info)
		require.Equal(t, fsys["artemis/latency.yaml"].Data, text)
	}
	require.True(t, IsShipped("@a"))
	require.False(t, IsShipped("a@"))
	for name, hint := range map[string]string{
		"@artemis/latncy": "did you mean @artemis/latency?", "@latency": "did you mean @artemis/latency?",
		"@smoke": "did you mean @smoke/amqp or @smoke/stomp?", "@xyz": "perfmq scenario list shows all", "@": "perfmq scenario list shows all",
		"@../secret": "perfmq scenario list shows all",
	} {
		_, _, err := Open(fsys, name)
		var ue *UnknownError
		require.ErrorAs(t, err, &ue, name)
		require.Equal(t, hint, ue.Hint, name)
	}
	fsys["bad.yaml"] = &fstest.MapFile{Data: []byte("a: [")}
	_, err = Shipped(fsys)
	var mistakes Mistakes
	require.ErrorAs(t, err, &mistakes)
	require.ErrorContains(t, err, "bad.yaml:1:5")
	_, err = Shipped(broken{fsys})
	require.ErrorIs(t, err, fs.ErrPermission)
}

// broken is a file system whose files cannot be opened.
type broken struct{ fs.FS }

func (b broken) Open(name string) (fs.File, error) {
	if strings.HasSuffix(name, ".yaml") {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	return b.FS.Open(name)
}

func TestScopes(t *testing.T) {
	t.Parallel()
	require.Equal(t, "a producer group or a step", (InProducerGroup | InStep).String())
	for _, s := range scopes() {
		require.NotEmpty(t, s.String())
	}
	table := newTable([]Key{
		{Name: "rate", Scopes: InProducerGroup}, {Name: "rate", Scopes: InConsumerGroup, Switch: true}, {Name: "property", List: true, Scopes: InStep},
	})
	require.False(t, table.find("rate", InProducerGroup).Switch)
	require.True(t, table.find("rate", InConsumerGroup).Switch)
	require.Nil(t, table.find("rate", InStep))
	require.NotNil(t, table.find("properties", InStep))
	require.Equal(t, InProducerGroup|InConsumerGroup, table.places("rate"))
}

// TestCheckErrors: an error of a Check is shown as it is.
func TestCheckErrors(t *testing.T) {
	t.Parallel()
	table := append(settingsTable(), Key{Name: "odd", Scopes: InRun, Check: func(text string) error { return errors.New("is\x1b not even: " + text) }})
	_, err := Parse("x.yaml", []byte(minimal+"odd: 3\n"), table, nil)
	require.ErrorContains(t, err, `x.yaml:3:6: odd: is\x1b not even: 3`)
}
