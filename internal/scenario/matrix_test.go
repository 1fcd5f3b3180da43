package scenario

import (
	"testing"

	"github.com/stretchr/testify/require"
)

const varied = `
vars: {size: 64}
labels: {heap: 1g, os: any}
broker: {protocol: amqp, options: {queues: 4, tag: x}}
defaults: {warmup: 1s}
groups:
  senders: {role: producer, destination: queue://A, message-size: "${size}", producers: 2}
  others: {role: producer, destination: queue://A}
  readers: {role: consumer, destination: queue://A}
steps:
  - {name: one, duration: 5s}
  - {name: two, duration: 6s, groups: {senders: {producers: 3}, others: , readers: }}
matrix:
`

// TestWith: a value of an axis is where the file has the setting, or, if it has it nowhere, wherever it may be; the
// file itself stays.
func TestWith(t *testing.T) {
	t.Parallel()
	texts := func(list []Entry, key string) (all []string) {
		for _, e := range list {
			if e.Key == key {
				all = append(all, e.Texts...)
			}
		}
		return all
	}
	for axis, check := range map[string]func(f *File){
		"senders.producers": func(f *File) {
			require.Equal(t, []string{"9"}, texts(f.Groups[0].Entries, "producers"))
			require.Equal(t, []string{"9"}, texts(f.Steps[1].Uses[0].Entries, "producers"))
			require.Empty(t, texts(f.Groups[1].Entries, "producers"))
		},
		"producers": func(f *File) {
			require.Equal(t, []string{"9"}, texts(f.Groups[0].Entries, "producers"))
			require.Equal(t, []string{"9"}, texts(f.Steps[1].Uses[0].Entries, "producers"))
			require.Empty(t, texts(f.Groups[1].Entries, "producers"), "the file gives it none")
		},
		"max-pending": func(f *File) {
			require.Equal(t, []string{"9"}, texts(f.Groups[0].Entries, "max-pending"))
			require.Equal(t, []string{"9"}, texts(f.Groups[1].Entries, "max-pending"))
			require.Empty(t, texts(f.Groups[2].Entries, "max-pending"))
			require.Empty(t, texts(f.Steps[1].Uses[0].Entries, "max-pending"))
		},
		"readers.credit": func(f *File) { require.Equal(t, []string{"9"}, texts(f.Groups[2].Entries, "credit")) },
		"threads":        func(f *File) { require.Equal(t, []string{"9"}, texts(f.Settings, "threads")) },
		"options.queues": func(f *File) {
			require.Equal(t, []string{"queues=4", "tag=x", "queues=9"}, texts(f.Brokers[0].Entries, "option"))
		},
		"broker.option.queues": func(f *File) {
			require.Equal(t, []string{"queues=4", "tag=x", "queues=9"}, texts(f.Brokers[0].Entries, "option"))
		},
		"heap": func(f *File) {
			require.Equal(t, "os any, heap 9", f.Labels[0].Key+" "+f.Labels[0].Text+", "+f.Labels[1].Key+" "+f.Labels[1].Text)
		},
		"label.gc": func(f *File) { require.Equal(t, "9", f.Labels[2].Text) },
	} {
		f, err := Parse("x.yaml", []byte(varied+"  "+axis+": [8, 9]\n"), settingsTable(), nil)
		require.NoError(t, err, axis)
		before, err := Parse("x.yaml", []byte(varied+"  "+axis+": [8, 9]\n"), settingsTable(), nil)
		require.NoError(t, err)
		check(f.With(f.Matrix.Axes, map[string]string{axis: "9"}))
		before.source, f.source = nil, nil
		require.Equal(t, before.Groups, f.Groups, "the file is as it was")
		require.Equal(t, before.Brokers, f.Brokers)
		require.Equal(t, before.Steps, f.Steps)
		require.Equal(t, before.Labels, f.Labels)
	}
	f, err := Parse("x.yaml", []byte(varied+"  one.duration: [8s, 9s]\n  warmup: [2s]\n"), settingsTable(), nil)
	require.NoError(t, err)
	c := f.With(f.Matrix.Axes, map[string]string{"one.duration": "9s", "warmup": "2s"})
	require.Equal(t, []string{"9s"}, texts(c.Steps[0].Entries, "duration"))
	require.Equal(t, []string{"6s"}, texts(c.Steps[1].Entries, "duration"))
	require.Equal(t, []string{"2s"}, texts(c.Defaults, "warmup"))
	require.Empty(t, texts(c.Steps[0].Entries, "warmup"))
	require.Equal(t, []string{"1s"}, texts(f.Defaults, "warmup"))
}

// TestExcluded: an exclusion is of all cells that have one of its values on each of its axes.
func TestExcluded(t *testing.T) {
	t.Parallel()
	f, err := Parse("x.yaml", []byte(varied+"  size: [1, 2]\n  heap: [a, b, c]\n  exclude: [{size: 2, heap: [b, c]}]\n"), settingsTable(), nil)
	require.NoError(t, err)
	for text, want := range map[[2]string]bool{{"1", "a"}: false, {"1", "b"}: false, {"2", "a"}: false, {"2", "b"}: true, {"2", "c"}: true} {
		require.Equal(t, want, f.Matrix.Excluded(map[string]string{"size": text[0], "heap": text[1]}), text)
	}
}
