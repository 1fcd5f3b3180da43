package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/perfmq/perfmq/pkg/driver"
)

// suggestions is what completion can draw on.
type suggestions struct {
	own       *driver.Factory
	factories []driver.Factory
	libraries []driver.Factory
	prefix    string // what was typed of the value
}

func (a *app) completeFlags(cmd *cobra.Command, in *input, f *driver.Factory) {
	for i := range in.definitions {
		d := &in.definitions[i]
		if d.arg == "" || d.files {
			continue // switches have no value; the shell completes files by itself
		}
		// The only error is that of a flag that does not exist or was registered twice.
		_ = cmd.RegisterFlagCompletionFunc(d.name, func(_ *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
			if d.folders {
				return nil, cobra.ShellCompDirectiveFilterDirs
			}
			if d.suggest == nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return offer(d.suggest(&suggestions{own: f, factories: a.Factories, libraries: a.libraries, prefix: prefix}), prefix)
		})
	}
}

// offer keeps what begins with prefix. The shell shall not add a space after what must go on, such as "queue://".
func offer(list []string, prefix string) ([]string, cobra.ShellCompDirective) {
	directive := cobra.ShellCompDirectiveNoFileComp
	var matching []string
	for _, entry := range list {
		word, _, _ := strings.Cut(entry, "\t")
		if !strings.HasPrefix(word, prefix) {
			continue
		}
		matching = append(matching, entry)
		if strings.HasSuffix(word, "=") || strings.HasSuffix(word, "://") {
			directive |= cobra.ShellCompDirectiveNoSpace
		}
	}
	return matching, directive
}

func suggestDestinations(_ *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
	return offer([]string{"queue://", "topic://"}, prefix)
}

func suggestURL(s *suggestions) []string { return schemes(s.own) }

func suggestConsumerURL(s *suggestions) []string {
	list := schemes(s.own)
	for i := range s.factories {
		for _, scheme := range schemes(&s.factories[i]) {
			if !slices.Contains(list, scheme) {
				list = append(list, scheme)
			}
		}
	}
	return list
}

func suggestOwnProtocol(s *suggestions) []string { return []string{s.own.Name} }

func suggestProtocols(s *suggestions) []string { return factoryNames(s.factories) }

func suggestFixed(values ...string) func(*suggestions) []string {
	return func(*suggestions) []string { return values }
}

// suggestOptions offers key=, and the values once the key is there.
func suggestOptions(s *suggestions) []string {
	var list []string
	key, _, hasKey := strings.Cut(s.prefix, "=")
	for _, o := range driver.Describe(newOptions(s.own)) {
		switch {
		case !hasKey:
			list = append(list, o.Name+"=\t"+o.Help)
		case o.Name == key:
			for _, value := range optionValues(&o) {
				list = append(list, key+"="+value)
			}
		}
	}
	return list
}

func optionValues(o *driver.Option) []string {
	if len(o.Enum) == 0 && (o.Default == "true" || o.Default == "false") {
		return []string{"true", "false"}
	}
	return o.Enum
}
